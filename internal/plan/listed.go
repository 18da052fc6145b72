package plan

import (
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Listed reports whether a manifest can hold a file that is left, by what the manifest list says of its partition tuples.
func (s *Sieve) Listed(l *facts.Listed) bool {
	spec := s.shell.Specs[int(l.Spec)]
	if spec == nil || len(l.Fields) != len(spec.Fields) {
		return true
	}
	return s.root.listed(spec, l)
}

func (m *mesh) listed(spec *facts.Spec, l *facts.Listed) bool {
	switch m.kind {
	case predicate.Test:
		return m.leaf.listed(spec, l)
	case predicate.And:
		return !slices.ContainsFunc(m.kids, func(k *mesh) bool { return !k.listed(spec, l) })
	case predicate.Or:
		return slices.ContainsFunc(m.kids, func(k *mesh) bool { return k.listed(spec, l) })
	default:
		return true
	}
}

// listed holds one leaf, whose null rows fail, against the summaries of the fields that are made from its column.
func (st *strainer) listed(spec *facts.Spec, l *facts.Listed) bool {
	if st.repeated() {
		return true
	}
	q := questionOf(st.leaf)
	for i := range spec.Fields {
		if f := &spec.Fields[i]; f.SourceID == st.id && !st.possible(&q, f, &l.Fields[i]) {
			return false
		}
	}
	return true
}

func (st *strainer) possible(q *question, f *facts.PartitionField, sum *facts.Summary) bool {
	t := parseTransform(f.Transform, st.leaf.Column.Type())
	if t.kind == opaque || sum.Lower == nil || sum.Upper == nil || sum.NaN && st.kind.Floating() {
		return true
	}
	of := t.of
	switch t.kind {
	case bucket, year, month, day, hour:
		of = column.Of(column.Int)
	}
	lower, ok := decodeBound(of, sum.Lower)
	upper, ok2 := decodeBound(of, sum.Upper)
	if !ok || !ok2 || lower.IsNaN() || upper.IsNaN() || compare(&lower, &upper) > 0 {
		return true
	}
	if t.kind == bucket {
		return st.bucketed(q, t, lower.Int64(), upper.Int64())
	}
	first, ok := t.values(&lower)
	last, ok2 := t.values(&upper)
	if !ok || !ok2 {
		return true
	}
	in := interval{lo: first.lo, hasLo: first.hasLo, hi: last.hi, hasHi: last.hasHi, prefix: last.prefix}
	return q.over(&in) != Out
}

// bucketed reports whether a value that is asked for falls into the buckets from lower to upper.
func (st *strainer) bucketed(q *question, t transform, lower, upper int64) bool {
	if q.op != predicate.Equal && q.op != predicate.In || !hashStable(st.shell, st.id, t.of) {
		return true
	}
	return slices.ContainsFunc(t.buckets(q.values), func(b int64) bool { return lower <= b && b <= upper })
}
