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
	"github.com/skomerdb/skomer/internal/store/meter"
)

// TestU25SyncCostsWhatChanged: while an overlay follows its table, one new file costs about the same requests and bytes in a table of many
// files as in one of 50, on the average of 16 syncs that follow each other (lists are merged and small bundles consolidated in one of
// them). SKOMER_FILES adds a size; 50,000 take a minute. Between 64 and 256 files the first bundle is not full yet: the one merge that
// fills it writes its artifacts again, which no later sync does.
func TestU25SyncCostsWhatChanged(t *testing.T) {
	sizes := []int{800, 4000}
	if s := os.Getenv("SKOMER_FILES"); s != "" {
		more, err := strconv.Atoi(s)
		require.NoError(t, err)
		sizes = append(sizes, more)
	}
	few := costOfOneFile(t, 50)
	for _, n := range sizes {
		many := costOfOneFile(t, n)
		t.Logf("50 files: %+v; %d files: %+v", few, n, many)
		require.LessOrEqual(t, float64(many.Requests()), 1.2*float64(few.Requests()))
		require.LessOrEqual(t, float64(many.BytesRead+many.BytesWritten), 1.2*float64(few.BytesRead+few.BytesWritten))
	}
}

// costOfOneFile is what a sync of one new file costs in a table of n files, the mean of several.
func costOfOneFile(t *testing.T, n int) store.Usage {
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
	m := meter.New(local.New())
	at := func(location string) (store.Store, string, error) { return m, location, nil }
	c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays(), MaxStaleness: time.Nanosecond}.WithStores(at, at))
	require.NoError(t, err)
	table, err := c.Open(ctx, s.Location(), skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	require.NoError(t, table.Mount(ctx))
	_, err = table.AddIndex(ctx, "zonemap(v)")
	require.NoError(t, err)
	synced(t, table, skomer.SyncOptions{})
	s.add(t, v...)
	synced(t, table, skomer.SyncOptions{}) // what the first sync left to merge
	table.Close()
	before := m.Total()
	const rounds = 16
	for range rounds {
		s.add(t, v...)
		r := synced(t, table, skomer.SyncOptions{})
		require.Equal(t, 1, r.Artifacts)
		table.Close()
	}
	u := m.Total().Sub(before)
	return store.Usage{
		Gets: u.Gets / rounds, Heads: u.Heads / rounds, Lists: u.Lists / rounds, Puts: u.Puts / rounds, Deletes: u.Deletes / rounds,
		BytesRead: u.BytesRead / rounds, BytesWritten: u.BytesWritten / rounds,
	}
}
