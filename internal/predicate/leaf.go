package predicate

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"github.com/skomerdb/skomer/internal/column"
)

// canonical returns the leaf in the form that Leaf promises.
func canonical(l Leaf) *Leaf {
	if l.Op == Like {
		l = simplerPattern(l)
	}
	if isComparison(l.Op) || l.Op == In {
		l.Values = canonicalValues(l.Values)
	}
	switch {
	case isComparison(l.Op) && len(l.Values) == 0:
		l.Op = In
	case l.Op == In && len(l.Values) == 1:
		l.Op = Equal
	}
	if l.Negated && l.Dialect == SQL {
		l = positive(l)
	}
	if l.Op == In && len(l.Values) > 0 {
		l.made = &made{of: &l.Values[0], n: len(l.Values)}
	}
	return &l
}

// made is what is made of some values once.
type made struct {
	of   *column.Value
	n    int
	once sync.Once
	what any
}

// Once is what of makes of the leaf's values. Of a list it is made once for all who ask, however many indexes those are; there is room for the
// answer of one function, which depends on Values alone.
func (l *Leaf) Once(of func(values []column.Value) any) any {
	m := l.made
	if m == nil || len(l.Values) != m.n || &l.Values[0] != m.of {
		return of(l.Values)
	}
	m.once.Do(func() { m.what = of(l.Values) })
	return m.what
}

func isComparison(op Op) bool { return op >= Equal && op <= GreaterEqual }

// canonicalValues sorts, and drops repeats and NaN, which equals nothing.
func canonicalValues(values []column.Value) []column.Value {
	out := make([]column.Value, 0, len(values))
	for _, v := range values {
		if v.IsNaN() {
			continue
		}
		if v.Kind.Floating() && v.Float64() == 0 {
			v.Lo = 0
		}
		out = append(out, v)
	}
	if !slices.IsSortedFunc(out, column.Compare) {
		slices.SortFunc(out, column.Compare)
	}
	return slices.CompactFunc(out, func(a, b column.Value) bool { return column.Compare(a, b) == 0 })
}

func simplerPattern(l Leaf) Leaf {
	if text, ok := l.Pattern.Exact(); ok {
		l.Op, l.Pattern, l.Values = Equal, nil, []column.Value{column.StringValue(text)}
	} else if text, only := l.Pattern.Prefix(); only {
		l.Op, l.Pattern, l.Values = StartsWith, nil, []column.Value{column.StringValue(text)}
	}
	return l
}

// positive says a negated SQL leaf without the negation where the complement among non-null values is one operator.
func positive(l Leaf) Leaf {
	kind := l.Column.Type().Kind
	flipped, ok := map[Op]Op{Less: GreaterEqual, LessEqual: Greater, Greater: LessEqual, GreaterEqual: Less}[l.Op]
	switch {
	case ok && !kind.Floating():
		l.Op, l.Negated = flipped, false
	case l.Op == Equal && kind == column.Bool:
		l.Values, l.Negated = []column.Value{column.BoolValue(l.Values[0].Lo == 0)}, false
	}
	return l
}

// appendKey appends bytes that are equal for equal leaves only.
func (l *Leaf) appendKey(dst []byte) []byte {
	flags := byte(l.Dialect) << 2
	if l.Negated {
		flags |= 1
	}
	if l.Unknown {
		flags |= 2
	}
	dst = binary.AppendVarint(append(dst, byte(l.Op), flags), int64(l.Column.ID()))
	if l.Pattern != nil {
		dst = binary.AppendVarint(dst, int64(l.Pattern.Escape))
		return append(dst, l.Pattern.Text...)
	}
	if l.Regex != nil {
		if l.Regex.AnyCase {
			dst = append(dst, 'i')
		}
		return append(append(dst, ':'), l.Regex.Text...)
	}
	for _, v := range l.Values {
		dst = binary.AppendUvarint(dst, uint64(len(v.S)))
		dst = column.AppendKey(dst, v)
	}
	return dst
}

// Matches reports whether a row with value v passes the leaf; v is ignored where null is set. It is the reference
// meaning of a leaf. Contains is asked of a list that holds v alone.
func (l *Leaf) Matches(v column.Value, null bool) bool {
	switch {
	case l.Op == IsNull:
		return null != l.Negated
	case l.Unknown:
		return false
	case null:
		return l.Negated && l.Dialect == Iceberg
	case l.Dialect == Iceberg && l.Op != IsNaN && v.IsNaN():
		return true
	default:
		return l.holds(v) != l.Negated
	}
}

// MatchText is the plain test of Like, ILike and Match.
func (l *Leaf) MatchText(text []byte) bool {
	switch {
	case l.Pattern != nil:
		return l.Pattern.Match(text)
	case l.Regex != nil:
		return l.Regex.Match(text)
	default:
		return false
	}
}

// holds is the plain test of a non-null value, IEEE 754 on floats.
func (l *Leaf) holds(v column.Value) bool {
	switch l.Op {
	case IsNaN:
		return v.IsNaN()
	case StartsWith:
		return strings.HasPrefix(v.S, l.Values[0].S)
	case Like, ILike, Match:
		return l.MatchText([]byte(v.S))
	}
	if v.IsNaN() {
		return false
	}
	if l.Op == In {
		_, ok := slices.BinarySearchFunc(l.Values, v, column.Compare)
		return ok
	}
	c := column.Compare(v, l.Values[0])
	switch l.Op {
	case Less:
		return c < 0
	case LessEqual:
		return c <= 0
	case Greater:
		return c > 0
	case GreaterEqual:
		return c >= 0
	default:
		return c == 0
	}
}
