package predicate

import (
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/expression"
)

// String renders the predicate as SQL. For trees of the SQL dialect sqltext.Parse reads it back, apart from an In
// without values on a column of strings or bytes, which no text can say.
func (t *Tree) String() string {
	var b strings.Builder
	t.render(&b)
	return b.String()
}

func (t *Tree) render(b *strings.Builder) {
	switch t.Kind {
	case True:
		b.WriteString("TRUE")
	case False:
		b.WriteString("FALSE")
	case Test:
		t.Leaf.render(b)
	case Or:
		for i, k := range t.Kids {
			if i > 0 {
				b.WriteString(" OR ")
			}
			k.render(b)
		}
	case And:
		for i, k := range t.Kids {
			if i > 0 {
				b.WriteString(" AND ")
			}
			if k.Kind == Or {
				b.WriteByte('(')
				k.render(b)
				b.WriteByte(')')
				continue
			}
			k.render(b)
		}
	}
}

// String renders the leaf as SQL, with a note in braces where the Iceberg dialect keeps more rows than SQL would.
func (l *Leaf) String() string {
	var b strings.Builder
	l.render(&b)
	return b.String()
}

func (l *Leaf) render(b *strings.Builder) {
	switch {
	case l.Unknown && l.Column.Path.Repeated():
		b.WriteString("contains(" + containerName(l.Column) + ", NULL)")
	case l.Op == Contains:
		if l.Negated {
			b.WriteString("NOT ")
		}
		b.WriteString("contains(" + containerName(l.Column) + ", " + FormatValue(l.Values[0]) + ")")
	default:
		l.renderTest(b, l.Column.sqlName())
	}
	if l.Dialect == Iceberg && l.Op != IsNull {
		nan := l.Column.Type().Kind.Floating() && l.Op != IsNaN
		switch {
		case l.Negated && nan:
			b.WriteString(" {or NULL or NaN}")
		case l.Negated:
			b.WriteString(" {or NULL}")
		case nan:
			b.WriteString(" {or NaN}")
		}
	}
}

// containerName is the list that contains asks, or the map's key or value, or a field of structs in them.
func containerName(c Column) string {
	at, _ := c.Around()
	if around := c.Path[:at+1]; around.Leaf().Type.Kind == column.List && at+2 == len(c.Path) {
		return Column{around}.sqlName()
	}
	return c.sqlName()
}

func (l *Leaf) renderTest(b *strings.Builder, name string) {
	not := ""
	if l.Negated {
		not = "NOT "
	}
	switch l.Op {
	case IsNull:
		b.WriteString(name + " IS " + not + "NULL")
	case IsNaN:
		b.WriteString(name + " IS " + not + "NAN")
	case Equal:
		op := " = "
		if l.Negated {
			op = " <> "
		}
		b.WriteString(name + op + FormatValue(l.Values[0]))
	case In:
		l.renderIn(b, name, not)
	case StartsWith:
		escaped := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(l.Values[0].S)
		escape := ""
		if escaped != l.Values[0].S {
			escape = ` ESCAPE '\'`
		}
		b.WriteString(name + " " + not + "LIKE " + quote(escaped+"%") + escape)
	case Match:
		sign := " ~ "
		if l.Regex.AnyCase {
			sign = " ~* "
		}
		if l.Negated {
			sign = " !" + sign[1:]
		}
		b.WriteString(name + sign + quote(l.Regex.Text))
	case Like, ILike:
		word := "LIKE "
		if l.Op == ILike {
			word = "ILIKE "
		}
		b.WriteString(name + " " + not + word + quote(l.Pattern.Text))
		if l.Pattern.Escape != 0 {
			b.WriteString(" ESCAPE " + quote(string(l.Pattern.Escape)))
		}
	default:
		sign := map[Op]string{Less: " < ", LessEqual: " <= ", Greater: " > ", GreaterEqual: " >= "}[l.Op]
		b.WriteString(not + name + sign + FormatValue(l.Values[0]))
	}
}

