package skomer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
)

// slowClock is a clock that goes on by a step each time that somebody looks.
type slowClock struct {
	mu   sync.Mutex
	at   time.Time
	step time.Duration
}

func (c *slowClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(c.step)
	return c.at
}

// TestSlowUnitsArePublishedInParts: a unit that takes long is published every ten seconds or so with the files that are finished, and what
// follows in other units. A sync that is killed keeps what was published.
func TestSlowUnitsArePublishedInParts(t *testing.T) {
	ctx := context.Background()
	const files, rows = 12, 50
	for _, c := range []struct {
		step    time.Duration
		bundles int
	}{{0, 1}, {3 * time.Second, 3}, {time.Minute, files}} {
		t.Run(c.step.String(), func(t *testing.T) {
			s := newSmall(t)
			for f := range int64(files) {
				var v []int64
				for i := range int64(rows) {
					v = append(v, f*rows+i)
				}
				s.add(t, v...)
			}
			clock := &slowClock{at: time.Now(), step: c.step}
			open := func() *skomer.Table {
				client, err := skomer.New(skomer.Config{OverlayRoot: s.overlays(), MaxStaleness: 1, MinPlannedFiles: -1, MinPlannedScanBytes: -1}.WithClock(clock.now))
				require.NoError(t, err)
				table, err := client.Open(ctx, s.Location(), skomer.TableOptions{})
				require.NoError(t, err)
				t.Cleanup(table.Close)
				return table
			}
			table := open()
			require.NoError(t, table.Mount(ctx))
			for _, e := range []string{"bloom(v)", "ordered(v)", "ordered(v, id)", "zonemap(v)"} {
				_, err := table.AddIndex(ctx, e)
				require.NoError(t, err)
			}
			killed, kill := context.WithCancel(ctx)
			_, err := table.Sync(killed, skomer.SyncOptions{Workers: 1, Progress: func(p skomer.SyncProgress) {
				if p.FilesDone > 0 {
					kill()
				}
			}})
			kill()
			require.ErrorIs(t, err, context.Canceled)
			table.Close()

			table = open()
			st, err := table.Status(ctx)
			require.NoError(t, err)
			require.Equal(t, 1, st.Bundles)
			require.InDelta(t, files*rows/c.bundles, st.Indexes[0].Covered, rows, "what was published is kept")
			r := synced(t, table, skomer.SyncOptions{Workers: 1})
			require.Equal(t, c.bundles-1, r.Bundles)
			requireCovered(t, table)
			for v := range int64(files * rows) {
				if v%7 == 0 {
					n, stats := count(t, table, skomer.Query{Where: fmt.Sprintf("v = %d", v)})
					require.Equal(t, 1, n)
					require.Empty(t, stats.Rejected)
				}
			}
			n, _ := count(t, table, skomer.Query{Where: fmt.Sprintf("v BETWEEN 17 AND %d", files*rows-18)})
			require.Equal(t, files*rows-34, n)
		})
	}
}
