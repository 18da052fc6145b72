package tabletest

import (
	"encoding/hex"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
)

// DuckDB renders a predicate in DuckDB's SQL; ok is false where DuckDB has another opinion by design: it orders NaN above all
// other values, its list_contains knows no null elements, its ~ matches whole texts, and it has no zoned nanoseconds.
func DuckDB(e Expr) (sql string, ok bool) {
	switch e := e.(type) {
	case not:
		x, ok := DuckDB(e.x)
		return "NOT (" + x + ")", ok
	case both:
		l, ok1 := DuckDB(e.l)
		r, ok2 := DuckDB(e.r)
		return "(" + l + " AND " + r + ")", ok1 && ok2
	case any2:
		l, ok1 := DuckDB(e.l)
		r, ok2 := DuckDB(e.r)
		return "(" + l + " OR " + r + ")", ok1 && ok2
	}
	t := e.(test)
	name := quoted(t.leaf.Path)
	list := make([]string, len(t.values))
	for i, v := range t.values {
		list[i] = duckLiteral(t.leaf.Element(), v)
	}
	switch {
	case t.leaf.Element().Kind.Floating() && t.op != "NULL", t.leaf.Element().Kind == column.TimestampNZ, t.op == "CONTAINS", t.op == "~", t.op == "~*":
		return "false", false
	case t.op == "IN":
		return name + " IN (" + strings.Join(list, ", ") + ")", true
	case t.op == "NULL" || t.op == "PREFIX" || t.op == "LIKE" || t.op == "ILIKE":
		return e.SQL(), true
	default:
		return name + " " + t.op + " " + list[0], true
	}
}

func duckLiteral(t column.Type, v column.Value) string {
	switch t.Kind {
	case column.Fixed, column.Binary:
		var b strings.Builder
		for i := range len(v.S) {
			b.WriteString(`\x` + hex.EncodeToString([]byte{v.S[i]}))
		}
		return "'" + b.String() + "'::BLOB"
	case column.TimestampTZ:
		return Literal(t, v) + "::TIMESTAMPTZ"
	case column.TimestampNS:
		return Literal(t, v) + "::TIMESTAMP_NS"
	case column.Decimal:
		return Literal(t, v) + "::" + strings.ToUpper(strings.ReplaceAll(t.String(), " ", ""))
	case column.UUID:
		return Literal(t, v) + "::UUID"
	default:
		return Literal(t, v)
	}
}
