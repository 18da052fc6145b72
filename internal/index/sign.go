package index

import (
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Known is what an artifact knows of a leaf without its sign. Of every row exactly one holds: the value is null, the leaf is true
// of it, or false of it. NaN rows are not null; a comparison is false of them. Of null and NaN tests only Null and NaN are used.
type Known struct{ True, False, Null, NaN rowset.Verdict }

// Sign gives the verdict on a leaf as it stands: negated or not, in its dialect (see package predicate).
func Sign(leaf *predicate.Leaf, k Known) rowset.Verdict {
	everyRow := rowset.All(k.Null.May.Size())
	if leaf.Op == predicate.IsNaN {
		k.True, k.False = k.NaN, rowset.Negate(rowset.Either(k.Null, k.NaN), everyRow)
	}
	switch {
	case leaf.Op == predicate.IsNull && leaf.Negated:
		return rowset.Negate(k.Null, everyRow)
	case leaf.Op == predicate.IsNull:
		return k.Null
	case !leaf.Negated && !PassesNaN(leaf):
		return k.True
	case !leaf.Negated && len(leaf.Values) == 0:
		return rowset.AtMost(k.NaN.May) // "in ()" of floats: whether a NaN passes is the evaluator's to say
	case !leaf.Negated:
		return rowset.Either(k.True, k.NaN)
	case leaf.Dialect == predicate.SQL:
		return k.False
	default:
		return rowset.Tighten(rowset.Either(k.False, k.Null), rowset.Negate(k.True, everyRow))
	}
}

// PassesNaN reports whether a NaN row passes whatever the comparison says of it.
func PassesNaN(leaf *predicate.Leaf) bool {
	return leaf.Dialect == predicate.Iceberg && leaf.Column.Type().Kind.Floating() &&
		leaf.Op >= predicate.Equal && leaf.Op <= predicate.In
}

// FalseOf is where a leaf is false, given where it is true and where the value is null.
func FalseOf(isTrue, null rowset.Verdict) rowset.Verdict {
	return rowset.Negate(rowset.Either(isTrue, null), rowset.All(null.May.Size()))
}
