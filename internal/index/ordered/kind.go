package ordered

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
)

const name = "ordered"

// Kind is the ordered index. It takes no parameters.
type Kind struct{ sizes }

// sizes is what a writer cuts by; the zero value means the constants of format.go. Readers do not depend on it.
type sizes struct{ block, page, runs int }

func (s sizes) orDefault() sizes {
	if s == (sizes{}) {
		return sizes{block: blockTarget, page: pageTarget, runs: maxRuns}
	}
	return s
}

// Check wants one primitive column outside lists and maps.
func (Kind) Check(cols []column.Path, params index.Params) error {
	if _, err := index.OneColumn(name, cols); err != nil {
		return err
	}
	return index.KnownParams(name, params)
}

// Says is exact for comparisons, IN, prefixes and null and NaN tests, negated or not; LIKE with a literal prefix gives the rows
// with that prefix. Values that differ only past their first 1,024 bytes, ranges above the read limit and null or NaN sets too
// large to keep make a single verdict weaker than this.
func (Kind) Says(cols []column.Path, leaf *predicate.Leaf) index.Power {
	switch {
	case !index.About(cols, leaf) || leaf.Op == predicate.Contains:
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
