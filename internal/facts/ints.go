package facts

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Ints is a column of integers as offsets from their least: a column of equal values takes no byte a value.
//
//	value i = Base + little-endian unsigned integer of Width bytes at i*Width of Data, modulo 2⁶⁴
type Ints struct {
	Base  int64
	Width int // 0, 1, 2, 4 or 8 bytes
	Data  []byte
}

// PackInts makes the narrowest column of v.
func PackInts(v []int64) Ints {
	if len(v) == 0 {
		return Ints{}
	}
	low, high := slices.Min(v), slices.Max(v)
	x := Ints{Base: low, Width: widthOf(uint64(high) - uint64(low))}
	if x.Width == 0 {
		return x
	}
	x.Data = make([]byte, x.Width*len(v))
	for i, n := range v {
		u, b := uint64(n)-uint64(low), x.Data[i*x.Width:]
		switch x.Width {
		case 1:
			b[0] = byte(u)
		case 2:
			binary.LittleEndian.PutUint16(b, uint16(u))
		case 4:
			binary.LittleEndian.PutUint32(b, uint32(u))
		case 8:
			binary.LittleEndian.PutUint64(b, u)
		}
	}
	return x
}

func widthOf(span uint64) int {
	switch n := bits.Len64(span); {
	case n == 0:
		return 0
	case n <= 8:
		return 1
	case n <= 16:
		return 2
	case n <= 32:
		return 4
	default:
		return 8
	}
}

// At is value i.
func (x *Ints) At(i int) int64 {
	switch x.Width {
	case 0:
		return x.Base
	case 1:
		return x.Base + int64(x.Data[i])
	case 2:
		return x.Base + int64(binary.LittleEndian.Uint16(x.Data[2*i:]))
	case 4:
		return x.Base + int64(binary.LittleEndian.Uint32(x.Data[4*i:]))
	default:
		return x.Base + int64(binary.LittleEndian.Uint64(x.Data[8*i:]))
	}
}
