package plan

import (
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Join is leaves of one conjunction that one probe of a source answers together. The verdict is about rows that pass all of them. It
// may be joined to the verdict of each: rows that it rules out fail the conjunction, of which every leaf is a part, and rows that it
// claims pass each leaf.
type Join struct {
	Source int // position in the sources
	Leaves []*predicate.Leaf
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
	conjunctions(t, func(kids []*predicate.Tree) {
		var leaves []*predicate.Leaf
		for _, k := range kids {
			if k.Kind == predicate.Test && places[k.Leaf] == 1 {
				leaves = append(leaves, k.Leaf)
			}
		}
		for i, s := range sources {
			if k, ok := s.Kind.(index.Joint); ok && len(leaves) > 1 {
				if joined := k.Joins(s.Columns, leaves); len(joined) > 1 {
					out = append(out, Join{i, joined})
				}
			}
		}
	})
	return out
}

func conjunctions(t *predicate.Tree, visit func(kids []*predicate.Tree)) {
	if t.Kind == predicate.And {
		visit(t.Kids)
	}
	for _, k := range t.Kids {
		conjunctions(k, visit)
	}
}
