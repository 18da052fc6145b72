package plan

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Fold combines the verdicts of a predicate's leaves over the same rows rows. The tree is in normal form, so that AND and
// OR are all there is.
func Fold(t *predicate.Tree, rows uint32, leaf func(*predicate.Leaf) rowset.Verdict) rowset.Verdict {
	return FoldJoint(t, rows, leaf, nil)
}

// FoldJoint is Fold where some leaves of a conjunction have a verdict together.
func FoldJoint(t *predicate.Tree, rows uint32, leaf func(*predicate.Leaf) rowset.Verdict, joint func(and *predicate.Tree) []Jointly) rowset.Verdict {
	if t.Kind == predicate.And && joint != nil {
		if together := joint(t); len(together) > 0 {
			return foldTogether(t, rows, leaf, joint, together)
		}
	}
	switch t.Kind {
	case predicate.True:
		return rowset.Exactly(rowset.All(rows))
	case predicate.False:
		return rowset.Exactly(rowset.None(rows))
	case predicate.Test:
		return leaf(t.Leaf)
	}
	v := FoldJoint(t.Kids[0], rows, leaf, joint)
	for _, k := range t.Kids[1:] {
		if t.Kind == predicate.And {
			if v.May.Empty() {
				break
			}
			v = rowset.Both(v, FoldJoint(k, rows, leaf, joint))
			continue
		}
		if v.Must.Full() {
			break
		}
		v = rowset.Either(v, FoldJoint(k, rows, leaf, joint))
	}
	return v
}

// Source is an index that covers a file, as the choice of evidence sees it.
type Source struct {
	Kind    index.Kind
	Columns []column.Path
}

// Choose picks which of a file's sources to ask about a leaf, by position in sources. An exact answer to a point question makes the
// others needless; a range may exceed what an exact kind is willing to read, so that the coarse kinds are asked as well.
func Choose(leaf *predicate.Leaf, sources []Source) []int {
	var ask, exact []int
	for i, s := range sources {
		switch s.Kind.Says(s.Columns, leaf) {
		case index.Exact:
			exact = append(exact, i)
			ask = append(ask, i)
		case index.Superset:
			ask = append(ask, i)
		}
	}
	if len(exact) > 0 && point(leaf) {
		return exact[:1]
	}
	return ask
}

// Speaking is all of a file's sources that can say something of a leaf.
func Speaking(leaf *predicate.Leaf, sources []Source) (out []int) {
	for i, s := range sources {
		if s.Kind.Says(s.Columns, leaf) != index.Nothing {
			out = append(out, i)
		}
	}
	return out
}

func point(l *predicate.Leaf) bool {
	switch l.Op {
	case predicate.Equal, predicate.In, predicate.IsNull, predicate.IsNaN:
		return true
	default:
		return false
	}
}
