package indextest

import (
	"bytes"
	"math"
	"math/big"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Passes is the oracle: whether a row with value v (nil: null) passes the leaf. It shares no code with the kinds or the evaluator.
func Passes(leaf *predicate.Leaf, v *column.Value) bool {
	iceberg := leaf.Dialect == predicate.Iceberg
	if leaf.Op == predicate.IsNull {
		return (v == nil) != leaf.Negated
	}
	if v == nil {
		return leaf.Negated && iceberg
	}
	if leaf.Op == predicate.IsNaN {
		return isNaN(*v) != leaf.Negated
	}
	if isNaN(*v) {
		switch leaf.Op {
		case predicate.Equal, predicate.Less, predicate.LessEqual, predicate.Greater, predicate.GreaterEqual, predicate.In:
			return leaf.Negated || iceberg
		}
	}
	return holds(leaf, *v) != leaf.Negated
}

func isNaN(v column.Value) bool {
	switch v.Kind {
	case column.Float:
		return math.IsNaN(float64(math.Float32frombits(uint32(v.Lo))))
	case column.Double:
		return math.IsNaN(math.Float64frombits(v.Lo))
	}
	return false
}

func holds(leaf *predicate.Leaf, v column.Value) bool {
	switch leaf.Op {
	case predicate.StartsWith:
		return strings.HasPrefix(v.S, leaf.Values[0].S)
	case predicate.Like:
		return like(leaf.Pattern.Text, leaf.Pattern.Escape, v.S, func(a, b string) bool { return a == b })
	case predicate.ILike:
		return like(leaf.Pattern.Text, leaf.Pattern.Escape, v.S, sameLetter)
	case predicate.Match:
		text := leaf.Regex.Text
		if leaf.Regex.AnyCase {
			text = "(?i)" + text
		}
		return expressions(text).MatchString(v.S)
	case predicate.In:
		for _, w := range leaf.Values {
			if order(v, w) == "=" {
				return true
			}
		}
		return false
	}
	o := order(v, leaf.Values[0])
	switch leaf.Op {
	case predicate.Less:
		return o == "<"
	case predicate.LessEqual:
		return o == "<" || o == "="
	case predicate.Greater:
		return o == ">"
	case predicate.GreaterEqual:
		return o == ">" || o == "="
	default:
		return o == "="
	}
}

// order compares as the type does; NaN has no order ("").
func order(a, b column.Value) string {
	switch a.Kind {
	case column.Float, column.Double:
		x, y := double(a), double(b)
		return sign(x < y, x == y, x > y)
	case column.Decimal:
		c := unscaled(a).Cmp(unscaled(b))
		return sign(c < 0, c == 0, c > 0)
	case column.String, column.Binary, column.UUID, column.Fixed:
		c := bytes.Compare([]byte(a.S), []byte(b.S))
		return sign(c < 0, c == 0, c > 0)
	default:
		x, y := int64(a.Lo), int64(b.Lo)
		return sign(x < y, x == y, x > y)
	}
}

func sign(less, equal, greater bool) string {
	switch {
	case less:
		return "<"
	case equal:
		return "="
	case greater:
		return ">"
	}
	return ""
}

func double(v column.Value) float64 {
	if v.Kind == column.Float {
		return float64(math.Float32frombits(uint32(v.Lo)))
	}
	return math.Float64frombits(v.Lo)
}

func unscaled(v column.Value) *big.Int {
	x := new(big.Int).Lsh(big.NewInt(v.Hi), 64)
	return x.Add(x, new(big.Int).SetUint64(v.Lo))
}

// expressions compiles each expression once for the many rows it is asked of.
func expressions(text string) *regexp.Regexp {
	if compiled == nil || compiledText != text {
		compiled, compiledText = regexp.MustCompile(text), text
	}
	return compiled
}

var (
	compiled     *regexp.Regexp
	compiledText string
)

// sameLetter reports whether two code points differ in case at most.
func sameLetter(a, b string) bool {
	return a == b || utf8.ValidString(a) && utf8.ValidString(b) && strings.EqualFold(a, b)
}

// like matches by trying every split: slow and plain. same compares a code point of the pattern with one of the text.
func like(pattern string, escape rune, s string, same func(a, b string) bool) bool {
	if pattern == "" {
		return s == ""
	}
	p, n := utf8.DecodeRuneInString(pattern)
	rest := pattern[n:]
	switch {
	case escape != 0 && p == escape:
		_, n = utf8.DecodeRuneInString(rest)
		return begins(s, rest[:n], same) && like(rest[n:], escape, after(s), same)
	case p == '%':
		for i := 0; i <= len(s); i++ {
			if like(rest, escape, s[i:], same) {
				return true
			}
		}
		return false
	case p == '_':
		return s != "" && like(rest, escape, after(s), same)
	default:
		return begins(s, pattern[:n], same) && like(rest, escape, after(s), same)
	}
}

func begins(s, point string, same func(a, b string) bool) bool {
	return s != "" && same(s[:len(s)-len(after(s))], point)
}

// after is s without its first code point.
func after(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return s[n:]
}
