package skomer_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/store/retry"
	"github.com/skomerdb/skomer/internal/store/s3"
	"github.com/skomerdb/skomer/internal/store/s3/s3test"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// TestOverlaysOfAStore: overlays in object storage are listed by one request each, whatever lies in them, and one whose table cannot be
// read is unknown: only a table that is not there, or is another one, leaves its overlay stranded.
func TestOverlaysOfAStore(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	var lists atomic.Int64 // of the overlay root
	var closed atomic.Bool
	server := s3test.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("prefix") == "skomer/" {
				lists.Add(1)
			}
			if closed.Load() && strings.HasPrefix(r.URL.Path, "/lake") {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, "lake", "overlays")
	writer := retry.New(s3.New(server.Options), retry.Options{})
	c, err := skomer.New(remote(server.Options.Endpoint))
	require.NoError(t, err)
	var tables []*tabletest.Table
	for _, name := range []string{"a", "b", "c"} {
		made := tabletest.CreateIn(t, rng, writer, "s3://lake/"+name)
		made.Append(t, 1, 50)
		table, err := c.Open(ctx, made.Dir, skomer.TableOptions{})
		require.NoError(t, err)
		require.NoError(t, table.Mount(ctx))
		_, err = table.AddIndex(ctx, "ordered(id)")
		require.NoError(t, err)
		_, err = table.Sync(ctx, skomer.SyncOptions{})
		require.NoError(t, err)
		table.Close()
		tables = append(tables, made)
	}
	states := func() map[string]string {
		lists.Store(0)
		all, err := c.Overlays(ctx, skomer.TableOptions{})
		require.NoError(t, err)
		require.EqualValues(t, len(all)+1, lists.Load())
		out := map[string]string{}
		for _, s := range all {
			out[s.Table] = s.State
			require.Equal(t, s.State == skomer.OverlayMounted, s.Status != nil, "%+v", s)
			require.Equal(t, s.State == skomer.OverlayMounted, s.Reason == "", "%+v", s)
		}
		return out
	}
	require.Equal(t, map[string]string{tables[0].Dir: skomer.OverlayMounted, tables[1].Dir: skomer.OverlayMounted, tables[2].Dir: skomer.OverlayMounted}, states())
	for _, at := range []int{1, 2} { // dropped, and one of them made again
		old, err := writer.List(ctx, tables[at].Dir+"/", "", 1000)
		require.NoError(t, err)
		var keys []string
		for _, o := range old {
			keys = append(keys, o.Key)
		}
		require.NoError(t, writer.Delete(ctx, keys))
	}
	tabletest.CreateIn(t, rng, writer, tables[2].Dir)
	require.Equal(t, map[string]string{tables[0].Dir: skomer.OverlayMounted, tables[1].Dir: skomer.OverlayStranded, tables[2].Dir: skomer.OverlayStranded}, states())
	closed.Store(true)
	require.Equal(t, map[string]string{tables[0].Dir: skomer.OverlayUnknown, tables[1].Dir: skomer.OverlayUnknown, tables[2].Dir: skomer.OverlayUnknown}, states())
}
