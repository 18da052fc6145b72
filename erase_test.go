package skomer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// below counts a value in the files of a folder.
func below(t *testing.T, root, value string) (n int) {
	t.Helper()
	for _, raw := range contents(t, root) {
		n += strings.Count(raw, value)
	}
	return n
}

// smallFile writes a data file of few rows.
func smallFile(t *testing.T, path string, schema *column.Schema, rows []tabletest.Row) lakewrite.File {
	t.Helper()
	require.NoError(t, tabletest.WriteParquet(path, schema, rows, tabletest.Layout{RowsPerGroup: 10, PageBytes: 100, PageVersion: 1}))
	info, err := os.Stat(path)
	require.NoError(t, err)
	return lakewrite.File{Path: path, Format: facts.Parquet, Records: int64(len(rows)), Size: info.Size()}
}

// Manifests state bounds, which are values. What an overlay keeps of manifests forgets them too, as do the caches of the process.
func TestEraseForgetsTheBoundsThatManifestsState(t *testing.T) {
	ctx, secret := t.Context(), "zzz-the-greatest-of-all"
	dir, where := filepath.Join(t.TempDir(), "table"), filepath.Join(t.TempDir(), "over")
	schema := &column.Schema{Fields: []column.Field{{ID: 1, Name: "v", Type: column.Of(column.String)}}}
	w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: schema, FormatVersion: 2})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	write := func(name string, schema *column.Schema, rows ...tabletest.Row) lakewrite.File {
		return smallFile(t, filepath.Join(dir, "data", name), schema, rows)
	}
	for i, last := range []string{"b", secret, "c"} {
		f := write(fmt.Sprint(i, ".parquet"), schema, tabletest.Row{{Val: column.StringValue("a")}}, tabletest.Row{{Val: column.StringValue(last)}})
		f.Metrics = map[int]lakewrite.Metric{1: {Values: lakewrite.N(2), Nulls: lakewrite.N(0), Lower: []byte("a"), Upper: []byte(last)}}
		_, err := w.Append(ctx, f)
		require.NoError(t, err)
	}
	client, err := skomer.New(skomer.Config{OverlayRoot: where, MinPlannedScanBytes: -1}.WithSelectFrom(1))
	require.NoError(t, err)
	table, err := client.Open(ctx, dir, skomer.TableOptions{Overlay: where})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	require.NoError(t, table.Mount(ctx))
	_, err = table.AddIndex(ctx, "bloom(v)")
	require.NoError(t, err)
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	held := func() int {
		table.Close() // its head is written
		return below(t, where, secret)
	}
	require.NotZero(t, held(), "facts of manifests hold bounds")

	options := skomer.EraseOptions{Where: "v = '" + secret + "'"}
	_, err = table.Erase(ctx, options)
	require.True(t, fault.Is(err, fault.Refused), err)
	deletes := write("d.parquet", &column.Schema{Fields: []column.Field{
		{ID: 2147483546, Name: "file_path", Type: column.Of(column.String), Required: true}, {ID: 2147483545, Name: "pos", Type: column.Of(column.Long), Required: true},
	}}, tabletest.Row{{Val: column.StringValue(filepath.Join(dir, "data", "1.parquet"))}, {Val: column.IntValue(column.Long, 1)}})
	deletes.Content = lakewrite.PositionDeletes
	_, err = w.Append(ctx, deletes)
	require.NoError(t, err)
	r, err := table.Erase(ctx, options)
	require.NoError(t, err)
	require.True(t, r.Complete)
	require.Zero(t, held())
	for range 2 {
		s, err := table.Sync(ctx, skomer.SyncOptions{})
		require.NoError(t, err)
		require.Contains(t, s.Skipped[filepath.Join(dir, "data", "1.parquet")], "erased")
		require.Zero(t, held(), "facts of the manifest that lists the file are not kept")
	}
	require.Equal(t, int64(3), matching(t, table, "v = 'a'"))
	require.Zero(t, matching(t, table, options.Where))

	// The table rewrites the file: it is indexed again, and its facts are kept.
	_, err = w.Replace(ctx, []string{filepath.Join(dir, "data", "1.parquet")}, write("3.parquet", schema, tabletest.Row{{Val: column.StringValue("a")}}))
	require.NoError(t, err)
	s, err := table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	require.Empty(t, s.Skipped)
	require.Equal(t, 1, s.FilesIndexed)
	require.Zero(t, held())
	require.Equal(t, int64(3), matching(t, table, "v = 'a'"))
}

func matching(t *testing.T, table *skomer.Table, where string) int64 {
	t.Helper()
	rows, err := table.Query(t.Context(), skomer.Query{Where: where, Limit: -1})
	require.NoError(t, err)
	n, err := rows.Count(context.Background())
	require.NoError(t, err)
	return n
}
