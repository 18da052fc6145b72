package tabletest

import (
	"encoding/hex"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/column"
)

// Truth is SQL's three-valued logic.
type Truth int8

// The three values.
const (
	No Truth = iota - 1
	Null
	Yes
)

// Expr is a predicate of the oracle: it renders itself as SQL text and judges a row by itself, sharing no code with the
// engine's parser, binder or evaluator.
type Expr interface {
	SQL() string
	Eval(Row) Truth
}

type (
	not  struct{ x Expr }
	both struct{ l, r Expr }
	any2 struct{ l, r Expr }
	// test is one comparison of the leaf at index i of a row.
	test struct {
		i      int
		leaf   Leaf
		op     string // = != < <= > >= IN NULL NAN PREFIX LIKE ILIKE ~ ~* CONTAINS
		values []column.Value
		text   string
	}
)

func (e not) SQL() string  { return "NOT (" + e.x.SQL() + ")" }
func (e both) SQL() string { return "(" + e.l.SQL() + " AND " + e.r.SQL() + ")" }
func (e any2) SQL() string { return "(" + e.l.SQL() + " OR " + e.r.SQL() + ")" }

func (e not) Eval(r Row) Truth  { return -e.x.Eval(r) }
func (e both) Eval(r Row) Truth { return min(e.l.Eval(r), e.r.Eval(r)) }
func (e any2) Eval(r Row) Truth { return max(e.l.Eval(r), e.r.Eval(r)) }

func (e test) SQL() string {
	name := quoted(e.leaf.Path)
	switch e.op {
	case "NULL":
		return name + " IS NULL"
	case "NAN":
		return name + " IS NAN"
	case "IN":
		list := make([]string, len(e.values))
		for i, v := range e.values {
			list[i] = Literal(e.leaf.Element(), v)
		}
		return name + " IN (" + strings.Join(list, ", ") + ")"
	case "~", "~*":
		return name + " " + e.op + " '" + strings.ReplaceAll(e.text, "'", "''") + "'"
	case "ILIKE":
		return name + " ILIKE '" + strings.ReplaceAll(e.text, "'", "''") + "' ESCAPE '!'"
	case "PREFIX", "LIKE":
		return name + " LIKE '" + strings.ReplaceAll(e.text, "'", "''") + "' ESCAPE '!'"
	case "CONTAINS":
		return "contains(" + name + ", " + Literal(e.leaf.Element(), e.values[0]) + ")"
	default:
		return name + " " + e.op + " " + Literal(e.leaf.Element(), e.values[0])
	}
}

func quoted(p column.Path) string {
	parts := make([]string, len(p))
	for i, f := range p {
		parts[i] = `"` + strings.ReplaceAll(f.Name, `"`, `""`) + `"`
	}
	return strings.Join(parts, ".")
}

func (e test) Eval(r Row) Truth {
	c := r[e.i]
	switch {
	case e.op == "NULL":
		return truth(c.Null)
	case c.Null:
		return Null
	case e.op == "CONTAINS":
		return e.contains(c.List)
	case e.op == "NAN":
		return truth(math.IsNaN(number(c.Val)))
	case e.op == "PREFIX":
		return truth(strings.HasPrefix(c.Val.S, strings.NewReplacer("!%", "%", "!_", "_", "!!", "!").Replace(strings.TrimSuffix(e.text, "%"))))
	case e.op == "LIKE":
		return truth(like([]rune(e.text), []rune(c.Val.S)))
	case e.op == "ILIKE":
		return truth(like(lower(e.text), lower(c.Val.S)))
	case e.op == "~":
		return truth(regexp.MustCompile(e.text).MatchString(c.Val.S))
	case e.op == "~*":
		return truth(regexp.MustCompile("(?i)" + e.text).MatchString(c.Val.S))
	case e.op == "IN":
		for _, v := range e.values {
			if equal(c.Val, v) {
				return Yes
			}
		}
		return No
	}
	return truth(holds(c.Val, e.op, e.values[0]))
}

