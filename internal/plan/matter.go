package plan

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Best is the most that evidence can say of a leaf over the rows of one file.
type Best struct {
	Settled Answer // what metadata proves already
	Rules   bool   // an index can rule rows out
	Proves  bool   // an index can prove rows
}

// Use is which side of an index's answer about a leaf can change the answer to the whole predicate.
type Use struct{ Rules, Proves bool }

// Matter finds the leaves that are worth asking about, given the most that can be said of each. Over AND and OR the rows that may match
// depend on nothing but the rows that may pass each leaf, and those that must on nothing but those that must. So one side of an OR of
// which nothing rules rows out lets every row pass, whatever is found out about the others; a side of an AND of which nothing
// can be proven leaves every row of it unproven.
func Matter(t *predicate.Tree, best func(*predicate.Leaf) Best) map[*predicate.Leaf]Use {
	out := map[*predicate.Leaf]Use{}
	side := func(of func(Best) bool, closed Answer, note func(*Use)) {
		open(t, func(l *predicate.Leaf) Answer {
			switch b := best(l); {
			case b.Settled != Maybe:
				return b.Settled
			case of(b):
				return Maybe
			default:
				return closed
			}
		}, func(l *predicate.Leaf) {
			u := out[l]
			note(&u)
			out[l] = u
		})
	}
	side(func(b Best) bool { return b.Rules }, Whole, func(u *Use) { u.Rules = true })
	side(func(b Best) bool { return b.Proves }, Out, func(u *Use) { u.Proves = true })
	return out
}

// open visits the leaves that can still change the answer of t: none where that is settled.
func open(t *predicate.Tree, leaf func(*predicate.Leaf) Answer, visit func(*predicate.Leaf)) {
	if answerOf(t, leaf) != Maybe {
		return
	}
	if t.Kind == predicate.Test {
		visit(t.Leaf)
	}
	for _, k := range t.Kids {
		open(k, leaf, visit)
	}
}

// answerOf is the answer of a tree by those of its leaves.
func answerOf(t *predicate.Tree, leaf func(*predicate.Leaf) Answer) Answer {
	switch t.Kind {
	case predicate.True:
		return Whole
	case predicate.False:
		return Out
	case predicate.Test:
		return leaf(t.Leaf)
	}
	out := answerOf(t.Kids[0], leaf)
	for _, k := range t.Kids[1:] {
		if t.Kind == predicate.And {
			out = min(out, answerOf(k, leaf))
		} else {
			out = max(out, answerOf(k, leaf))
		}
	}
	return out
}

// Leaf is what the manifests prove of one leaf of the predicate over the rows of file i.
func (p *Pruning) Leaf(l *predicate.Leaf, i int) Answer {
	if lt := p.tests[l]; lt != nil && !p.empty(i) {
		return lt.answer(i)
	}
	return Maybe
}

// boundCut is the length from which writers cut bounds of text: such a bound need not be a value of the file.
const boundCut = 16

// CouldBeWhole guesses whether all rows of file i may pass a leaf: not where nulls are counted that fail, or where the least or the greatest
// value fails. known is false where manifests tell nothing of either.
func (p *Pruning) CouldBeWhole(l *predicate.Leaf, i int) (could, known bool) {
	lt := p.tests[l]
	if lt == nil {
		return true, false
	}
	if at(lt.metrics.nulls, i) > 0 && lt.onNull == Out {
		return false, true
	}
	lower, upper := lt.metrics.bounds(i)
	in := decodeBounds(lt.metrics.t, lower, upper)
	fails := func(v column.Value, has bool) bool {
		if !has || len(v.S) >= boundCut {
			return false
		}
		known = true
		end := only(v)
		return signed(lt.q.over(&end), lt.leaf.Negated) == Out
	}
	if fails(in.lo, in.hasLo) || fails(in.hi, in.hasHi) {
		return false, true
	}
	return true, known
}
