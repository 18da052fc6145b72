package plan

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/skomerdb/skomer/internal/column"
)

const (
	microsPerDay = 86_400_000_000
	nanosPerDay  = 86_400_000_000_000
)

// decodeBound reads a manifest bound (Iceberg spec, appendix D, binary single-value serialisation) as a value of the
// column's current type t. The width tells the type at the time of writing: bounds are not rewritten when a column is
// promoted (spec, "Schema Evolution").
//
//	boolean                     1 byte, 0 is false
//	int, date                   4 bytes little-endian
//	long                        8 bytes little-endian, or 4: an int before promotion
//	float                       4 bytes little-endian IEEE 754
//	double                      8 bytes, or 4: a float before promotion
//	decimal                     1 to 16 bytes big-endian two's complement, unscaled
//	timestamp, timestamp_ns     8 bytes little-endian, or 4: a date (days) before promotion
//	time, timestamptz(_ns)      8 bytes little-endian
//	uuid                        16 bytes
//	fixed                       1 to Width bytes: like strings, bounds may be cut
//	string, binary              any bytes, maybe cut
//
// ok is false for any other width and for types without bounds. A byte value shares b's memory.
func decodeBound(t column.Type, b []byte) (v column.Value, ok bool) {
	switch t.Kind {
	case column.Bool:
		if len(b) != 1 {
			return v, false
		}
		return column.BoolValue(b[0] != 0), true
	case column.Int, column.Long, column.Date, column.Time, column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		x, ok := decodeInteger(t.Kind, b)
		return column.IntValue(t.Kind, x), ok
	case column.Float:
		if len(b) != 4 {
			return v, false
		}
		return column.Value{Kind: column.Float, Lo: uint64(binary.LittleEndian.Uint32(b))}, true
	case column.Double:
		if len(b) == 4 {
			return column.DoubleValue(float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))), true
		}
		if len(b) != 8 {
			return v, false
		}
		return column.Value{Kind: column.Double, Lo: binary.LittleEndian.Uint64(b)}, true
	case column.Decimal:
		return decodeDecimal(t.Scale, b)
	case column.UUID:
		return bytesOf(t.Kind, b), len(b) == 16
	case column.Fixed:
		return bytesOf(t.Kind, b), len(b) >= 1 && len(b) <= t.Width
	case column.String, column.Binary:
		return bytesOf(t.Kind, b), true
	default:
		return v, false
	}
}

// decodeInteger reads the bound of an integer-like kind.
func decodeInteger(k column.Kind, b []byte) (int64, bool) {
	narrow := k == column.Int || k == column.Date
	switch {
	case len(b) == 8 && !narrow:
		return int64(binary.LittleEndian.Uint64(b)), true
	case len(b) != 4:
		return 0, false
	}
	x := int64(int32(binary.LittleEndian.Uint32(b)))
	if narrow || k == column.Long {
		return x, true
	}
	return daysTo(k, x)
}

// daysTo is the start of a day in a type that a date can be promoted to.
func daysTo(k column.Kind, days int64) (int64, bool) {
	switch k {
	case column.Timestamp:
		return scaled(days, microsPerDay)
	case column.TimestampNS:
		return scaled(days, nanosPerDay)
	default:
		return 0, false
	}
}

// scaled is x times unit; ok is false when it does not fit.
func scaled(x, unit int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(max(x, -x)), uint64(unit))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, false
	}
	return x * unit, true
}

func decodeDecimal(scale int, b []byte) (column.Value, bool) {
	if len(b) == 0 || len(b) > 16 {
		return column.Value{}, false
	}
	hi := int64(int8(b[0])) >> 7 // the sign, in all bits
	lo := uint64(hi)
	for _, x := range b {
		hi = hi<<8 | int64(lo>>56)
		lo = lo<<8 | uint64(x)
	}
	return column.DecimalValue(hi, lo, scale), true
}

func bytesOf(k column.Kind, b []byte) column.Value {
	return column.Value{Kind: k, S: unsafe.String(unsafe.SliceData(b), len(b))}
}

// decodeBounds is the interval that a lower and an upper bound prove for the non-null, non-NaN values of a file. Bounds are
// inclusive and maybe cut: a lower one is then a prefix of the least value, an upper one the increment of a prefix. A side
// that is missing or unusable is open; both are when either is NaN or when they are crossed.
func decodeBounds(t column.Type, lower, upper []byte) interval {
	if integerLike(t.Kind) {
		return decodeSpan(t.Kind, lower, upper).interval(t.Kind)
	}
	var r interval
	if lower != nil {
		r.lo, r.hasLo = decodeBound(t, lower)
	}
	if upper != nil {
		r.hi, r.hasHi = decodeBound(t, upper)
	}
	if r.hasLo && r.lo.IsNaN() || r.hasHi && r.hi.IsNaN() || r.hasLo && r.hasHi && compare(&r.lo, &r.hi) > 0 {
		return interval{}
	}
	switch t.Kind {
	case column.String:
		for strings.HasSuffix(r.lo.S, "\uFFFD") {
			r.lo.S = r.lo.S[:len(r.lo.S)-len("\uFFFD")]
		}
		r.hasHi = r.hasHi && soundUpper(r.hi.S)
	case column.Binary:
		r.hasHi = r.hasHi && r.hi.S != ""
	}
	return r
}

// soundUpper distrusts upper bounds that a writer cut without raising them: inside a character (not UTF-8, or ending in the
// replacement character that a lossy conversion leaves), or to nothing.
func soundUpper(s string) bool {
	return s != "" && utf8.ValidString(s) && !strings.HasSuffix(s, "\uFFFD")
}

// decodeSpan is decodeBounds for an integer-like kind.
func decodeSpan(k column.Kind, lower, upper []byte) (in span) {
	in.lo, in.hasLo = decodeInteger(k, lower)
	in.hi, in.hasHi = decodeInteger(k, upper)
	if in.hasLo && in.hasHi && in.lo > in.hi {
		return span{}
	}
	return in
}
