package column

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"
)

// Vector is a run of values of one column, in Arrow's memory layout on little-endian machines.
//
//	Valid     one bit a value, least significant first; nil: no nulls. Bits at and past Len are unspecified
//	Fixed     Bool: one bit a value. Fixed-size kinds: Type.Size() bytes a value (Decimal: 16 bytes little-endian)
//	Off,Bytes variable-length kinds: value i is Bytes[Off[i]:Off[i+1]]
//	Off,Kids  List: row i holds Kids[0] values Off[i]..Off[i+1]. Map: the same over Kids[0] keys and Kids[1] values
//	Kids      Struct: one vector a field, each of Len values
//	Dict,Idx  if Dict is set: value i is Dict value Idx[i]; Fixed, Off, Bytes are empty. Nulls stay in Valid
//
// A slot of a null is unspecified but readable (an index of a null slot is in range, offsets are monotone).
type Vector struct {
	Type  Type
	Len   int
	Valid []uint64
	Fixed []byte
	Off   []uint32
	Bytes []byte
	Kids  []*Vector
	Dict  *Vector
	Idx   []uint32
}

// Batch holds the same rows of several columns. Cols run parallel to what was asked for. It is valid until the next
// call of whatever produced it.
type Batch struct {
	// Start is the file position of row 0 when Pos is nil: rows are then contiguous.
	Start uint32
	// Pos holds the file position of every row, ascending, when rows are not contiguous.
	Pos  []uint32
	Rows int
	Cols []*Vector
}

// Position is the file position of row i.
func (b *Batch) Position(i int) uint32 {
	if b.Pos != nil {
		return b.Pos[i]
	}
	return b.Start + uint32(i)
}

// Null reports whether value i is null.
func (v *Vector) Null(i int) bool { return v.Valid != nil && v.Valid[i>>6]>>(i&63)&1 == 0 }

// Nulls counts the nulls.
func (v *Vector) Nulls() int {
	if v.Valid == nil {
		return 0
	}
	n := 0
	for w := range (v.Len + 63) / 64 {
		x := v.Valid[w]
		if rest := v.Len - w*64; rest < 64 {
			x &= 1<<rest - 1
		}
		n += bits.OnesCount64(x)
	}
	return v.Len - n
}

// Int32s views Fixed as Int or Date values. Only for vectors without Dict.
func (v *Vector) Int32s() []int32 { return view[int32](v.Fixed, v.Len) }

// Int64s views Fixed as 8-byte integer values. Only for vectors without Dict.
func (v *Vector) Int64s() []int64 { return view[int64](v.Fixed, v.Len) }

// Float32s views Fixed as Float values. Only for vectors without Dict.
func (v *Vector) Float32s() []float32 { return view[float32](v.Fixed, v.Len) }

// Float64s views Fixed as Double values. Only for vectors without Dict.
func (v *Vector) Float64s() []float64 { return view[float64](v.Fixed, v.Len) }

func view[T any](b []byte, n int) []T {
	if n == 0 || len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// BytesOf views a slice of fixed-size values as bytes, for Vector.Fixed.
func BytesOf[T int32 | int64 | float32 | float64 | uint32 | uint64](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// Bit reads bit i of a packed Bool vector's Fixed.
func Bit(b []byte, i int) bool { return b[i>>3]>>(i&7)&1 == 1 }

// Raw is the bytes of variable-length or fixed-size value i (not Bool, not nested), through Dict. The slot of a null is unspecified.
func (v *Vector) Raw(i int) []byte {
	if v.Dict != nil {
		return v.Dict.Raw(int(v.Idx[i]))
	}
	if v.Type.Kind.VarLen() {
		return v.Bytes[v.Off[i]:v.Off[i+1]]
	}
	n := v.Type.Size()
	return v.Fixed[i*n : i*n+n]
}

// Value is value i of a primitive column; ok is false for null. It allocates for byte kinds: hot loops use the views.
func (v *Vector) Value(i int) (Value, bool) {
	if v.Type.Kind == Unknown || v.Null(i) {
		return Value{}, false
	}
	if v.Dict != nil {
		return v.Dict.Value(int(v.Idx[i]))
	}
	switch v.Type.Kind {
	case Bool:
		return BoolValue(Bit(v.Fixed, i)), true
	case Int, Date:
		return IntValue(v.Type.Kind, int64(int32(binary.LittleEndian.Uint32(v.Raw(i))))), true
	case Float:
		return FloatValue(math.Float32frombits(binary.LittleEndian.Uint32(v.Raw(i)))), true
	case Double:
		return Value{Kind: Double, Lo: binary.LittleEndian.Uint64(v.Raw(i))}, true
	case Decimal:
		b := v.Raw(i)
		return DecimalValue(int64(binary.LittleEndian.Uint64(b[8:])), binary.LittleEndian.Uint64(b), v.Type.Scale), true
	case Long, Time, Timestamp, TimestampTZ, TimestampNS, TimestampNZ:
		return IntValue(v.Type.Kind, int64(binary.LittleEndian.Uint64(v.Raw(i)))), true
	default:
		return BytesValue(v.Type.Kind, v.Raw(i)), true
	}
}
