package skomer_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"

	"github.com/skomerdb/skomer"
)

// TestPartitionValuesMove: a file without its partition column gets another partition value by a new manifest entry. Indexes that
// took the old value do not speak any more.
func TestPartitionValuesMove(t *testing.T) {
	schema := &column.Schema{Fields: append(append([]column.Field(nil), idSchema.Fields...), column.Field{ID: 3, Name: "p", Type: column.Of(column.Long)})}
	spec := &facts.Spec{ID: 0, Fields: []facts.PartitionField{{SourceID: 3, ID: 1000, Name: "p", Transform: "identity"}}}
	for _, expr := range []string{"zonemap(p)", "bloom(p)", "ordered(p)"} {
		ctx, dir := context.Background(), t.TempDir()
		w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: schema, Partition: spec})
		if err != nil {
			t.Fatal(err)
		}
		in := func(f lakewrite.File, p int64) lakewrite.File {
			v := column.IntValue(column.Long, p)
			f.Partition = []facts.PartitionValue{{Value: v}}
			return f
		}
		path := filepath.Join(dir, "table", "data", "a.parquet")
		f := plain(t, path, longs(10, 20, 30, 40))
		if _, err := w.Append(ctx, in(f, 1)); err != nil {
			t.Fatal(err)
		}
		table := open(t, w.Location(), filepath.Join(dir, "overlays"))
		indexed(t, table, expr)
		wheres := []string{"p = 1", "p = 2", "p > 1", "p IN (2, 3)", "p IS NULL", "p = 2 AND v = 20"}
		agree(t, table, expr+" before", wheres...)
		if _, err := w.Replace(ctx, []string{path}, in(f, 2)); err != nil {
			t.Fatal(err)
		}
		agree(t, table, expr+" after", wheres...)
		if _, err := w.Append(ctx, in(f, 1)); err != nil {
			t.Fatal(err)
		}
		agree(t, table, expr+" in both", wheres...)
		if _, err := table.Sync(ctx, skomer.SyncOptions{}); err != nil {
			t.Fatal(err)
		}
		agree(t, table, expr+" in both, synced", wheres...)
	}
}
