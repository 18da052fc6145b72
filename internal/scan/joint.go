package scan

import (
	"strings"

	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/plan"
)

// questions puts the leaves of the predicate to the artifacts that may speak for a file: those of one conjunction together where the
// kind answers them so, the others one by one, and none whose answer can change nothing.
func (e *evidence) questions(i int, valid []overlay.Placement, sources []plan.Source) (out []answerOf) {
	offers := e.offers(sources, func(k int) int { return valid[k].Index }, plan.Choose)
	use := e.matter(&e.plan.Files[i], offers)
	for _, o := range offers {
		p := valid[o.source]
		switch {
		case o.dear:
			e.refused(p.Index, o.leaves)
			continue
		case !o.matters(use):
			e.indexes[p.Index].vain = true
			continue
		}
		if a := e.question(p, o.leaves); a != nil {
			e.counted(p.Index, o.leaves)
			out = append(out, answerOf{leaf: o.leaf(), of: o.of, place: p, asked: a})
		}
	}
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
