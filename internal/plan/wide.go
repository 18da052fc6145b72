package plan

import (
	"math/bits"

	"github.com/skomerdb/skomer/internal/column"
)

// decimalStep is the decimals that truncate to v: their unscaled values are the W from v upwards.
func (t transform) decimalStep(p *column.Value) (r interval, ok bool) {
	v, ok := promoted(p, t.of)
	if !ok || remainder(v.Hi, v.Lo, uint64(t.param)) != 0 {
		return r, false
	}
	lo, carry := bits.Add64(v.Lo, uint64(t.param-1), 0)
	hi := v.Hi + int64(carry)
	r = interval{lo: v, hasLo: true}
	if hi >= v.Hi {
		r.hi, r.hasHi = column.DecimalValue(hi, lo, int(v.Scale)), true
	}
	return r, true
}

// remainder is |hi:lo| mod m of a 128-bit two's complement number.
func remainder(hi int64, lo, m uint64) uint64 {
	h := uint64(hi)
	if hi < 0 {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		h, _ = bits.Sub64(0, h, borrow)
	}
	return bits.Rem64(h, lo, m)
}

// minimalBytes is the shortest big-endian two's complement form of an unscaled decimal, the form that bucket hashes.
func minimalBytes(v column.Value) []byte {
	var full [16]byte
	for i := range 8 {
		full[i] = byte(uint64(v.Hi) >> (56 - 8*i))
		full[8+i] = byte(v.Lo >> (56 - 8*i))
	}
	b := full[:]
	for len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xFF && b[1] >= 0x80) {
		b = b[1:]
	}
	return b
}
