package column

import (
	"cmp"
	"encoding/binary"
	"math"
	"strings"
)

// Value is one non-null value of a primitive type. It is comparable with ==, which is bit equality (NaNs of equal
// bits are ==, -0.0 and 0.0 are not); use Compare for order.
type Value struct {
	Kind  Kind
	Scale uint8  // Decimal
	Lo    uint64 // Bool: 0 or 1. Integers, dates, times: two's complement. Float: bits as float32. Double: bits. Decimal: low half
	Hi    int64  // Decimal: high half of the unscaled value
	S     string // String: UTF-8. UUID, Fixed, Binary and opaque kinds: the bytes
}

// BoolValue makes a Bool.
func BoolValue(b bool) Value {
	if b {
		return Value{Kind: Bool, Lo: 1}
	}
	return Value{Kind: Bool}
}

// IntValue makes a value of an integer-like kind: Int, Long, Date, Time and the timestamps.
func IntValue(k Kind, v int64) Value { return Value{Kind: k, Lo: uint64(v)} }

// FloatValue makes a Float.
func FloatValue(f float32) Value { return Value{Kind: Float, Lo: uint64(math.Float32bits(f))} }

// DoubleValue makes a Double.
func DoubleValue(f float64) Value { return Value{Kind: Double, Lo: math.Float64bits(f)} }

// DecimalValue makes a Decimal from the halves of its unscaled 128-bit two's complement value.
func DecimalValue(hi int64, lo uint64, scale int) Value {
	return Value{Kind: Decimal, Scale: uint8(scale), Hi: hi, Lo: lo}
}

// StringValue makes a String.
func StringValue(s string) Value { return Value{Kind: String, S: s} }

// BytesValue makes a UUID, Fixed, Binary or opaque value.
func BytesValue(k Kind, b []byte) Value { return Value{Kind: k, S: string(b)} }

// Int64 is the value of an integer-like kind.
func (v Value) Int64() int64 { return int64(v.Lo) }

// Float64 is the value of a Float or Double.
func (v Value) Float64() float64 {
	if v.Kind == Float {
		return float64(math.Float32frombits(uint32(v.Lo)))
	}
	return math.Float64frombits(v.Lo)
}

// IsNaN reports whether the value is a floating NaN.
func (v Value) IsNaN() bool { return v.Kind.Floating() && math.IsNaN(v.Float64()) }

// Compare orders two values of one kind: numbers by value (-0.0 equals 0.0, NaN equals NaN and is above all others,
// so that the order is total), strings, binary, fixed and UUIDs as unsigned bytes, false below true. Decimals must have one scale.
func Compare(a, b Value) int {
	switch a.Kind {
	case Float, Double:
		return compareFloats(a.Float64(), b.Float64())
	case Decimal:
		if c := cmp.Compare(a.Hi, b.Hi); c != 0 {
			return c
		}
		return cmp.Compare(a.Lo, b.Lo)
	case String, UUID, Fixed, Binary, Variant, Geometry, Geography:
		return strings.Compare(a.S, b.S)
	default:
		return cmp.Compare(int64(a.Lo), int64(b.Lo))
	}
}

func compareFloats(a, b float64) int {
	an, bn := math.IsNaN(a), math.IsNaN(b)
	switch {
	case an && bn:
		return 0
	case an:
		return 1
	case bn:
		return -1
	default:
		return cmp.Compare(a, b)
	}
}

// AppendKey appends the order-preserving bytes of v: bytes.Compare of two keys of one kind equals Compare of the values.
// It is the value encoding "key-v1" of artifacts, the same for a column before and after int → long, float → double and
// decimal promotion:
//
//	Bool                       1 byte, 0 or 1
//	Int Long Date Time Tim…    8 bytes big-endian, sign bit flipped
//	Float Double               as double: 8 bytes big-endian; -0.0 as 0.0, every NaN as 7ff8000000000000;
//	                           sign bit flipped for positives, all bits for negatives
//	Decimal                    16 bytes big-endian unscaled value, sign bit flipped (scale is the column's)
//	others                     the bytes
func AppendKey(dst []byte, v Value) []byte {
	switch v.Kind {
	case Bool:
		return append(dst, byte(v.Lo))
	case Float, Double:
		return binary.BigEndian.AppendUint64(dst, floatKey(v.Float64()))
	case Decimal:
		dst = binary.BigEndian.AppendUint64(dst, uint64(v.Hi)^(1<<63))
		return binary.BigEndian.AppendUint64(dst, v.Lo)
	case String, UUID, Fixed, Binary, Variant, Geometry, Geography:
		return append(dst, v.S...)
	default:
		return binary.BigEndian.AppendUint64(dst, v.Lo^(1<<63))
	}
}

func floatKey(f float64) uint64 {
	switch {
	case f == 0:
		f = 0
	case math.IsNaN(f):
		return 0x7ff8000000000000 | 1<<63
	}
	bits := math.Float64bits(f)
	if bits>>63 == 1 {
		return ^bits
	}
	return bits | 1<<63
}

// KeyValue is the inverse of AppendKey for a column type; ok is false when key has the wrong length for it.
func KeyValue(t Type, key []byte) (v Value, ok bool) {
	switch t.Kind {
	case Bool:
		return Value{Kind: Bool, Lo: uint64(first(key))}, len(key) == 1 && key[0] < 2
	case Float, Double:
		if len(key) != 8 {
			return v, false
		}
		bits := binary.BigEndian.Uint64(key)
		if bits>>63 == 1 {
			bits &^= 1 << 63
		} else {
			bits = ^bits
		}
		if t.Kind == Float {
			return FloatValue(float32(math.Float64frombits(bits))), true
		}
		return Value{Kind: Double, Lo: bits}, true
	case Decimal:
		if len(key) != 16 {
			return v, false
		}
		return DecimalValue(int64(binary.BigEndian.Uint64(key)^(1<<63)), binary.BigEndian.Uint64(key[8:]), t.Scale), true
	case String, Binary, Variant, Geometry, Geography:
		return BytesValue(t.Kind, key), true
	case UUID, Fixed:
		return BytesValue(t.Kind, key), len(key) == t.Size()
	default:
		if len(key) != 8 {
			return v, false
		}
		return IntValue(t.Kind, int64(binary.BigEndian.Uint64(key)^(1<<63))), true
	}
}

func first(b []byte) byte {
	if len(b) == 0 {
		return 0
	}
	return b[0]
}
