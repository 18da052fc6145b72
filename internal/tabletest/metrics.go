package tabletest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
)

// metric is what an honest writer states of a column, with some of it left out.
func metric(rng *rand.Rand, l Leaf, rows []Row, i int) (lakewrite.Metric, bool) {
	var m lakewrite.Metric
	if rng.IntN(5) == 0 {
		return m, false
	}
	var values, nulls, nans int64
	var low, high *column.Value
	see := func(c Cell) {
		values++
		switch {
		case c.Null:
			nulls++
		case c.Val.IsNaN():
			nans++
		default:
			if low == nil || column.Compare(c.Val, *low) < 0 {
				low = &c.Val
			}
			if high == nil || column.Compare(c.Val, *high) > 0 {
				high = &c.Val
			}
		}
	}
	for _, r := range rows {
		if !l.List {
			see(r[i])
			continue
		}
		for _, c := range r[i].List {
			see(c)
		}
	}
	if rng.IntN(5) > 0 && !l.List {
		m.Values, m.Nulls = lakewrite.N(values), lakewrite.N(nulls)
		if l.Element().Kind.Floating() && rng.IntN(2) == 0 {
			m.NaNs = lakewrite.N(nans)
		}
	}
	if low != nil && rng.IntN(5) > 0 && !l.List {
		m.Lower, m.Upper = single(l.Element(), *low), single(l.Element(), *high)
		if k := l.Element().Kind; k == column.String || k == column.Binary {
			m.Lower, m.Upper = truncate(k, m.Lower, m.Upper)
		}
	}
	return m, true
}

// truncate cuts bounds to 16 code points or bytes, the upper one only when nothing is lost by leaving it whole.
func truncate(k column.Kind, low, high []byte) (l, h []byte) {
	if k == column.String {
		if r := []rune(string(low)); len(r) > 16 {
			low = []byte(string(r[:16]))
		}
	} else if len(low) > 16 {
		low = low[:16]
	}
	if len(high) > 64 {
		high = nil
	}
	return low, high
}

// single is Iceberg's single-value serialisation (table spec, appendix D).
func single(t column.Type, v column.Value) []byte {
	switch t.Kind {
	case column.Bool:
		return []byte{byte(v.Lo)}
	case column.Int, column.Date:
		return binary.LittleEndian.AppendUint32(nil, uint32(v.Lo))
	case column.Float:
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v.Float64())))
	case column.Decimal:
		b := Unscaled(v)
		width := (b.BitLen() + 8) / 8
		out := make([]byte, 16)
		binary.BigEndian.PutUint64(out, uint64(v.Hi))
		binary.BigEndian.PutUint64(out[8:], v.Lo)
		return out[16-width:]
	case column.String, column.UUID, column.Fixed, column.Binary:
		return []byte(v.S)
	default:
		return binary.LittleEndian.AppendUint64(nil, v.Lo)
	}
}
