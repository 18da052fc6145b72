package predicate

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// LiteralKind is how a literal was written.
type LiteralKind uint8

// The kinds of literals.
const (
	NullLiteral      LiteralKind = iota // NULL
	BoolLiteral                         // Text is "true" or "false"
	NumberLiteral                       // Text is the decimal number as written
	TextLiteral                         // a quoted string, which may stand for any type that has a text form
	BytesLiteral                        // Text is the bytes
	DateLiteral                         // DATE '…', Text is what stands in the quotes; so for the next two
	TimeLiteral                         //
	TimestampLiteral                    //
)

// Literal is a value before it is bound to a column's type.
type Literal struct {
	Kind LiteralKind
	Text string
}

// String is the literal as SQL text.
func (x Literal) String() string {
	switch x.Kind {
	case NullLiteral:
		return "NULL"
	case BoolLiteral:
		return strings.ToUpper(x.Text)
	case NumberLiteral:
		return x.Text
	case BytesLiteral:
		return "X'" + hex.EncodeToString([]byte(x.Text)) + "'"
	case DateLiteral:
		return "DATE " + quote(x.Text)
	case TimeLiteral:
		return "TIME " + quote(x.Text)
	case TimestampLiteral:
		return "TIMESTAMP " + quote(x.Text)
	default:
		return quote(x.Text)
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// binder turns literals into values of one column.
type binder struct {
	column  Column
	dialect Dialect
}

// bind turns "column op x" into an equivalent test whose value has the column's type. none means that no value passes.
func (b binder) bind(op Op, x Literal) (_ Op, v column.Value, none bool, err error) {
	t := b.column.Type()
	switch t.Kind {
	case column.Unknown:
		return op, v, true, nil
	case column.Int, column.Long, column.Decimal:
		return b.bindNumber(op, x)
	case column.Float, column.Double:
		if x.Kind == NumberLiteral || x.Kind == TextLiteral {
			if op, v, none, ok := fitFloat(t, op, x.Text); ok {
				return op, v, none, nil
			}
		}
		return op, v, false, b.wrong(x, "a number")
	case column.Date, column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		return b.bindTimestamp(op, x)
	case column.Time:
		return b.bindTime(op, x)
	case column.Variant, column.Geometry, column.Geography, column.Struct, column.List, column.Map:
		return op, v, false, b.notComparable()
	default:
		v, err = b.exact(x)
		return op, v, false, err
	}
}

func (b binder) notComparable() error {
	kind := b.column.Type().Kind
	e := fault.New(fault.Invalid, b.column.Name(), "a %s has no order and no literals; only IS [NOT] NULL can be asked of it", kind)
	switch kind {
	case column.Struct:
		e.Fix = "name one of its fields, as in " + b.column.Name() + "." + b.column.Type().Fields[0].Name
	case column.List:
		e.Fix = "use contains(" + b.column.Name() + ", value)"
	case column.Map:
		e.Fix = "use contains(" + b.column.Name() + ".key, value) or contains(" + b.column.Name() + ".value, value)"
	}
	return e
}

// wrong says that x is not a value of the column, and how one is written.
func (b binder) wrong(x Literal, want string) *fault.Error {
	text := x.String()
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:77], "") + "…"
	}
	return fault.New(fault.Invalid, b.column.Name(), "the column is a %s, which %s cannot be", b.column.Type(), text).
		WithFix("write %s", want)
}

func (b binder) bindNumber(op Op, x Literal) (_ Op, v column.Value, none bool, err error) {
	t := b.column.Type()
	if x.Kind == NumberLiteral || x.Kind == TextLiteral {
		if unscaled, exp, ok := parseDecimal(x.Text); ok {
			scale := 0
			if t.Kind == column.Decimal {
				scale = t.Scale
			}
			op, v, none = atScale(unscaled, exp, scale).fit(t, op)
			return op, v, none, nil
		}
	}
	return op, v, false, b.wrong(x, "a number, without quotes, of at most 1000 digits")
}

