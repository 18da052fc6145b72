package scan

import (
	"strings"

	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate"
)

// questions puts the leaves of the predicate to the artifacts that may speak for a file: those of one conjunction together where the
// kind answers them so, the others one by one.
func (e *evidence) questions(valid []overlay.Placement, sources []plan.Source) (out []answerOf) {
	type asking struct {
		source int
		leaf   *predicate.Leaf
	}
	joined := map[asking]bool{}
	for _, j := range plan.Joins(e.plan.Predicate, sources) {
		if !e.worth(valid[j.Source], j.Leaves) {
			for _, l := range j.Leaves {
				joined[asking{j.Source, l}] = true
			}
			continue
		}
		a := e.question(valid[j.Source], j.Leaves)
		if a == nil {
			continue
		}
		for _, l := range j.Leaves {
			joined[asking{j.Source, l}] = true
		}
		out = append(out, answerOf{of: j.Of, place: valid[j.Source], asked: a})
	}
	e.plan.Predicate.Leaves(func(l *predicate.Leaf) {
		for _, k := range plan.Choose(l, sources) {
			if joined[asking{k, l}] || !e.worth(valid[k], []*predicate.Leaf{l}) {
				continue
			}
			if a := e.question(valid[k], []*predicate.Leaf{l}); a != nil {
				out = append(out, answerOf{leaf: l, place: valid[k], asked: a})
			}
		}
	})
	return out
}

// text is the leaves that were asked together.
func (a *asked) text() string {
	var parts []string
	for _, l := range a.leaves {
		parts = append(parts, l.String())
	}
	return strings.Join(parts, " AND ")
}
