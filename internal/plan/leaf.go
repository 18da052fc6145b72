package plan

import (
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// leafTest judges one leaf over every file of a snapshot.
type leafTest struct {
	leaf    *predicate.Leaf
	q       question
	onNull  Answer // what a null row does under the signed leaf
	onNaN   Answer
	start   rows // before any evidence
	repeats bool // Contains: a row holds many values
	metrics metrics
	specID  []int32
	parts   []partTest
}

// newLeafTest compiles a leaf. nil: metadata can never judge it.
func newLeafTest(s *facts.Snapshot, l *predicate.Leaf) *leafTest {
	t := l.Column.Type()
	if t.Kind.Nested() || l.Column.Path.Repeated() != (l.Op == predicate.Contains) || !fits(l) {
		return nil
	}
	if l.Op == predicate.Contains && (l.Negated || t.Kind.Floating() && l.Dialect == predicate.Iceberg) {
		return nil
	}
	lt := &leafTest{leaf: l, q: ask(l), repeats: l.Op == predicate.Contains}
	lt.onNull, lt.onNaN = onNull(l), onNaN(l)
	lt.start = rows{null: true, nan: t.Kind.Floating(), rest: t.Kind != column.Unknown}
	if lt.repeats {
		lt.start = rows{rest: true}
	}
	lt.start.proves(onRest(l, &lt.q))
	lt.metrics = newMetrics(&s.Files, l.Column)
	lt.specID = s.Files.SpecID
	if !lt.repeats {
		lt.parts = newPartTests(s, l, &lt.q)
	}
	return lt
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

// ask is the leaf's question of ordinary values. A NaN among the values of Equal or In equals none of them.
func ask(l *predicate.Leaf) question {
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

// answer judges file i by all evidence.
func (lt *leafTest) answer(i int) Answer {
	r := lt.start
	lt.metrics.count(i, &r)
	if lt.q.op > predicate.IsNaN {
		lt.bound(i, &r)
	}
	for k := range lt.parts {
		if p := &lt.parts[k]; lt.specID[i] == p.spec {
			p.look(i, lt, &r)
		}
	}
	return lt.conclude(&r)
}

func (lt *leafTest) conclude(r *rows) Answer {
	a := r.answer(lt.onNull, lt.onNaN)
	if lt.repeats && a == Whole {
		return Maybe // rows of the list may be null, empty or hold other elements
	}
	return a
}

// bound lets the column's bounds in file i speak about the rest.
func (lt *leafTest) bound(i int, r *rows) {
	if in := lt.metrics.bounds(i); in.hasLo || in.hasHi {
		r.proves(signed(lt.q.over(&in), lt.leaf.Negated))
	}
}
