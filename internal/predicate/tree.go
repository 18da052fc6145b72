package predicate

import (
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
)

// Limits of a predicate that comes from outside; Check holds them.
const (
	MaxDepth  = 1000    // nested AND and OR of the normal form
	MaxLeaves = 10_000  // leaves of a tree
	MaxValues = 1 << 20 // values of all leaves together
)

// Always is the predicate that every row passes.
func Always() *Tree { return &Tree{Kind: True} }

// Never is the predicate that no row passes.
func Never() *Tree { return &Tree{Kind: False} }

// Of is the tree of one leaf, made canonical. The leaf's values must be of the column's type.
func Of(l Leaf) *Tree { return &Tree{Kind: Test, Leaf: canonical(l)} }

// All is the conjunction: flattened, without constants and repeated leaves. Of no trees it is Always.
func All(trees ...*Tree) *Tree { return junction(And, True, False, trees) }

// Any is the disjunction: flattened, without constants and repeated leaves. Of no trees it is Never.
func Any(trees ...*Tree) *Tree { return junction(Or, False, True, trees) }

func junction(kind, neutral, dominant Kind, trees []*Tree) *Tree {
	if len(trees) == 1 {
		return trees[0]
	}
	kids := make([]*Tree, 0, len(trees))
	for _, t := range trees {
		switch t.Kind {
		case dominant:
			return &Tree{Kind: dominant}
		case neutral:
		case kind:
			kids = append(kids, t.Kids...)
		default:
			kids = append(kids, t)
		}
	}
	kids = withoutRepeats(kids)
	switch len(kids) {
	case 0:
		return &Tree{Kind: neutral}
	case 1:
		return kids[0]
	default:
		return &Tree{Kind: kind, Kids: kids}
	}
}

func withoutRepeats(kids []*Tree) []*Tree {
	if len(kids) < 2 {
		return kids
	}
	seen := make(map[string]bool, len(kids))
	var key []byte
	return slices.DeleteFunc(kids, func(t *Tree) bool {
		if t.Kind != Test {
			return false
		}
		key = t.Leaf.appendKey(key[:0])
		if seen[string(key)] {
			return true
		}
		seen[string(key)] = true
		return false
	})
}

// Not is the negation, pushed into the leaves. In SQL it is exact in three-valued logic: rows on which t is unknown pass
// neither t nor Not(t). A tree that was widened while it was bound (icebergjson's transforms) must not be negated.
func Not(t *Tree) *Tree {
	switch t.Kind {
	case True:
		return Never()
	case False:
		return Always()
	case Test:
		l := *t.Leaf
		l.Negated = !l.Negated && !l.Unknown
		return Of(l)
	default:
		kids := make([]*Tree, len(t.Kids))
		for i, k := range t.Kids {
			kids[i] = Not(k)
		}
		if t.Kind == And {
			return Any(kids...)
		}
		return All(kids...)
	}
}

// Check holds the limits above.
func (t *Tree) Check() error {
	if d := t.depth(); d > MaxDepth {
		return fault.New(fault.Invalid, "filter", "AND and OR are nested %d deep, more than the limit of %d", d, MaxDepth)
	}
	leaves, values := 0, 0
	t.Leaves(func(l *Leaf) {
		leaves++
		values += len(l.Values)
	})
	if leaves > MaxLeaves {
		return TooManyLeaves()
	}
	if values > MaxValues {
		return fault.New(fault.Invalid, "filter", "it has %d values, more than the limit of %d", values, MaxValues)
	}
	return nil
}

// TooManyLeaves is the error of a filter with more than MaxLeaves tests.
func TooManyLeaves() error {
	return fault.New(fault.Invalid, "filter", "it has more than %d conditions, which is the limit", MaxLeaves).
		WithFix("write many equalities of one column as IN (…)")
}

func (t *Tree) depth() int {
	deepest := 0
	for _, k := range t.Kids {
		deepest = max(deepest, k.depth())
	}
	if t.Kind == And || t.Kind == Or {
		deepest++
	}
	return deepest
}
