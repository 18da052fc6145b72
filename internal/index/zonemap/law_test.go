package zonemap

import (
	"testing"

	"github.com/skomerdb/skomer/internal/index/indextest"
)

func TestLaw(t *testing.T) {
	law := indextest.Law{Kind: Kind{}, MaxWaves: 1, Columns: 180}
	law.Run(t)
}

// TestLawOfPageBlocks keeps no page in the root, so that doubtful row groups cost a wave.
func TestLawOfPageBlocks(t *testing.T) {
	law := indextest.Law{Kind: Kind{sizes{inline: 1, block: 60}}, MaxWaves: 1, Columns: 180}
	law.Run(t)
	if law.Reached("claims") == 0 {
		t.Error("no row was ever claimed for certain")
	}
}

func TestMergesOfBlocks(t *testing.T) {
	law := indextest.MergeLaw{Kind: Kind{sizes{inline: 1, block: 40}}, Rounds: 54}
	law.Run(t)
	law.HostileMerge(t)
}

func TestForgedRowsDoNotSpread(t *testing.T) {
	law := indextest.MergeLaw{Kind: Kind{sizes{inline: 1, block: 40}}, Rounds: 40}
	law.ForgedMerge(t, indextest.Types...)
}