func (b binder) bindTimestamp(op Op, x Literal) (_ Op, v column.Value, none bool, err error) {
	t := b.column.Type()
	want := "a date or timestamp like '2026-01-02' or '2026-01-02 03:04:05.123456'"
	if zonedKind(t.Kind) {
		want += ", with an offset like +02:00 if it is not UTC"
	}
	if x.Kind == NumberLiteral && b.dialect == Iceberg {
		p, ok := wireUnits(t.Kind, x.Text)
		if !ok {
			return op, v, false, b.wrong(x, want)
		}
		op, v, none = p.fit(t, op)
		return op, v, none, nil
	}
	if x.Kind != TextLiteral && x.Kind != DateLiteral && x.Kind != TimestampLiteral {
		return op, v, false, b.wrong(x, want)
	}
	in, ok := parseTimestamp(x.Text)
	if !ok || x.Kind == DateLiteral && in.hasTime {
		return op, v, false, b.wrong(x, want)
	}
	if in.zoned && !zonedKind(t.Kind) {
		return op, v, false, b.wrong(x, "it without an offset: the column has no zone")
	}
	op, v, none = in.in(t.Kind).fit(t, op)
	return op, v, none, nil
}

// wireUnits reads the number that Iceberg clients send for a date or timestamp whose type they did not know: days, or
// microseconds for both precisions of timestamps.
func wireUnits(kind column.Kind, text string) (point, bool) {
	unscaled, exp, ok := parseDecimal(text)
	if !ok {
		return point{}, false
	}
	if kind == column.TimestampNS || kind == column.TimestampNZ {
		exp += 3
	}
	return atScale(unscaled, exp, 0), true
}

func (b binder) bindTime(op Op, x Literal) (_ Op, v column.Value, none bool, err error) {
	t := b.column.Type()
	if x.Kind == NumberLiteral && b.dialect == Iceberg {
		if p, ok := wireUnits(t.Kind, x.Text); ok {
			op, v, none = p.fit(t, op)
			return op, v, none, nil
		}
	}
	if x.Kind == TextLiteral || x.Kind == TimeLiteral {
		if nanos, finer, ok := parseClock(strings.TrimSpace(x.Text)); ok {
			op, v, none = instant{nanos: nanos, finer: finer}.in(t.Kind).fit(t, op)
			return op, v, none, nil
		}
	}
	return op, v, false, b.wrong(x, "a time like '03:04:05.123456'")
}

// exact converts a literal of a type that has neither finer nor larger literals than its values.
func (b binder) exact(x Literal) (v column.Value, err error) {
	switch t := b.column.Type(); t.Kind {
	case column.Bool:
		if text := strings.ToLower(x.Text); (x.Kind == BoolLiteral || x.Kind == TextLiteral) && (text == "true" || text == "false") {
			return column.BoolValue(text == "true"), nil
		}
		return v, b.wrong(x, "TRUE or FALSE")
	case column.String:
		if x.Kind == TextLiteral && utf8.ValidString(x.Text) {
			return column.StringValue(x.Text), nil
		}
		return v, b.wrong(x, "a string in single quotes")
	case column.UUID:
		if id, ok := parseUUID(x); ok {
			return column.BytesValue(t.Kind, id), nil
		}
		return v, b.wrong(x, "a UUID like 'f79c3e09-677c-4bbd-a479-3f349cb785e7'")
	default:
		raw, ok := b.bytes(x)
		if !ok || t.Kind == column.Fixed && len(raw) != t.Width {
			return v, b.wrong(x, "bytes in hexadecimal, as X'00ff', of the column's width")
		}
		return column.BytesValue(t.Kind, raw), nil
	}
}

func (b binder) bytes(x Literal) ([]byte, bool) {
	if x.Kind == TextLiteral && b.dialect == Iceberg {
		raw, err := hex.DecodeString(x.Text)
		return raw, err == nil
	}
	return []byte(x.Text), x.Kind == BytesLiteral
}

func parseUUID(x Literal) ([]byte, bool) {
	if x.Kind == BytesLiteral {
		return []byte(x.Text), len(x.Text) == 16
	}
	s := x.Text
	if x.Kind != TextLiteral || len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return nil, false
	}
	id, err := hex.DecodeString(s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:])
	return id, err == nil && len(id) == 16
}
