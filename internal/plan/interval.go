package plan

import (
	"sort"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
)

// interval holds values between lo and hi, both inclusive; a side without its flag is open. With prefix set, hi is a byte
// string and every extension of it is inside too.
type interval struct {
	lo, hi       column.Value
	hasLo, hasHi bool
	prefix       bool
}

// only is the interval of one value.
func only(v column.Value) interval { return interval{lo: v, hi: v, hasLo: true, hasHi: true} }

// below compares the low end with v: its sign, and -1 for an open end.
func (r *interval) below(v *column.Value) int {
	if !r.hasLo {
		return -1
	}
	return compare(&r.lo, v)
}

// above compares the high end with v: its sign, and 1 for an open end.
func (r *interval) above(v *column.Value) int {
	if !r.hasHi || r.prefix && strings.HasPrefix(v.S, r.hi.S) {
		return 1
	}
	return compare(&r.hi, v)
}

// compare is column.Compare with the common kinds first.
func compare(a, b *column.Value) int {
	switch a.Kind {
	case column.Int, column.Long, column.Date, column.Time, column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		x, y := int64(a.Lo), int64(b.Lo)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		default:
			return 0
		}
	default:
		return column.Compare(*a, *b)
	}
}

// question is the plain, unsigned test that a leaf makes of a value which is neither null nor NaN.
type question struct {
	op     predicate.Op
	values []column.Value // without NaN
	prefix string         // StartsWith, Like: what a match starts with
	exact  bool           // StartsWith, Like: whatever has the prefix matches
	// pattern is Like's, asked when the value is known.
	pattern *predicate.Pattern
	// loose marks float comparisons by engines that may or may not tell -0.0 from 0.0, when the literal is a zero: the
	// zero itself can then fall on either side.
	loose bool
}

// over is what the question answers when all that is known of a value is that it lies in r.
func (q *question) over(r *interval) Answer {
	switch q.op {
	case predicate.Equal, predicate.In, predicate.Contains:
		return q.member(r)
	case predicate.Less, predicate.LessEqual, predicate.Greater, predicate.GreaterEqual:
		if len(q.values) == 0 {
			return Maybe // NaN was asked for: engines differ
		}
		return q.side(r)
	case predicate.StartsWith, predicate.Like:
		return q.start(r)
	default:
		return Maybe
	}
}

// member answers Equal and In: Out when no value asked for is in r, Whole when r is one of them.
func (q *question) member(r *interval) Answer {
	at := sort.Search(len(q.values), func(i int) bool { return r.below(&q.values[i]) <= 0 })
	if at == len(q.values) || r.above(&q.values[at]) < 0 {
		return Out
	}
	v := &q.values[at]
	if !q.loose && r.below(v) == 0 && r.above(v) == 0 {
		return Whole
	}
	return Maybe
}

// side answers the four order comparisons. A comparison is Out when the whole of r lies on the other side of v, Whole when it
// lies on the asked side; edge says what an end that equals v counts as.
func (q *question) side(r *interval) Answer {
	v := &q.values[0]
	low, high := r.below(v), r.above(v)
	switch q.op {
	case predicate.Less:
		return q.decide(high < 0, low > 0, false, low == 0)
	case predicate.LessEqual:
		return q.decide(high < 0, low > 0, high == 0, false)
	case predicate.Greater:
		return q.decide(low > 0, high < 0, false, high == 0)
	default:
		return q.decide(low > 0, high < 0, low == 0, false)
	}
}

// decide turns strict relations, and those that only hold with equality, into an answer.
func (q *question) decide(whole, out, wholeAtEdge, outAtEdge bool) Answer {
	switch {
	case out || outAtEdge && !q.loose:
		return Out
	case whole || wholeAtEdge && !q.loose:
		return Whole
	default:
		return Maybe
	}
}

// start answers StartsWith and Like by the prefix that matches have.
func (q *question) start(r *interval) Answer {
	p := q.prefix
	loHas := p == "" || r.hasLo && strings.HasPrefix(r.lo.S, p)
	hiHas := p == "" || r.hasHi && strings.HasPrefix(r.hi.S, p)
	switch {
	case loHas && hiHas:
		return q.match(r)
	case r.hasLo && !loHas && r.lo.S > p:
		return Out
	case r.hasHi && r.hi.S < p && !(r.prefix && strings.HasPrefix(p, r.hi.S)):
		return Out
	default:
		return Maybe
	}
}

// match answers for values that all start with the prefix.
func (q *question) match(r *interval) Answer {
	single := r.hasLo && r.hasHi && !r.prefix && r.lo.S == r.hi.S
	switch {
	case q.exact:
		return Whole
	case !single:
		return Maybe
	case q.pattern.Match([]byte(r.lo.S)):
		return Whole
	default:
		return Out
	}
}