func (l *Leaf) renderIn(b *strings.Builder, name, not string) {
	switch {
	case l.Unknown:
		b.WriteString(name + " = NULL")
	case len(l.Values) == 0:
		op := " = "
		if l.Negated {
			op = " <> "
		}
		b.WriteString(name + op + impossible(l.Column.Type()))
	default:
		b.WriteString(name + " " + not + "IN (")
		for i, v := range l.Values {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(FormatValue(v))
		}
		b.WriteByte(')')
	}
}

// impossible is a literal that equals no value of the type.
func impossible(t column.Type) string {
	switch t.Kind {
	case column.Int, column.Long, column.Unknown:
		return "0.5"
	case column.Decimal:
		return "0." + strings.Repeat("0", t.Scale) + "5"
	case column.Float, column.Double:
		return "'NaN'"
	case column.Date:
		return "TIMESTAMP '1970-01-01 12:00:00'"
	case column.Time:
		return "TIME '00:00:00.0000000005'"
	case column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		return "TIMESTAMP '1970-01-01 00:00:00.0000000005'"
	default:
		return "nothing"
	}
}

// FormatValue renders a value as the SQL literal that binds to it exactly.
func FormatValue(v column.Value) string {
	switch v.Kind {
	case column.Bool:
		return strings.ToUpper(strconv.FormatBool(v.Lo != 0))
	case column.Int, column.Long:
		return strconv.FormatInt(v.Int64(), 10)
	case column.Float:
		return formatFloat(v.Float64(), 32)
	case column.Double:
		return formatFloat(v.Float64(), 64)
	case column.Decimal:
		return formatDecimal(unscaledOf(v), int(v.Scale))
	case column.Date:
		return "DATE " + quote(formatTemporal(v))
	case column.Time:
		return "TIME " + quote(formatTemporal(v))
	case column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		return "TIMESTAMP " + quote(formatTemporal(v))
	case column.String:
		return quote(v.S)
	case column.UUID:
		h := hex.EncodeToString([]byte(v.S))
		if len(h) == 32 {
			return quote(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
		}
		return quote(h)
	default:
		return "X'" + hex.EncodeToString([]byte(v.S)) + "'"
	}
}

func formatFloat(f float64, width int) string {
	switch {
	case math.IsNaN(f):
		return "'NaN'"
	case math.IsInf(f, 1):
		return "'Infinity'"
	case math.IsInf(f, -1):
		return "'-Infinity'"
	default:
		return strconv.FormatFloat(f, 'g', -1, width)
	}
}

func formatDecimal(unscaled *big.Int, scale int) string {
	digits := new(big.Int).Abs(unscaled).String()
	if scale > 0 {
		if len(digits) <= scale {
			digits = strings.Repeat("0", scale+1-len(digits)) + digits
		}
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if unscaled.Sign() < 0 {
		return "-" + digits
	}
	return digits
}

// reserved are the words that name a column only in quotes.
var reserved = map[string]bool{
	"AND": true, "OR": true, "NOT": true, "IN": true, "BETWEEN": true, "LIKE": true, "ILIKE": true, "IS": true, "NULL": true, "TRUE": true, "FALSE": true,
	"ESCAPE": true, "ANY": true, "NAN": true,
}

// Reserved reports whether a word has a meaning of its own in filter text.
func Reserved(word string) bool { return reserved[strings.ToUpper(word)] }

// sqlName is the column's name as filter text writes it.
func (c Column) sqlName() string {
	base := c.Path.Base()
	name := dotted(base)
	if len(base) == len(c.Path) {
		return name
	}
	if e, err := expression.Parse(c.Path[len(base)].Expr); err == nil {
		name = e.SQL(name)
	}
	if below := c.Path[len(base)+1:]; len(below) > 0 {
		name += "." + dotted(below)
	}
	return name
}

func dotted(path column.Path) string {
	parts := make([]string, len(path))
	for i, f := range path {
		parts[i] = f.Name
		if !plainName(f.Name) || Reserved(f.Name) {
			parts[i] = `"` + strings.ReplaceAll(f.Name, `"`, `""`) + `"`
		}
	}
	return strings.Join(parts, ".")
}

func plainName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
