package bitmap

import (
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
)

func TestLaw(t *testing.T) {
	law := indextest.Law{Kind: Kind{}, MaxWaves: 2, Columns: 180}
	law.Run(t)
}

// TestLawOfPages keeps no dictionary in the root and has pages so small that columns of some hundred rows fill many.
func TestLawOfPages(t *testing.T) {
	law := indextest.Law{Kind: Kind{sizes{inline: 1, page: 200}}, MaxWaves: 2, Columns: 180}
	law.Run(t)
}

// TestLawOfSmallCap has files with too many values, which may be vague about everything but nulls and NaNs.
func TestLawOfSmallCap(t *testing.T) {
	vague := 0
	law := indextest.Law{
		Kind: Kind{}, MaxWaves: 2, Columns: 180, Params: index.Params{index.ParamCap: "40"},
		Weak: func(l *predicate.Leaf, c *indextest.Column) bool {
			keys := map[string]bool{}
			for _, v := range c.Values {
				if v != nil && !v.IsNaN() {
					keys[string(column.AppendKey(nil, *v))] = true
				}
			}
			size := 0
			for k := range keys {
				size += len(k)
			}
			tooMany := (len(keys) > 40 || size > byteCap(40)) && l.Op != predicate.IsNull && l.Op != predicate.IsNaN
			if tooMany {
				vague++
			}
			return tooMany
		},
	}
	law.Run(t)
	if vague == 0 {
		t.Error("no column had too many values")
	}
}

func TestLawOfLists(t *testing.T) {
	indextest.ListLaw(t, Kind{}, 120, 2)
}

func TestLawOfListsInPages(t *testing.T) {
	indextest.ListLaw(t, Kind{sizes{inline: 1, page: 200}}, 120, 2)
}

// TestMergesEqualBuilds: where no row set is worth a copy, merges have the bytes of builds.
func TestMergesEqualBuilds(t *testing.T) {
	for _, ofList := range []bool{false, true} {
		law := indextest.MergeLaw{Kind: Kind{sizes{inline: 1, page: 200, copied: maxRowSet}}, Rounds: 18, Lists: ofList, Same: true}
		law.Run(t)
	}
}

// TestMergesInPieces copies every row set that stays together, and those of merged artifacts again.
func TestMergesInPieces(t *testing.T) {
	for _, ofList := range []bool{false, true} {
		law := indextest.MergeLaw{Kind: Kind{sizes{inline: 1, page: 200, copied: 1}}, Rounds: 18, Lists: ofList, Pieces: true}
		law.Run(t)
		law.HostileMerge(t)
	}
}

func TestForgedRowsDoNotSpread(t *testing.T) {
	for _, copied := range []int{1, maxRowSet} {
		law := indextest.MergeLaw{Kind: Kind{sizes{copied: copied}}, Rounds: 40}
		law.ForgedMerge(t, indextest.Types...)
	}
}
