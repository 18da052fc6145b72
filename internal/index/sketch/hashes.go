package sketch

import (
	"encoding/binary"

	"github.com/apache/datasketches-go/hll"
	"github.com/apache/datasketches-go/theta"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// parseTheta reads a compact theta sketch of n values: u8 preamble longs, u8 serial version, u8 family, 2 × u8 unused, u8 flags, u16 hash of
// the seed; of two preamble longs and more u32 hashes, u32 unused; of three u64 theta; then the hashes, 8 bytes each.
func parseTheta(b []byte, lgK uint8, n int64) (s *theta.CompactSketch, err error) {
	r := bytescan.NewReader("theta sketch", b)
	pre, ver, family := r.U8(), r.U8(), r.U8()
	r.U16()
	flags := r.U8()
	r.U16()
	hashes := 0
	switch {
	case r.Err() != nil:
		return nil, r.Err()
	case ver != 3 || family != 3 || pre < 1 || pre > 3:
		r.Fail("preamble %d, version %d, family %d", pre, ver, family)
	case pre == 1 && flags&4 == 0:
		hashes = 1
	case pre > 1:
		hashes = int(r.U32())
	}
	if r.Err() == nil && (hashes > 2<<lgK || int64(hashes) > n || len(b) != 8*(int(pre)+hashes)) {
		r.Fail("%d hashes of %d values in %d bytes", hashes, n, len(b))
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	err = guarded("theta sketch", func() (err error) { s, err = theta.Decode(b, seed); return err })
	if err != nil {
		return nil, err
	}
	last := uint64(0)
	for h := range s.All() {
		if h <= last || h >= s.Theta64() {
			return nil, index.Broken("theta sketch", "its hashes do not ascend below theta")
		}
		last = h
	}
	return s, nil
}

// parseHLL reads a compact HLL_8 sketch of n values: u8 preamble ints, u8 serial version, u8 family, u8 lg k, u8 lg of the coupon table,
// u8 flags, u8 coupons of a list, u8 mode; of a set u32 coupons; then coupons of 4 bytes, or 32 bytes of sums and 2^lg k registers.
func parseHLL(b []byte, n int64) (s hll.HllSketch, err error) {
	r := bytescan.NewReader("HLL sketch", b)
	pre, ver, family, lgK, lgArr := r.U8(), r.U8(), r.U8(), r.U8(), r.U8()
	r.U8()
	list, mode := int(r.U8()), r.U8()
	if r.Err() == nil && (ver != 1 || family != 7 || lgK != hllLgK || lgArr > hllLgK) {
		r.Fail("version %d, family %d, lg k %d, %d", ver, family, lgK, lgArr)
	}
	size := 0
	switch [2]uint8{pre, mode} {
	case [2]uint8{2, 8}:
		size = 8 + 4*list
	case [2]uint8{3, 9}:
		coupons := r.U32()
		if coupons > 1<<hllLgK {
			r.Fail("%d coupons", coupons)
		}
		size = 12 + 4*int(coupons)
	case [2]uint8{10, 10}:
		size = 40 + 1<<hllLgK
	default:
		r.Fail("preamble %d, mode %d", pre, mode)
	}
	if r.Err() == nil && (len(b) != size || (n == 0) != (pre == 2 && list == 0)) {
		r.Fail("%d bytes, not %d, for %d values", len(b), size, n)
	}
	if r.Err() != nil {
		return nil, r.Err()
	}
	if pre == 10 {
		for _, register := range b[40:] {
			if register > 63 {
				return nil, index.Broken("HLL sketch", "register %d", register)
			}
		}
	} else {
		for at := size - 4; at >= 4*int(pre); at -= 4 {
			if c := binary.LittleEndian.Uint32(b[at:]); c>>26 == 0 {
				return nil, index.Broken("HLL sketch", "coupon %d", c)
			}
		}
	}
	err = guarded("HLL sketch", func() (err error) { s, err = hll.NewHllSketchFromSlice(b, true); return err })
	return s, err
}
