package index

import (
	"encoding/binary"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// Encoding is the type in which an artifact took its values; the bytes are column.AppendKey's ("key-v1"). A root stores it,
// since the column may have been promoted since.
//
//	u8 kind   column.Kind
//	u8 scale  Decimal: digits after the point, else 0
//	uv width  Fixed: bytes of a value, else 0
type Encoding struct {
	Kind  column.Kind
	Scale uint8
	Width uint32
}

// maxFixedWidth bounds fixed[n] in a root; Iceberg states no limit.
const maxFixedWidth = 1 << 24

// EncodingOf is the encoding of a column type. It fails for types that have no keys: nested, unknown and opaque ones.
func EncodingOf(t column.Type) (Encoding, error) {
	e := Encoding{Kind: t.Kind}
	switch {
	case !keyed(t.Kind):
		return e, fault.New(fault.Unsupported, t.Kind.String(), "values of this type have no order and no keys").
			WithFix("index a column or nested field of a primitive type")
	case t.Kind == column.Decimal:
		e.Scale = uint8(t.Scale)
	case t.Kind == column.Fixed:
		e.Width = uint32(t.Width)
	}
	return e, nil
}

func keyed(k column.Kind) bool { return k >= column.Bool && k <= column.Binary }

// Append writes the encoding.
func (e Encoding) Append(w *bytescan.Writer) {
	w.U8(uint8(e.Kind))
	w.U8(e.Scale)
	w.Uvarint(uint64(e.Width))
}

// ReadEncoding reads what Append wrote.
func ReadEncoding(r *bytescan.Reader) Encoding {
	e := Encoding{Kind: column.Kind(r.U8()), Scale: r.U8()}
	width := r.Uvarint()
	if r.Err() == nil && (!keyed(e.Kind) || e.Scale > 38 || width > maxFixedWidth || (e.Kind == column.Fixed) != (width > 0)) {
		r.Fail("value encoding (%d, %d, %d) is none", e.Kind, e.Scale, width)
	}
	e.Width = uint32(width)
	return e
}

// Widens reports whether every value of e is, exactly and with the same key, a value of type t. Iceberg's promotions int → long,
// float → double and decimal(P, S) → decimal(P', S) are; date → timestamp is not. A long may also be asked for as an int
// (a snapshot from before the promotion): integers that fit have the same key.
func (e Encoding) Widens(t column.Type) bool {
	switch e.Kind {
	case column.Int, column.Long:
		return t.Kind == column.Int || t.Kind == column.Long
	case column.Float:
		return t.Kind.Floating()
	case column.Decimal:
		return t.Kind == column.Decimal && t.Scale == int(e.Scale)
	case column.Fixed:
		return t.Kind == column.Fixed && t.Width == int(e.Width)
	default:
		return t.Kind == e.Kind
	}
}

// WidensTo reports whether values of e are values of f, as Widens does.
func (e Encoding) WidensTo(f Encoding) bool {
	return e.Widens(column.Type{Kind: f.Kind, Width: int(f.Width), Scale: int(f.Scale)})
}

// Size is the bytes of a key, 0 where it varies.
func (e Encoding) Size() int {
	switch e.Kind {
	case column.Bool:
		return 1
	case column.Decimal, column.UUID:
		return 16
	case column.Fixed:
		return int(e.Width)
	case column.String, column.Binary:
		return 0
	default:
		return 8
	}
}

// Narrow reports whether keys fit a uint64 in the same order.
func (e Encoding) Narrow() bool {
	n := e.Size()
	return n == 8 && e.Kind != column.Fixed || n == 1 && e.Kind == column.Bool
}

// AppendNarrow appends the key bytes of a narrow key.
func (e Encoding) AppendNarrow(dst []byte, key uint64) []byte {
	if e.Kind == column.Bool {
		return append(dst, byte(key))
	}
	return binary.BigEndian.AppendUint64(dst, key)
}
