package skomer_test

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
)

// TestContradictingEvidence: a manifest proves rows that an index would rule out. The answer is that without the index, which is not asked: what
// manifests settle needs no evidence.
func TestContradictingEvidence(t *testing.T) {
	for _, expr := range []string{"zonemap(v)", "bloom(v)", "ordered(v)"} {
		ctx, dir := context.Background(), t.TempDir()
		w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
		if err != nil {
			t.Fatal(err)
		}
		f := plain(t, filepath.Join(dir, "table", "data", "a.parquet"), longs(10, 20, 30, 40))
		bound := binary.LittleEndian.AppendUint64(nil, 50)
		f.Metrics = map[int]lakewrite.Metric{2: {Values: lakewrite.N(4), Nulls: lakewrite.N(0), Lower: bound, Upper: bound}}
		if _, err := w.Append(ctx, f); err != nil {
			t.Fatal(err)
		}
		table := open(t, w.Location(), filepath.Join(dir, "overlays"))
		indexed(t, table, expr)
		want, _ := positions(t, table, skomer.Query{Where: "v = 50", NoIndex: true})
		got, stats := positions(t, table, skomer.Query{Where: "v = 50"})
		if total(want) != 4 || describe(got) != describe(want) || len(stats.IndexesUsed) > 0 || len(stats.Rejected) > 0 {
			t.Errorf("%s: got %s, want %s, used %v, rejected %v", expr, describe(got), describe(want), stats.IndexesUsed, stats.Rejected)
		}
	}
}
