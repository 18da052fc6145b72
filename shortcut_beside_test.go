package skomer_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/local"
)

// TestBundlesOfTwoSyncsAreCounted: two syncs look at what came alone, and each publishes a bundle while the other is at work. The sync after them
// knows of both when it decides what to merge.
func TestBundlesOfTwoSyncsAreCounted(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	process := func(own func(string) (store.Store, string, error)) *skomer.Table {
		t.Helper()
		data := func(location string) (store.Store, string, error) { return local.New(), location, nil }
		if own == nil {
			own = data
		}
		c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays(), MaxStaleness: time.Nanosecond}.WithStores(data, own).WithWholeUpTo(-1))
		require.NoError(t, err)
		table, err := c.Open(ctx, s.Location(), skomer.TableOptions{})
		require.NoError(t, err)
		t.Cleanup(table.Close)
		return table
	}
	first := process(nil)
	require.NoError(t, first.Mount(ctx))
	_, err := first.AddIndex(ctx, "zonemap(v)")
	require.NoError(t, err)
	s.add(t, 1, 2, 3)
	synced(t, first, skomer.SyncOptions{})

	s.add(t, 4, 5, 6)
	var other sync.WaitGroup
	ended := make(chan struct{})
	var beside *skomer.SyncReport
	published := func() int { return len(bundlesOf(t, s)) }
	slow := process(func(location string) (store.Store, string, error) {
		return faulty.New(local.New(), 1, faulty.Rule{
			Op: faulty.PutNew, Nth: 1, Key: func(key string) bool { return strings.HasSuffix(key, ".puffin") },
			Do: func(context.Context, faulty.Op, string) {
				s.add(t, 7, 8, 9)
				table := process(func(location string) (store.Store, string, error) { // which ends last: its record is of the newest snapshot
					return faulty.New(local.New(), 1, faulty.Rule{
						Op: faulty.PutNew, Nth: 2, Key: func(key string) bool { return strings.Contains(key, "/versions/") },
						Do: func(context.Context, faulty.Op, string) { <-ended },
					}), location, nil
				})
				var over atomic.Bool
				other.Go(func() {
					defer over.Store(true)
					beside, _ = table.Sync(ctx, skomer.SyncOptions{})
				})
				for published() < 2 && !over.Load() {
					time.Sleep(time.Millisecond)
				}
			},
		}), location, nil
	})
	report, err := slow.Sync(ctx, skomer.SyncOptions{})
	close(ended)
	other.Wait()
	require.NoError(t, err)
	require.Empty(t, report.Whole)
	require.NotNil(t, beside)
	require.Empty(t, beside.Whole)
	require.Equal(t, 3, published())

	for n := 4; n <= 5; n++ {
		s.add(t, int64(n))
		require.Empty(t, synced(t, process(nil), skomer.SyncOptions{}).Whole)
		require.Equal(t, n, published())
		c, ok := newestOf(t, s).Complete()
		require.True(t, ok)
		var notes struct {
			Tiers []struct{ Bundles int }
		}
		require.NoError(t, json.Unmarshal(c.Notes, &notes))
		require.Equal(t, n, notes.Tiers[0].Bundles)
	}
}

func newestOf(t *testing.T, s *smallTable) *overlay.Version {
	t.Helper()
	at, err := filepath.Glob(filepath.Join(s.overlays(), "*"))
	require.NoError(t, err)
	require.Len(t, at, 1)
	v, err := overlay.Open(local.New(), at[0], overlay.Options{}).Latest(t.Context())
	require.NoError(t, err)
	return v
}

// bundlesOf is the bundles that the newest version of the table's overlay names.
func bundlesOf(t *testing.T, s *smallTable) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	newestOf(t, s).Each(func(a overlay.ArtifactInfo) bool {
		out[a.Bundle] = true
		return true
	})
	return out
}
