package skomer_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

var tagSchema = &column.Schema{Fields: []column.Field{
	{ID: 1, Name: "id", Type: column.Of(column.Long)},
	{ID: 2, Name: "tags", Type: column.Type{Kind: column.List, Fields: []column.Field{{ID: 3, Name: "element", Type: column.Of(column.String)}}}},
}}

// tagged is a row for every list: nil is a null list, "" a null element.
func tagged(t *testing.T, path string, lists ...[]string) lakewrite.File {
	t.Helper()
	var rows []tabletest.Row
	for i, list := range lists {
		tags := tabletest.Cell{Null: list == nil}
		for _, tag := range list {
			tags.List = append(tags.List, tabletest.Cell{Null: tag == "", Val: column.StringValue(tag)})
		}
		rows = append(rows, tabletest.Row{{Val: column.IntValue(column.Long, int64(i))}, tags})
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	layout := tabletest.Layout{RowsPerGroup: 1000, PageBytes: 1 << 20, PageVersion: 1, Codec: tabletest.Uncompressed}
	if err := tabletest.WriteParquet(path, tagSchema, rows, layout); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return lakewrite.File{Path: path, Format: facts.Parquet, Records: int64(len(rows)), Size: info.Size()}
}

// TestIndexedListElements: an index declared on a list answers contains and leaves every row where it belongs.
func TestIndexedListElements(t *testing.T) {
	for _, expr := range []string{"bloom(tags)", "valueset(tags)", "bitmap(tags)"} {
		t.Run(expr, func(t *testing.T) { indexedLists(t, expr) })
	}
}

func indexedLists(t *testing.T, expr string) {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: tagSchema})
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "table", "data")
	a := tagged(t, filepath.Join(data, "a.parquet"), []string{"a", "gpu", "z"}, nil, []string{}, []string{"gpu", ""}, []string{"a", ""})
	b := tagged(t, filepath.Join(data, "b.parquet"), []string{"a", "z"}, []string{"cpu"}, []string{"z", ""})
	if _, err := w.Append(ctx, a, b); err != nil {
		t.Fatal(err)
	}
	table := open(t, w.Location(), filepath.Join(dir, "overlays"))
	ask := func(where, want string) skomer.Stats {
		t.Helper()
		got, stats := positions(t, table, skomer.Query{Where: where})
		if describe(got) != want {
			t.Errorf("%s: %s, want %s", where, describe(got), want)
		}
		return stats
	}
	check := func() {
		t.Helper()
		ask("contains(tags, 'gpu')", "a.parquet:[0 3]")
		ask("'z' = ANY(tags)", "a.parquet:[0] b.parquet:[0 2]")
		ask("NOT contains(tags, 'gpu')", "a.parquet:[2] b.parquet:[0 1]")
		ask("tags IS NULL", "a.parquet:[1]")
		ask("contains(tags, 'm')", "")
	}
	check()
	indexed(t, table, expr)
	check()
	if s := ask("contains(tags, 'gpu')", "a.parquet:[0 3]"); len(s.IndexesUsed) != 1 || s.FilesOpened != 1 {
		t.Errorf("used %v, opened %d files", s.IndexesUsed, s.FilesOpened)
	}
	if s := ask("contains(tags, 'm')", ""); s.FilesOpened != 0 {
		t.Errorf("opened %d files for a value that no list holds", s.FilesOpened)
	}
}
