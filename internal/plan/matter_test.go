package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// TestWhatDoesNotMatterChangesNothing: over random trees, of whose leaves random ones can be answered, leaving out the answers that Matter
// calls useless changes neither the rows that may match nor those that must. Of what it calls useful, some does.
func TestWhatDoesNotMatterChangesNothing(t *testing.T) {
	rng := indextest.Rand(t)
	const rows = 70
	set := func(p float64) *rowset.Set {
		out := []uint32{}
		for i := range uint32(rows) {
			if rng.Float64() < p {
				out = append(out, i)
			}
		}
		return rowset.FromRows(rows, out)
	}
	var leaves []*predicate.Leaf
	var draw func(depth int) *predicate.Tree
	draw = func(depth int) *predicate.Tree {
		if depth == 0 || rng.IntN(4) == 0 {
			if len(leaves) > 0 && rng.IntN(6) == 0 { // one that stands elsewhere too
				return &predicate.Tree{Kind: predicate.Test, Leaf: leaves[rng.IntN(len(leaves))]}
			}
			k := predicate.Of(predicate.Leaf{Column: predicate.Column{Path: column.Path{{ID: len(leaves), Type: column.Of(column.Long)}}}, Op: predicate.IsNull})
			leaves = append(leaves, k.Leaf)
			return k
		}
		x := &predicate.Tree{Kind: []predicate.Kind{predicate.And, predicate.Or}[rng.IntN(2)]}
		for range 2 + rng.IntN(3) {
			x.Kids = append(x.Kids, draw(depth-1))
		}
		return x
	}
	useless, useful := 0, 0
	for range 3000 {
		leaves = nil
		tree := draw(3)
		bests, said := map[*predicate.Leaf]Best{}, map[*predicate.Leaf]rowset.Verdict{}
		for _, l := range leaves {
			truth := set(0.5)
			b := Best{Rules: rng.IntN(3) > 0, Proves: rng.IntN(3) > 0, Settled: []Answer{Out, Maybe, Maybe, Maybe, Maybe, Whole}[rng.IntN(6)]}
			v := rowset.Maybe(rows)
			switch {
			case b.Settled == Out:
				v = rowset.Exactly(rowset.None(rows))
			case b.Settled == Whole:
				v = rowset.Exactly(rowset.All(rows))
			case b.Rules:
				v.May = rowset.Or(truth, set(0.2))
			}
			if b.Proves && b.Settled == Maybe {
				v.Must = rowset.And(truth, set(0.8))
			}
			bests[l], said[l] = b, v
		}
		use := Matter(tree, func(l *predicate.Leaf) Best { return bests[l] })
		all := Fold(tree, rows, func(l *predicate.Leaf) rowset.Verdict { return said[l] })
		some := Fold(tree, rows, func(l *predicate.Leaf) rowset.Verdict {
			v := said[l]
			if bests[l].Settled != Maybe {
				return v
			}
			if !use[l].Rules {
				v.May = rowset.All(rows)
			}
			if !use[l].Proves {
				v.Must = rowset.None(rows)
			}
			return v
		})
		require.True(t, all.May.Equal(some.May) && all.Must.Equal(some.Must), "%s", tree)
		for _, l := range leaves {
			b := bests[l]
			if b.Settled == Maybe && (b.Rules && !use[l].Rules || b.Proves && !use[l].Proves) {
				useless++
			}
			require.False(t, use[l].Rules && !b.Rules || use[l].Proves && !b.Proves || b.Settled != Maybe && use[l] != Use{})
			without := Fold(tree, rows, func(o *predicate.Leaf) rowset.Verdict {
				if o == l && b.Settled == Maybe {
					return rowset.Maybe(rows)
				}
				return said[o]
			})
			if !without.May.Equal(all.May) || !without.Must.Equal(all.Must) {
				useful++
			}
		}
	}
	require.Greater(t, useless, 1000)
	require.Greater(t, useful, 1000)
}

// TestOneSideOfAnOr: nothing about a = 1 matters where nothing rules out b = 2, but what proves it does.
func TestOneSideOfAnOr(t *testing.T) {
	a, b := longLeaf(predicate.Equal, 1, 1), longLeaf(predicate.Equal, 2, 2)
	or := &predicate.Tree{Kind: predicate.Or, Kids: []*predicate.Tree{{Kind: predicate.Test, Leaf: a}, {Kind: predicate.Test, Leaf: b}}}
	use := func(x, y Best) [2]Use {
		out := Matter(or, func(l *predicate.Leaf) Best {
			if l == a {
				return x
			}
			return y
		})
		return [2]Use{out[a], out[b]}
	}
	require.Equal(t, [2]Use{}, use(Best{Rules: true}, Best{}))
	require.Equal(t, [2]Use{{Proves: true}}, use(Best{Rules: true, Proves: true}, Best{}))
	require.Equal(t, [2]Use{{Rules: true}, {Rules: true}}, use(Best{Rules: true}, Best{Rules: true}))
	require.Equal(t, [2]Use{{Rules: true}}, use(Best{Rules: true}, Best{Settled: Out}))
	require.Equal(t, [2]Use{}, use(Best{Rules: true, Proves: true}, Best{Settled: Whole}))
}
