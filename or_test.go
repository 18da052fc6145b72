package skomer_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// orTable is files of 40 rows: id is unique, part is the file's number, with bounds in the manifest, and other is anything.
func orTable(t *testing.T, files int, exprs ...string) (table *skomer.Table, paths []string) {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	schema := &column.Schema{Fields: []column.Field{
		{ID: 1, Name: "id", Type: column.Of(column.Long)},
		{ID: 2, Name: "part", Type: column.Of(column.Long)},
		{ID: 3, Name: "other", Type: column.Of(column.Long)},
		{ID: 4, Name: "name", Type: column.Of(column.String)},
	}}
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: schema})
	require.NoError(t, err)
	var added []lakewrite.File
	for f := range files {
		var rows []tabletest.Row
		for r := range 40 {
			long := func(x int) tabletest.Cell { return tabletest.Cell{Val: column.IntValue(column.Long, int64(x))} }
			id := (f*40 + r) * 7919 % (files * 40)
			rows = append(rows, tabletest.Row{long(id), long(f), long(r), {Val: column.StringValue(fmt.Sprint("n", id))}})
		}
		path := filepath.Join(dir, "table", "data", fmt.Sprintf("%03d.parquet", f))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		layout := tabletest.Layout{RowsPerGroup: 1000, PageBytes: 1 << 20, PageVersion: 1, Codec: tabletest.Uncompressed}
		require.NoError(t, tabletest.WriteParquet(path, schema, rows, layout))
		info, err := os.Stat(path)
		require.NoError(t, err)
		bound := binary.LittleEndian.AppendUint64(nil, uint64(f))
		added = append(added, lakewrite.File{Path: path, Format: facts.Parquet, Records: 40, Size: info.Size(), Metrics: map[int]lakewrite.Metric{
			2: {Values: lakewrite.N(40), Nulls: lakewrite.N(0), Lower: bound, Upper: bound},
		}})
		paths = append(paths, path)
	}
	_, err = w.Append(ctx, added...)
	require.NoError(t, err)
	table = open(t, w.Location(), filepath.Join(dir, "overlays"))
	indexed(t, table, exprs...)
	return open(t, w.Location(), filepath.Join(dir, "overlays")), paths
}

// TestAnIndexIsNotAskedInVain: where nothing rules out one side of an OR, the index and the file map of the other side are not asked, and explain
// tells why.
func TestAnIndexIsNotAskedInVain(t *testing.T) {
	for _, expr := range []string{"ordered(id)", "bloom(id)", "bitmap(id)", "valueset(id)", "zonemap(id)"} {
		table, _ := orTable(t, 12, expr)
		ctx := context.Background()
		where := "id = 77 OR other = 3"
		_, err := table.Explain(ctx, skomer.Query{Where: "other = 3"}, false) // facts and version are in memory
		require.NoError(t, err)
		plain, err := table.Explain(ctx, skomer.Query{Where: "other = 3"}, false)
		require.NoError(t, err)
		x, err := table.Explain(ctx, skomer.Query{Where: where}, false)
		require.NoError(t, err)
		require.Equal(t, plain.Stats.Requests, x.Stats.Requests, expr)
		require.Equal(t, "not asked", x.Indexes[0].Use, expr)
		require.Contains(t, x.Indexes[0].Reason, "the other side of an OR", expr)
		require.Equal(t, "no use", plain.Indexes[0].Use, expr)
		got, _ := positions(t, table, skomer.Query{Where: where})
		want, _ := positions(t, table, skomer.Query{Where: where, NoIndex: true})
		require.Equal(t, want, got, expr)
	}
}

// TestMetadataAnswersASideOfAnOr: what manifests rule out of one side leaves the other to an index.
func TestMetadataAnswersASideOfAnOr(t *testing.T) {
	for _, expr := range []string{"ordered(id)", "bloom(id)", "bitmap(id)", "valueset(id)"} {
		table, paths := orTable(t, 12, expr)
		where := "id = 7919 OR part = 5"
		got, stats := positions(t, table, skomer.Query{Where: where})
		want, _ := positions(t, table, skomer.Query{Where: where, NoIndex: true})
		require.Equal(t, want, got)
		require.Len(t, want[paths[5]], 40)
		require.LessOrEqual(t, stats.FilesOpened, 2, expr)
		require.Equal(t, []string{expr}, stats.IndexesUsed)
	}
}

// TestExplainNamesEachIndexsReason: an index that narrows nothing is not called used; where the cost rule scans, an index that could not say
// anything is still of no use.
func TestExplainNamesEachIndexsReason(t *testing.T) {
	ctx := context.Background()
	table, _ := orTable(t, 3, "bloom(other)", "bloom(name)")
	x, err := table.Explain(ctx, skomer.Query{Where: "other = 3"}, false)
	require.NoError(t, err)
	require.Equal(t, []string{"silent", "no use"}, []string{x.Indexes[0].Use, x.Indexes[1].Use})
	client, err := skomer.New(skomer.Config{OverlayRoot: filepath.Dir(table.Overlay()), MinPlannedFiles: 100, MinPlannedScanBytes: 1 << 30})
	require.NoError(t, err)
	small, err := client.Open(ctx, table.Location(), skomer.TableOptions{})
	require.NoError(t, err)
	defer small.Close()
	x, err = small.Explain(ctx, skomer.Query{Where: "other = 3"}, false)
	require.NoError(t, err)
	require.NotEmpty(t, x.CostRule)
	require.Equal(t, []string{"silent", "no use"}, []string{x.Indexes[0].Use, x.Indexes[1].Use})
	require.Equal(t, x.CostRule, x.Indexes[0].Reason)
}
