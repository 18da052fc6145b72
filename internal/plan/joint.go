package plan

import (
	"slices"

	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Join is leaves of one conjunction that one probe of a source answers together: its verdict is about rows that pass all of them.
type Join struct {
	Source int             // position in the sources
	Of     *predicate.Tree // the conjunction
	Leaves []*predicate.Leaf
}

// Jointly is a verdict on rows that pass all of some leaves.
type Jointly struct {
	rowset.Verdict
	Leaves []*predicate.Leaf
}

// foldTogether combines the verdicts on a conjunction's kids, and for each verdict on some of them together that with those on the
// others. Evidence that contradicts itself stays so.
func foldTogether(t *predicate.Tree, rows uint32, leaf func(*predicate.Leaf) rowset.Verdict, joint func(*predicate.Tree) []Jointly, together []Jointly) rowset.Verdict {
	kids := make([]rowset.Verdict, len(t.Kids))
	v := rowset.Exactly(rowset.All(rows))
	for i, k := range t.Kids {
		kids[i] = FoldJoint(k, rows, leaf, joint)
		v = rowset.Both(v, kids[i])
	}
	for _, j := range together {
		said := j.Verdict
		for i, k := range t.Kids {
			if k.Kind != predicate.Test || !slices.Contains(j.Leaves, k.Leaf) {
				said = rowset.Both(said, kids[i])
			}
		}
		v = rowset.Tighten(v, said)
	}
	return v
}

// Joins finds, in every conjunction of a predicate, the leaves that sources answer together. A leaf that stands in two places of the
// tree is in none.
func Joins(t *predicate.Tree, sources []Source) (out []Join) {
	some := false
	for _, s := range sources {
		_, ok := s.Kind.(index.Joint)
		some = some || ok
	}
	if !some {
		return nil
	}
	places := map[*predicate.Leaf]int{}
	t.Leaves(func(l *predicate.Leaf) { places[l]++ })
	conjunctions(t, func(and *predicate.Tree) {
		var leaves []*predicate.Leaf
		for _, k := range and.Kids {
			if k.Kind == predicate.Test && places[k.Leaf] == 1 {
				leaves = append(leaves, k.Leaf)
			}
		}
		for i, s := range sources {
			if k, ok := s.Kind.(index.Joint); ok && len(leaves) > 1 {
				if joined := k.Joins(s.Columns, leaves); len(joined) > 1 {
					out = append(out, Join{i, and, joined})
				}
			}
		}
	})
	return out
}

func conjunctions(t *predicate.Tree, visit func(and *predicate.Tree)) {
	if t.Kind == predicate.And {
		visit(t)
	}
	for _, k := range t.Kids {
		conjunctions(k, visit)
	}
}
