package skomer_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
)

// sameTags is a local store that says one tag of every file, as if whoever overwrote one had restored all of it.
type sameTags struct{ store.Store }

func (s sameTags) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	plain := make([]store.Read, len(reads))
	for i, r := range reads {
		plain[i] = r
		plain[i].Tag = ""
	}
	out := s.Store.Fetch(ctx, plain)
	for i := range out {
		out[i].Tag = "restored"
	}
	return out
}

func (s sameTags) Stat(ctx context.Context, keys []string) []store.Info {
	out := s.Store.Stat(ctx, keys)
	for i := range out {
		out[i].Tag = "restored"
	}
	return out
}

// TestStrictHashesLocalFiles: a local file is overwritten by one of the same size whose tag is restored. Strict reads find it by its
// content; file maps, which hold no hashes, do not speak for it either.
func TestStrictHashesLocalFiles(t *testing.T) {
	ctx := context.Background()
	for _, expr := range []string{"bloom(v)", "ordered(v)", "zonemap(v)", "bitmap(v)"} {
		s := newSmall(t)
		data := func(location string) (store.Store, string, error) { return sameTags{local.New()}, location, nil }
		own := func(location string) (store.Store, string, error) { return local.New(), location, nil }
		c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays(), MaxStaleness: time.Nanosecond}.WithStores(data, own))
		require.NoError(t, err)
		table, err := c.Open(ctx, s.Location(), skomer.TableOptions{})
		require.NoError(t, err)
		t.Cleanup(table.Close)
		require.NoError(t, table.Mount(ctx))
		_, err = table.AddIndex(ctx, expr)
		require.NoError(t, err)
		path := s.add(t, 1, 2, 3)
		s.add(t, 4, 5, 6)
		synced(t, table, skomer.SyncOptions{})
		n, stats := count(t, table, skomer.Query{Where: "v = 2", Strict: true})
		require.Equal(t, 1, n, expr)
		require.Empty(t, stats.Rejected, expr)

		was, err := os.Stat(path)
		require.NoError(t, err)
		other := plain(t, path+".new", longs(1, 7, 3))
		require.Equal(t, was.Size(), other.Size, "of the same size")
		b, err := os.ReadFile(other.Path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		require.NoError(t, os.Chtimes(path, was.ModTime(), was.ModTime()))
		n, stats = count(t, table, skomer.Query{Where: "v = 7", Strict: true})
		require.Equal(t, 1, n, expr)
		require.NotEmpty(t, stats.Rejected, expr)
	}
}
