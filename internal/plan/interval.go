package plan

import (
	"cmp"
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

// span is an interval of integers.
type span struct {
	lo, hi       int64
	hasLo, hasHi bool
}

func (in span) interval(k column.Kind) interval {
	return interval{lo: column.IntValue(k, in.lo), hi: column.IntValue(k, in.hi), hasLo: in.hasLo, hasHi: in.hasHi}
}

// sides compares both ends with x, as interval's below and above do.
func (in span) sides(x int64) (low, high int) {
	low, high = -1, 1
	if in.hasLo {
		low = cmp.Compare(in.lo, x)
	}
	if in.hasHi {
		high = cmp.Compare(in.hi, x)
	}
	return low, high
}

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

// compare is column.Compare without copying the common kinds.
func compare(a, b *column.Value) int {
	switch {
	case integerLike(a.Kind):
		return cmp.Compare(a.Int64(), b.Int64())
	case a.Kind == column.String || a.Kind == column.Binary:
		return strings.Compare(a.S, b.S)
	default:
		return column.Compare(*a, *b)
	}
}

// integerLike reports whether values of the kind are the integer in Value.Lo.
func integerLike(k column.Kind) bool {
	switch k {
	case column.Int, column.Long, column.Date, column.Time, column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		return true
	default:
		return false
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
		return q.relate(r.below(&q.values[0]), r.above(&q.values[0]))
	case predicate.StartsWith, predicate.Like:
		return q.start(r)
	default:
		return Maybe
	}
}

// member answers Equal and In by the least value asked for that is not below r.
func (q *question) member(r *interval) Answer {
	at := 0
	if len(q.values) > 1 {
		at = sort.Search(len(q.values), func(i int) bool { return r.below(&q.values[i]) <= 0 })
	}
	if at == len(q.values) {
		return Out
	}
	return q.relate(r.below(&q.values[at]), r.above(&q.values[at]))
}

// relate answers for an interval whose ends compare to the one value asked for as low and high. Every operator has an
// answer when the interval lies to one side of the value, and a closer one when an end touches it.
func (q *question) relate(low, high int) Answer {
	switch q.op {
	case predicate.Less:
		return q.decide(low > 0, low == 0, high < 0, false)
	case predicate.LessEqual:
		return q.decide(low > 0, false, high < 0, high == 0)
	case predicate.Greater:
		return q.decide(high < 0, high == 0, low > 0, false)
	case predicate.GreaterEqual:
		return q.decide(high < 0, false, low > 0, low == 0)
	default:
		return q.decide(low > 0 || high < 0, false, false, low == 0 && high == 0)
	}
}

// decide weighs what lies apart from the value, and what touches it and does not count when zeros are loose.
func (q *question) decide(out, outTouching, whole, wholeTouching bool) Answer {
	switch {
	case out || outTouching && !q.loose:
		return Out
	case whole || wholeTouching && !q.loose:
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
