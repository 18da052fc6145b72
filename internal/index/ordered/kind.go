package ordered

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
)

const name = "ordered"

// Kind is the ordered index, on one column or on several: tuples of values. It takes no parameters.
type Kind struct{ sizes }

// sizes is what a writer cuts by; the zero value means the constants of format.go. Readers do not depend on it.
type sizes struct{ block, page, runs int }

func (s sizes) orDefault() sizes {
	if s == (sizes{}) {
		return sizes{block: blockTarget, page: pageTarget, runs: maxRuns}
	}
	return s
}

// Check wants primitive columns outside lists and maps, eight at most.
func (Kind) Check(cols []column.Path, params index.Params) error {
	if _, err := partsOf(cols); err != nil {
		return err
	}
	return index.KnownParams(name, params)
}

// Says is exact for comparisons, IN, prefixes and null and NaN tests, negated or not; LIKE with a literal prefix gives the rows
// with that prefix. Values that differ only past their first 1,024 bytes, ranges above the read limit and null or NaN sets too
// large to keep make a single verdict weaker than this. Of several columns only the first is looked up alone, and not in a list of some
// thousand values.
func (Kind) Says(cols []column.Path, leaf *predicate.Leaf) index.Power {
	if len(cols) > 1 && (leaf.Op == predicate.Like && leaf.Negated || len(leaf.Values) > maxListed) {
		return index.Nothing
	}
	switch {
	case !index.About(cols[:min(len(cols), 1)], leaf) || leaf.Op == predicate.Contains:
		return index.Nothing
	case leaf.Op == predicate.ILike || leaf.Op == predicate.Match:
		return index.Nothing
	case leaf.Op == predicate.Like:
		if prefix, _ := leaf.Pattern.Prefix(); prefix == "" {
			return index.Nothing
		}
		return index.Superset
	case leaf.Op == predicate.In && len(leaf.Values) == 0 && index.PassesNaN(leaf):
		return index.Superset
	default:
		return index.Exact
	}
}

// Joins picks, of one column, comparisons and lists that bound a range together; of several, the leaves on the first columns that have
// equalities, and on the column behind them.
func (Kind) Joins(cols []column.Path, leaves []*predicate.Leaf) []*predicate.Leaf {
	if len(cols) == 1 {
		return ranges(cols[0].Leaf().ID, leaves)
	}
	parts, err := partsOf(cols)
	if err != nil {
		return nil
	}
	return conjunctionOf(leaves, parts).used
}

// ranges is the leaves on a column that are intervals of its keys.
func ranges(id int, leaves []*predicate.Leaf) (out []*predicate.Leaf) {
	for _, l := range leaves {
		bounds := l.Op >= predicate.Equal && l.Op <= predicate.StartsWith
		if len(l.Column.Path) > 0 && l.Column.ID() == id && bounds && !l.Negated && !l.Unknown && !index.PassesNaN(l) {
			out = append(out, l)
		}
	}
	return out
}
