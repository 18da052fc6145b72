package skomer_test

import (
	"context"
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

// TestO47RowsAddedLater: rows that came after the indexes were built are found, by words and by pieces of text, before a sync and after it.
func TestO47RowsAddedLater(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	schema := &column.Schema{Fields: []column.Field{{ID: 1, Name: "id", Type: column.Of(column.Long)}, {ID: 2, Name: "text", Type: column.Of(column.String)}}}
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: schema})
	require.NoError(t, err)
	add := func(name string, texts ...string) {
		t.Helper()
		var rows []tabletest.Row
		for i, text := range texts {
			rows = append(rows, tabletest.Row{{Val: column.IntValue(column.Long, int64(i))}, {Val: column.BytesValue(column.String, []byte(text))}})
		}
		path := filepath.Join(dir, "table", name)
		layout := tabletest.Layout{RowsPerGroup: 1000, PageBytes: 1 << 20, PageVersion: 1, Codec: tabletest.Uncompressed}
		require.NoError(t, tabletest.WriteParquet(path, schema, rows, layout))
		info, err := os.Stat(path)
		require.NoError(t, err)
		_, err = w.Append(ctx, lakewrite.File{Path: path, Format: facts.Parquet, Records: int64(len(rows)), Size: info.Size()})
		require.NoError(t, err)
	}
	add("a.parquet", "this", "is", "a", "bug")
	table := open(t, w.Location(), filepath.Join(dir, "overlays"))
	require.NoError(t, table.Mount(ctx))
	for _, expr := range []string{"bloom(text)", "ngram(text)", "bloom(tokens(text))", "bitmap(tokens(text))"} {
		_, err := table.AddIndex(ctx, expr)
		require.NoError(t, err)
	}
	synced(t, table, skomer.SyncOptions{})
	var more []string
	for i := range 10 {
		more = append(more, fmt.Sprintf("hello %d", i))
	}
	add("b.parquet", more...)
	for range 2 {
		for where, want := range map[string]int{"contains_token(text, 'hello')": 10, "text LIKE '%ello%'": 10, "contains_token(text, '7')": 1, "text = 'hello 7'": 1, "contains_token(text, 'bug')": 1} {
			n, _ := count(t, table, skomer.Query{Where: where})
			require.Equal(t, want, n, where)
		}
		synced(t, table, skomer.SyncOptions{})
	}
}
