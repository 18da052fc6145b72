package bloom

import (
	"testing"

	"github.com/skomerdb/skomer/internal/index/indextest"
)

func TestLaw(t *testing.T) {
	law := indextest.Law{Kind: Kind{}, MaxWaves: 1, Columns: 180}
	law.Run(t)
}

func TestLawOfLists(t *testing.T) {
	indextest.ListLaw(t, Kind{}, 120, 1)
}

func TestForgedRowsDoNotSpread(t *testing.T) {
	law := indextest.MergeLaw{Kind: Kind{}, Rounds: 40}
	law.ForgedMerge(t, indextest.Types...)
}
