package skomer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
)

// TestU25SyncCostsWhatChanged: one new file costs about the same requests and bytes in a table of many files as in one of 50, while an overlay
// follows its table, and in a process that knows nothing, on the average of 16 syncs that follow each other (lists are merged and small bundles
// consolidated in one of them). SKOMER_FILES adds a size; 50,000 take two minutes. Between 64 and 256 files the first bundle is not full yet:
// the one merge that fills it writes its artifacts again, which no later sync does.
func TestU25SyncCostsWhatChanged(t *testing.T) {
	sizes := []int{800, 4000}
	if s := os.Getenv("SKOMER_FILES"); s != "" {
		more, err := strconv.Atoi(s)
		require.NoError(t, err)
		sizes = append(sizes, more)
	}
	t.Run("zonemap", func(t *testing.T) { requireOneCost(t, "zonemap(v)", sizes) })
	t.Run("bloom", func(t *testing.T) { requireOneCost(t, "bloom(v)", sizes[1:]) }) // an artifact a file: lists are long
}

func requireOneCost(t *testing.T, expr string, sizes []int) {
	t.Helper()
	few := costOfOneFile(t, expr, 50)
	for _, n := range sizes {
		many := costOfOneFile(t, expr, n)
		for i, how := range []string{"following", "cold"} {
			a, b := few[i], many[i]
			requests := float64(b.Requests()) / float64(a.Requests())
			bytes := float64(b.BytesRead+b.BytesWritten) / float64(a.BytesRead+a.BytesWritten)
			t.Logf("%s: %.2f times the requests of 50 files for %d files, %.2f times the bytes", how, requests, n, bytes)
			require.LessOrEqual(t, requests, 1.2, "%s, %d files", how, n)
			require.LessOrEqual(t, bytes, 1.2, "%s, %d files", how, n)
		}
	}
}

// costOfOneFile is what 16 syncs of one new file each cost in a table of n files: of a process that goes on, and of one process each.
func costOfOneFile(t *testing.T, expr string, n int) (costs [2]store.Usage) {
	t.Helper()
	ctx := context.Background()
	s := newSmall(t)
	var v []int64
	for i := range int64(5000) {
		v = append(v, i)
	}
	first := plain(t, filepath.Join(s.dir, "table", "data", "first.parquet"), longs(v...))
	files := []lakewrite.File{first}
	for i := range n - 1 {
		f := first
		f.Path = filepath.Join(s.dir, "table", "data", fmt.Sprintf("many%06d.parquet", i))
		require.NoError(t, os.Link(first.Path, f.Path))
		files = append(files, f)
	}
	_, err := s.Append(ctx, files...)
	require.NoError(t, err)
	m := &sorted{Store: local.New(), used: map[string]store.Usage{}}
	at := func(location string) (store.Store, string, error) { return m, location, nil }
	process := func() *skomer.Table {
		c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays(), MaxStaleness: time.Nanosecond}.WithStores(at, at))
		require.NoError(t, err)
		table, err := c.Open(ctx, s.Location(), skomer.TableOptions{})
		require.NoError(t, err)
		return table
	}
	table := process()
	require.NoError(t, table.Mount(ctx))
	_, err = table.AddIndex(ctx, expr)
	require.NoError(t, err)
	synced(t, table, skomer.SyncOptions{})
	s.add(t, v...)
	synced(t, table, skomer.SyncOptions{}) // what the first sync left to merge
	table.Close()
	const rounds = 16
	for i, next := range []func() *skomer.Table{func() *skomer.Table { return table }, process} {
		m.forget()
		for range rounds {
			s.add(t, v...)
			table := next()
			r := synced(t, table, skomer.SyncOptions{})
			require.Equal(t, 1, r.Artifacts)
			require.Empty(t, r.Whole)
			table.Close()
		}
		costs[i] = tallied(t, fmt.Sprintf("%d files, %s", n, []string{"following", "cold"}[i]), rounds, m.forget())
	}
	return costs
}
