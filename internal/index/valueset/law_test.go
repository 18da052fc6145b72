package valueset

import (
	"testing"

	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/indextest"
)

func TestLaw(t *testing.T) {
	law := indextest.Law{Kind: Kind{}, MaxWaves: 1, Columns: 180}
	law.Run(t)
	if law.Reached("claims") == 0 {
		t.Error("no row was ever claimed for certain")
	}
}

// TestLawOfUnits keeps no set in the root, so that doubtful row groups cost a wave.
func TestLawOfUnits(t *testing.T) {
	law := indextest.Law{Kind: Kind{inline: 1}, MaxWaves: 1, Columns: 180}
	law.Run(t)
}

// TestLawOfSmallCap has row groups with too many values beside others without.
func TestLawOfSmallCap(t *testing.T) {
	law := indextest.Law{Kind: Kind{}, MaxWaves: 1, Columns: 180, Params: index.Params{index.ParamCap: "20"}}
	law.Run(t)
	if law.Reached("not kept") == 0 {
		t.Error("no column had too many values everywhere")
	}
}

func TestLawOfLists(t *testing.T) {
	indextest.ListLaw(t, Kind{}, 120, 1)
}

func TestLawOfListsInUnits(t *testing.T) {
	indextest.ListLaw(t, Kind{inline: 1}, 120, 1)
}

func TestMergesOfSetsInTheBody(t *testing.T) {
	for _, ofList := range []bool{false, true} {
		law := indextest.MergeLaw{Kind: Kind{inline: 1}, Rounds: 60, Lists: ofList}
		law.Run(t)
		law.HostileMerge(t)
	}
}

func TestForgedRowsDoNotSpread(t *testing.T) {
	law := indextest.MergeLaw{Kind: Kind{inline: 1}, Rounds: 40}
	law.ForgedMerge(t, indextest.Types...)
}
