package skomer_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
)

// TestFromTheFuture: an artifact that was built from a newer state of the table than the one known here makes the metadata be read anew,
// once. Where that is no newer, the artifact is rejected and the answer is right without it.
func TestFromTheFuture(t *testing.T) {
	ctx := context.Background()
	dir, overlays := t.TempDir(), t.TempDir()
	w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: idSchema})
	require.NoError(t, err)
	_, err = w.Append(ctx, plain(t, filepath.Join(dir, "data", "a.parquet"), longs(1, 2, 3)))
	require.NoError(t, err)
	c, err := skomer.New(skomer.Config{OverlayRoot: overlays, MaxStaleness: time.Hour, MinPlannedFiles: -1, MinPlannedScanBytes: -1})
	require.NoError(t, err)
	early, err := c.Open(ctx, dir, skomer.TableOptions{})
	require.NoError(t, err)
	defer early.Close()
	before, err := filepath.Glob(filepath.Join(dir, "metadata", "v*.metadata.json"))
	require.NoError(t, err)

	_, err = w.Append(ctx, plain(t, filepath.Join(dir, "data", "b.parquet"), longs(2, 4)))
	require.NoError(t, err)
	later := open(t, dir, overlays)
	require.NoError(t, later.Mount(ctx))
	_, err = later.AddIndex(ctx, "ordered(v)")
	require.NoError(t, err)
	_, err = later.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)

	n, stats := count(t, early, skomer.Query{Where: "v = 2"})
	require.Equal(t, 2, n, "the metadata was read anew, and with it the second file")
	require.Empty(t, stats.Rejected)
	require.NotEmpty(t, stats.IndexesUsed)

	pinned := open(t, before[len(before)-1], overlays)
	n, stats = count(t, pinned, skomer.Query{Where: "v = 2"})
	require.Equal(t, 1, n)
	require.Positive(t, stats.Rejected["from_future"])
	require.Empty(t, stats.IndexesUsed)
}
