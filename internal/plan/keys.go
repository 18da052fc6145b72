package plan

import (
	"encoding/binary"
	"math"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
)

// decoderOf is how keys of a form become integers in the order of a kind; nil: not at all. A form of the width that the kind
// had before a promotion keeps its meaning (see decodeBound).
func decoderOf(kind column.Kind, k *facts.Keys) func(lo, hi *[64]int64, k *facts.Keys, at, n int) {
	switch kind {
	case column.Int, column.Date:
		if k.Form == facts.Raw4 {
			return ints4
		}
	case column.Long:
		switch k.Form {
		case facts.Raw4:
			return ints4
		case facts.Raw8:
			return ints8
		}
	case column.Time, column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		if k.Form == facts.Raw8 {
			return ints8
		}
	case column.Float, column.Double:
		switch {
		case k.Form == facts.Raw4:
			return floats4
		case k.Form == facts.Raw8 && kind == column.Double:
			return floats8
		}
	case column.String, column.Binary:
		switch {
		case k.Form == facts.Prefix8 || k.Form == facts.Raw8 && k.Text:
			return texts8
		case k.Form == facts.Raw4 && k.Text:
			return texts4
		}
	}
	return nil
}

func ints4(lo, hi *[64]int64, k *facts.Keys, at, n int) {
	l, h := k.Lower[4*at:4*(at+n)], k.Upper[4*at:4*(at+n)]
	for i := range n {
		lo[i] = int64(int32(binary.LittleEndian.Uint32(l[4*i:])))
		hi[i] = int64(int32(binary.LittleEndian.Uint32(h[4*i:])))
	}
}

func ints8(lo, hi *[64]int64, k *facts.Keys, at, n int) {
	l, h := k.Lower[8*at:8*(at+n)], k.Upper[8*at:8*(at+n)]
	for i := 0; i < 64 && len(l) >= 8 && len(h) >= 8; i++ {
		lo[i], hi[i] = int64(binary.LittleEndian.Uint64(l)), int64(binary.LittleEndian.Uint64(h))
		l, h = l[8:], h[8:]
	}
}

func texts8(lo, hi *[64]int64, k *facts.Keys, at, n int) {
	l, h := k.Lower[8*at:8*(at+n)], k.Upper[8*at:8*(at+n)]
	for i := range n {
		lo[i], hi[i] = flipped(binary.BigEndian.Uint64(l[8*i:])), flipped(binary.BigEndian.Uint64(h[8*i:]))
	}
}

func texts4(lo, hi *[64]int64, k *facts.Keys, at, n int) {
	l, h := k.Lower[4*at:4*(at+n)], k.Upper[4*at:4*(at+n)]
	for i := range n {
		lo[i] = flipped(uint64(binary.BigEndian.Uint32(l[4*i:])) << 32)
		hi[i] = flipped(uint64(binary.BigEndian.Uint32(h[4*i:])) << 32)
	}
}

func floats4(lo, hi *[64]int64, k *facts.Keys, at, n int) {
	for i := range n {
		lo[i], hi[i] = floatKeys(
			float64(math.Float32frombits(binary.LittleEndian.Uint32(k.Lower[4*(at+i):]))),
			float64(math.Float32frombits(binary.LittleEndian.Uint32(k.Upper[4*(at+i):]))))
	}
}

func floats8(lo, hi *[64]int64, k *facts.Keys, at, n int) {
	for i := range n {
		lo[i], hi[i] = floatKeys(
			math.Float64frombits(binary.LittleEndian.Uint64(k.Lower[8*(at+i):])),
			math.Float64frombits(binary.LittleEndian.Uint64(k.Upper[8*(at+i):])))
	}
}

// floatKeys leaves both sides open where one is NaN.
func floatKeys(lower, upper float64) (lo, hi int64) {
	if math.IsNaN(lower) || math.IsNaN(upper) {
		return math.MinInt64, math.MaxInt64
	}
	return floatKey(lower), floatKey(upper)
}
