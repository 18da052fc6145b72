package plan

import (
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
)

// meaning is what a leaf does to each class of rows, whatever the evidence.
type meaning struct {
	leaf    *predicate.Leaf
	q       question // of the rest
	onNull  Answer   // what a null row does under the signed leaf
	onNaN   Answer
	start   rows // before any evidence
	repeats bool // Contains: a row holds many values
}

// judgeable reports whether statements about a column's values can prove anything of the leaf: of an expression they prove nothing.
func judgeable(l *predicate.Leaf) bool {
	t := l.Column.Type()
	if t.Kind.Nested() || l.Column.Path.Derived() || l.Column.Path.Repeated() != (l.Op == predicate.Contains) || !fits(l) {
		return false
	}
	return l.Op != predicate.Contains || !l.Negated && !(t.Kind.Floating() && l.Dialect == predicate.Iceberg)
}

// ask takes the meaning of a judgeable leaf.
func (m *meaning) ask(l *predicate.Leaf) {
	kind := l.Column.Type().Kind
	*m = meaning{leaf: l, q: questionOf(l), onNull: onNull(l), onNaN: onNaN(l), repeats: l.Op == predicate.Contains}
	m.start = rows{null: true, nan: kind.Floating(), rest: kind != column.Unknown}
	if m.repeats {
		m.start = rows{rest: true}
	}
	m.start.proves(onRest(l, &m.q))
}

// conclude is the answer of the whole leaf.
func (m *meaning) conclude(r *rows) Answer {
	a := r.answer(m.onNull, m.onNaN)
	if m.repeats && a == Whole {
		return Maybe // rows of the list may be null, empty or hold other elements
	}
	return a
}

// fits reports whether the literals are of the column's type.
func fits(l *predicate.Leaf) bool {
	t := l.Column.Type()
	for _, v := range l.Values {
		if v.Kind != t.Kind || t.Kind == column.Decimal && int(v.Scale) != t.Scale {
			return false
		}
	}
	switch l.Op {
	case predicate.Like:
		return t.Kind == column.String && l.Pattern != nil
	case predicate.StartsWith:
		return t.Kind == column.String && len(l.Values) == 1
	case predicate.Equal, predicate.Less, predicate.LessEqual, predicate.Greater, predicate.GreaterEqual, predicate.Contains:
		return len(l.Values) == 1
	default:
		return true
	}
}

// questionOf is the leaf's question of ordinary values. A NaN among the values of Equal or In equals none of them.
func questionOf(l *predicate.Leaf) question {
	q := question{op: l.Op}
	switch l.Op {
	case predicate.StartsWith:
		q.prefix, q.exact = l.Values[0].S, true
		return q
	case predicate.Like:
		if text, ok := l.Pattern.Exact(); ok {
			return question{op: predicate.Equal, values: []column.Value{column.StringValue(text)}}
		}
		q.prefix, q.exact = l.Pattern.Prefix()
		q.pattern = l.Pattern
		return q
	}
	for _, v := range l.Values {
		if v.IsNaN() {
			continue
		}
		q.values = append(q.values, v)
		if l.Dialect == predicate.Iceberg && v.Kind.Floating() && v.Float64() == 0 {
			q.loose = true
		}
	}
	slices.SortFunc(q.values, column.Compare)
	return q
}

// onNull is what a null row does: SQL fails it whatever the sign, Iceberg passes it when the leaf is negated.
func onNull(l *predicate.Leaf) Answer {
	switch {
	case l.Op == predicate.IsNull:
		return signed(Whole, l.Negated)
	case l.Negated && l.Dialect == predicate.Iceberg:
		return Whole
	default:
		return Out
	}
}

// onNaN is what a NaN row does: IEEE 754 in SQL; engines that speak Iceberg's JSON differ, so that nothing is promised.
func onNaN(l *predicate.Leaf) Answer {
	switch {
	case l.Op == predicate.IsNaN:
		return signed(Whole, l.Negated)
	case l.Op == predicate.IsNull:
		return signed(Out, l.Negated)
	case l.Dialect == predicate.Iceberg:
		return Maybe
	default:
		return signed(Out, l.Negated)
	}
}

// onRest is what ordinary rows do when the leaf alone decides it: they are no nulls, no NaNs and in no empty list.
func onRest(l *predicate.Leaf, q *question) Answer {
	empty := (q.op == predicate.Equal || q.op == predicate.In) && len(q.values) == 0
	if empty || l.Op == predicate.IsNull || l.Op == predicate.IsNaN {
		return signed(Out, l.Negated)
	}
	return Maybe
}

func signed(a Answer, negated bool) Answer {
	if negated {
		return a.not()
	}
	return a
}