func (e test) contains(list []Cell) Truth {
	out := No
	for _, x := range list {
		switch {
		case x.Null:
			out = max(out, Null)
		case equal(x.Val, e.values[0]):
			return Yes
		}
	}
	return out
}

func truth(b bool) Truth {
	if b {
		return Yes
	}
	return No
}

func number(v column.Value) float64 {
	if v.Kind == column.Float {
		return float64(math.Float32frombits(uint32(v.Lo)))
	}
	return math.Float64frombits(v.Lo)
}

func equal(a, b column.Value) bool { return holds(a, "=", b) }

func holds(a column.Value, op string, b column.Value) bool {
	if a.Kind == column.Float || a.Kind == column.Double {
		x, y := number(a), number(b)
		switch op {
		case "=":
			return x == y
		case "!=":
			return x != y
		case "<":
			return x < y
		case "<=":
			return x <= y
		case ">":
			return x > y
		default:
			return x >= y
		}
	}
	c := order(a, b)
	switch op {
	case "=":
		return c == 0
	case "!=":
		return c != 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	default:
		return c >= 0
	}
}

func order(a, b column.Value) int {
	switch a.Kind {
	case column.Decimal:
		return Unscaled(a).Cmp(Unscaled(b))
	case column.String, column.UUID, column.Fixed, column.Binary:
		return strings.Compare(a.S, b.S)
	}
	x, y := int64(a.Lo), int64(b.Lo)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	default:
		return 0
	}
}

// lower is the runes of a text of which letters are folded; the texts made here have no letter with more than two cases.
func lower(s string) []rune { return []rune(strings.ToLower(s)) }

// like matches by recursion over code points; '!' escapes.
func like(p, s []rune) bool {
	if len(p) == 0 {
		return len(s) == 0
	}
	switch p[0] {
	case '%':
		return like(p[1:], s) || len(s) > 0 && like(p, s[1:])
	case '_':
		return len(s) > 0 && like(p[1:], s[1:])
	case '!':
		return len(s) > 0 && p[1] == s[0] && like(p[2:], s[1:])
	default:
		return len(s) > 0 && p[0] == s[0] && like(p[1:], s[1:])
	}
}

// Literal renders a value as a SQL literal of its column's type.
func Literal(t column.Type, v column.Value) string {
	switch t.Kind {
	case column.Bool:
		return strconv.FormatBool(v.Lo != 0)
	case column.Int, column.Long:
		return strconv.FormatInt(int64(v.Lo), 10)
	case column.Float:
		return floatLiteral(number(v), 32)
	case column.Double:
		return floatLiteral(number(v), 64)
	case column.Decimal:
		return decimalLiteral(Unscaled(v).String(), t.Scale)
	case column.Date:
		return time.Unix(int64(v.Lo)*86400, 0).UTC().Format("DATE '2006-01-02'")
	case column.Time:
		return time.UnixMicro(int64(v.Lo)).UTC().Format("TIME '15:04:05.000000'")
	case column.Timestamp:
		return time.UnixMicro(int64(v.Lo)).UTC().Format("TIMESTAMP '2006-01-02 15:04:05.000000'")
	case column.TimestampTZ:
		return time.UnixMicro(int64(v.Lo)).UTC().Format("'2006-01-02T15:04:05.000000Z'")
	case column.TimestampNS:
		return time.Unix(0, int64(v.Lo)).UTC().Format("'2006-01-02T15:04:05.000000000'")
	case column.TimestampNZ:
		return time.Unix(0, int64(v.Lo)).UTC().Format("'2006-01-02T15:04:05.000000000+00:00'")
	case column.String:
		return "'" + strings.ReplaceAll(v.S, "'", "''") + "'"
	case column.UUID:
		h := hex.EncodeToString([]byte(v.S))
		return "'" + strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-") + "'"
	default:
		return "X'" + hex.EncodeToString([]byte(v.S)) + "'"
	}
}

func floatLiteral(f float64, bits int) string {
	switch {
	case math.IsInf(f, 1):
		return "'Infinity'"
	case math.IsInf(f, -1):
		return "'-Infinity'"
	default:
		return strconv.FormatFloat(f, 'e', -1, bits)
	}
}

