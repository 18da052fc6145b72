package build

import (
	"context"
	"io"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/store"
)

// TestArtifactsOfLaterFormatsAreNotCarried: an artifact whose root has a version that this build does not read is made anew.
func TestArtifactsOfLaterFormatsAreNotCarried(t *testing.T) {
	const rows = 2
	for _, e := range kinds.All() {
		x := Index{Kind: e, Columns: []column.Path{indextest.Path(text)}}
		spec := index.Spec{Columns: x.Columns, Rows: rows, RowGroups: []uint32{0}, Pages: []uint32{0}}
		words := indextest.Of(text, "one", "two")
		a, err := indextest.TryBuild(indextest.Rand(t), e.Kind, &words, spec, index.Budget{TempDir: t.TempDir()})
		if err != nil || a.Root == nil {
			t.Fatal(err)
		}
		a.Root[0] = 99
		carried := []*Carried{{
			Rows: rows, Record: &lineage.Record{Algorithm: e.Algorithm(), Files: []lineage.File{{Path: "a", Size: 7, Records: rows, Tag: "t"}}},
			Open: func(context.Context) (index.Source, io.Closer, error) {
				return indextest.SourceOf(&a, rows), io.NopCloser(nil), nil
			},
		}}
		from := &origins{
			left: []Left{{File: File{Path: "a", Size: 7, Records: rows}}}, tags: []store.Tag{"t"}, at: map[string]uint32{"a": 0},
			file: make([]uint32, rows), old: []uint32{0, 1},
		}
		for what, b := range map[string]index.Builder{
			"by row ids":  &mover{ctx: t.Context(), index: x, spec: spec, origins: from, sources: carried},
			"by contents": &carrier{ctx: t.Context(), index: x, spec: spec, count: index.RowCount{Want: rows, Got: rows}, matcher: matcher{sources: carried, order: []int{0}}},
		} {
			if root, reason, err := b.Finish(&indextest.Body{}); root != nil || reason != notCarried || err != nil {
				t.Errorf("%s %s: %q, %v", e.Name, what, reason, err)
			}
		}
	}
}
