package indextest

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Ops is every operator that makes sense on a primitive column of type t.
func Ops(t column.Type) []predicate.Op {
	ops := []predicate.Op{predicate.IsNull, predicate.Equal, predicate.Less, predicate.LessEqual, predicate.Greater, predicate.GreaterEqual, predicate.In}
	if t.Kind.Floating() {
		ops = append(ops, predicate.IsNaN)
	}
	if t.Kind == column.String {
		ops = append(ops, predicate.StartsWith, predicate.Like, predicate.ILike, predicate.Match)
	}
	return ops
}

// DrawLeaf draws a leaf on column c: its values are the column's own half of the time, and of type t (the column's present type,
// which may be a promotion of c.Type).
func DrawLeaf(r *rand.Rand, c *Column, t column.Type) *predicate.Leaf {
	ops := Ops(t)
	l := &predicate.Leaf{
		Column: predicate.Column{Path: Path(t)}, Op: ops[r.IntN(len(ops))],
		Negated: r.IntN(2) == 0, Dialect: predicate.Dialect(r.IntN(2)),
	}
	switch l.Op {
	case predicate.IsNull, predicate.IsNaN:
	case predicate.In:
		n := r.IntN(6)
		if r.IntN(20) == 0 {
			n = 300
		}
		for range n {
			l.Values = append(l.Values, literal(r, c, t))
		}
		slices.SortFunc(l.Values, column.Compare)
		l.Values = slices.CompactFunc(l.Values, func(a, b column.Value) bool { return column.Compare(a, b) == 0 })
	case predicate.StartsWith:
		l.Values = []column.Value{column.StringValue(prefixOf(r, literal(r, c, t).S))}
	case predicate.Like:
		l.Pattern = Pattern(pattern(r, literal(r, c, t).S))
	case predicate.ILike:
		text, escape := pattern(r, otherCase(r, literal(r, c, t).S))
		l.Pattern = AnyCase(text, escape)
	case predicate.Match:
		l.Regex = Regex(expression(r, literal(r, c, t).S), r.IntN(3) == 0)
	default:
		l.Values = []column.Value{literal(r, c, t)}
	}
	return l
}

func literal(r *rand.Rand, c *Column, t column.Type) column.Value {
	if len(c.Values) > 0 && r.IntN(3) > 0 {
		if v := c.Values[r.IntN(len(c.Values))]; v != nil {
			return Promote(*v, t)
		}
	}
	return Value(r, t)
}

// Promote is v as a value of type t, which v's type was promoted to.
func Promote(v column.Value, t column.Type) column.Value {
	if v.Kind == column.Float && t.Kind == column.Double {
		return column.DoubleValue(v.Float64())
	}
	v.Kind = t.Kind
	return v
}

func prefixOf(r *rand.Rand, s string) string {
	n := r.IntN(len(s) + 1)
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	return s[:n]
}

// pattern makes a LIKE pattern from s: some runes become wildcards, some are escaped.
func pattern(r *rand.Rand, s string) (text string, escape rune) {
	if r.IntN(2) == 0 {
		s = prefixOf(r, s)
	}
	escape = []rune{0, '\\', '!'}[r.IntN(3)]
	var out []rune
	wild := r.IntN(3) // more would make the oracle slow
	if len(s) > 200 {
		wild = min(wild, 1)
	}
	for _, c := range s {
		switch {
		case wild > 0 && r.IntN(4) == 0:
			wild--
			out = append(out, []rune{'%', '_'}[r.IntN(2)])
		case escape != 0 && (c == escape || c == '%' || c == '_'):
			out = append(out, escape, c)
		case c == '%':
			out = append(out, '_')
		default:
			out = append(out, c)
		}
	}
	if r.IntN(2) == 0 {
		out = append(out, '%')
	}
	return string(out), escape
}

// otherCase is s with some runes in another case of theirs.
func otherCase(r *rand.Rand, s string) string {
	var out []rune
	for _, c := range s {
		for range r.IntN(3) {
			c = unicode.SimpleFold(c)
		}
		out = append(out, c)
	}
	return string(out)
}

// expression makes a regular expression from s: some of it becomes classes, alternatives, repeats.
func expression(r *rand.Rand, s string) string {
	runes := []rune(prefixOf(r, s))
	if r.IntN(2) == 0 && len(runes) > 0 {
		runes = runes[r.IntN(len(runes)):]
	}
	runes = runes[:min(len(runes), 80)]
	var b strings.Builder
	if r.IntN(4) == 0 {
		b.WriteString("^")
	}
	for i := range runes {
		q := regexp.QuoteMeta(string(runes[i]))
		switch r.IntN(14) {
		case 0:
			b.WriteString(".")
		case 1:
			b.WriteString("(" + q + "|xyz)")
		case 2:
			b.WriteString("[" + regexp.QuoteMeta(string(runes[i])) + "q]")
		case 3:
			b.WriteString(q + []string{"+", "*", "?", "{1,3}", "{2}"}[r.IntN(5)])
		case 4:
			b.WriteString("(?:" + q + ")")
		case 5:
			b.WriteString(".*" + q)
		default:
			b.WriteString(q)
		}
	}
	return b.String() + []string{"", "", "", "$", "(ab|bc)?", "|zebra", "\\b", "[^x]"}[r.IntN(8)]
}