func decimalLiteral(digits string, scale int) string {
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for len(digits) <= scale {
		digits = "0" + digits
	}
	return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

// RandomExpr makes a predicate of up to depth levels over the leaves. draw gives a value to compare leaf i with; often one
// that some row holds.
func RandomExpr(rng *rand.Rand, leaves []Leaf, depth int, draw func(i int) column.Value) Expr {
	if depth > 0 && rng.IntN(3) > 0 {
		switch rng.IntN(8) {
		case 0:
			return not{RandomExpr(rng, leaves, depth-1, draw)}
		case 1, 2, 3, 4, 5:
			return both{RandomExpr(rng, leaves, depth-1, draw), RandomExpr(rng, leaves, depth-1, draw)}
		default:
			return any2{RandomExpr(rng, leaves, depth-1, draw), RandomExpr(rng, leaves, depth-1, draw)}
		}
	}
	i := rng.IntN(len(leaves))
	return randomTest(rng, i, leaves[i], draw)
}

func randomTest(rng *rand.Rand, i int, leaf Leaf, draw func(i int) column.Value) Expr {
	e := test{i: i, leaf: leaf}
	if rng.IntN(12) == 0 || leaf.Element().Kind == column.Unknown {
		e.op = "NULL"
		return e
	}
	value := draw(i)
	for value.IsNaN() {
		value = Domain{Type: leaf.Element(), N: 100}.Draw(rng)
	}
	e.values = []column.Value{value}
	kind := leaf.Element().Kind
	switch {
	case leaf.List:
		e.op = "CONTAINS"
	case kind == column.Bool:
		e.op = []string{"=", "!="}[rng.IntN(2)]
	case kind.Floating() && rng.IntN(8) == 0:
		e.op = "NAN"
	case kind == column.String && rng.IntN(4) == 0:
		e.op, e.text = randomPattern(rng, value.S)
	case kind == column.String && rng.IntN(4) == 0:
		e.op, e.text = randomRegex(rng, value.S)
	case rng.IntN(5) == 0:
		e.op = "IN"
		for range rng.IntN(6) {
			if v := draw(i); !v.IsNaN() {
				e.values = append(e.values, v)
			}
		}
	default:
		e.op = []string{"=", "=", "=", "!=", "<", "<=", ">", ">="}[rng.IntN(8)]
	}
	return e
}

func randomPattern(rng *rand.Rand, s string) (op, text string) {
	r := []rune(s)
	cut := rng.IntN(len(r) + 1)
	escape := strings.NewReplacer("%", "!%", "_", "!_", "!", "!!")
	switch rng.IntN(6) {
	case 4:
		return "ILIKE", "%" + escape.Replace(strings.ToUpper(string(r[cut:]))) + "%"
	case 5:
		return "ILIKE", escape.Replace(strings.ToUpper(string(r[:cut]))) + "%"
	case 0:
		return "PREFIX", escape.Replace(string(r[:cut])) + "%"
	case 1:
		return "LIKE", "%" + escape.Replace(string(r[cut:]))
	case 2:
		return "LIKE", escape.Replace(string(r[:cut])) + "_" + escape.Replace(string(r[min(cut+1, len(r)):]))
	default:
		return "LIKE", "%" + escape.Replace(string(r[cut/2:cut])) + "%"
	}
}

// randomRegex makes a regular expression that often matches s.
func randomRegex(rng *rand.Rand, s string) (op, text string) {
	r := []rune(s)
	cut := rng.IntN(len(r) + 1)
	head, tail := regexp.QuoteMeta(string(r[:cut])), regexp.QuoteMeta(string(r[cut:]))
	text = []string{
		tail, head + ".*" + tail, "^" + head, tail + "$", "(" + head + "|zz%)" + tail, "[a-z]+" + tail, "(" + head + ")?", head + ".",
	}[rng.IntN(8)]
	if rng.IntN(3) == 0 {
		return "~*", text
	}
	return "~", text
}
