package skomer_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/store/retry"
	"github.com/skomerdb/skomer/internal/store/s3"
	"github.com/skomerdb/skomer/internal/store/s3/s3test"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// holder keeps back the answer to the table's metadata until all that a first query needs beside it was asked for.
type holder struct {
	mu      sync.Mutex
	waiting map[string]chan struct{} // by a part of the path that is waited for; nil: nothing is kept back
	late    []string
}

func (h *holder) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		var wait []chan struct{}
		for part, ch := range h.waiting {
			switch {
			case strings.HasSuffix(r.URL.Path, ".metadata.json"):
				wait = append(wait, ch)
			case ch != nil && r.Method == http.MethodGet && strings.Contains(r.URL.Path, part):
				close(ch)
				delete(h.waiting, part)
			}
		}
		h.mu.Unlock()
		for _, ch := range wait {
			select {
			case <-ch:
			case <-time.After(2 * time.Minute): // only where it is not asked for
				h.mu.Lock()
				h.late = append(h.late, r.URL.Path)
				h.mu.Unlock()
			}
		}
		next.ServeHTTP(w, r)
	})
}

// TestFirstTouch: a table whose overlay's place is known is read beside its overlay, and the first answers are right, whether or not the
// table has moved since the overlay's head was written.
func TestFirstTouch(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	var h holder
	server := s3test.Start(t, h.around, "lake", "overlays")
	made := tabletest.CreateIn(t, rng, retry.New(s3.New(server.Options), retry.Options{}), "s3://lake/table")
	made.Append(t, 4, 300)
	open := func(o skomer.TableOptions) *skomer.Table {
		config := remote(server.Options.Endpoint)
		config.MaxStaleness = time.Hour
		c, err := skomer.New(config)
		require.NoError(t, err)
		table, err := c.Open(ctx, made.Dir, o)
		require.NoError(t, err)
		return table
	}
	table := open(skomer.TableOptions{})
	require.NoError(t, table.Mount(ctx))
	overlay := table.Overlay()
	table.Close()
	for round := range 4 {
		if round%2 == 0 { // else the table moves and the overlay does not
			table = open(skomer.TableOptions{})
			if round == 0 {
				for _, x := range []string{"ordered(id)", "zonemap(id)"} {
					_, err := table.AddIndex(ctx, x)
					require.NoError(t, err)
				}
			}
			_, err := table.Sync(ctx, skomer.SyncOptions{})
			require.NoError(t, err)
			table.Close()
			h.mu.Lock()
			h.waiting = map[string]chan struct{}{"/snap-": make(chan struct{}), "/versions/": make(chan struct{})}
			h.mu.Unlock()
		}
		for _, where := range []string{overlay, ""} {
			table = open(skomer.TableOptions{Overlay: where})
			for n := range 6 {
				e := made.Expr(rng.IntN(3))
				got, stats := positions(t, table, skomer.Query{Where: e.SQL()})
				require.Equal(t, describe(made.Answer(e)), describe(got), "round %d query %d overlay %q\n%s", round, n, where, e.SQL())
				require.Empty(t, stats.Rejected)
				require.NotZero(t, stats.OverlayVersion)
			}
			table.Close()
		}
		made.Append(t, 2, 200)
	}
	require.Empty(t, h.late, "metadata was answered before the rest was asked for")
}
