package ordered

import (
	"testing"

	"github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
)

func TestLaw(t *testing.T) {
	law := indextest.Law{Kind: Kind{}, MaxWaves: 2, Columns: 180, Weak: longLiteral}
	law.Run(t)
}

// TestLawOfManyBlocks has blocks and pages so small that columns of some hundred rows fill both levels of the directory.
func TestLawOfManyBlocks(t *testing.T) {
	law := indextest.Law{Kind: Kind{sizes{block: 48, page: 200, runs: 3}}, MaxWaves: 2, Columns: 180, Weak: longLiteral}
	law.Run(t)
}

// longLiteral excuses leaves that compare with more bytes than stored keys have.
func longLiteral(l *predicate.Leaf, _ *indextest.Column) bool {
	for _, v := range l.Values {
		if len(v.S) > maxKey {
			return true
		}
	}
	return false
}

// TestMergesOfManyBlocks merges both levels of the directory, and keys that go on from block to block.
func TestMergesOfManyBlocks(t *testing.T) {
	law := indextest.MergeLaw{Kind: Kind{sizes{block: 48, page: 200, runs: 3}}, Rounds: 54, Same: true}
	law.Run(t)
	law.HostileMerge(t)
}

func TestForgedRowsDoNotSpread(t *testing.T) {
	law := indextest.MergeLaw{Kind: Kind{sizes{block: 48, page: 2000, runs: 3}}, Rounds: 40}
	law.ForgedMerge(t, indextest.Types...)
}
