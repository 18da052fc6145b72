package parquetio

import (
	"github.com/skomerdb/skomer/internal/fault"
)

var errDelta = fault.New(fault.Corrupt, "", "delta run ends early")

// deltaRun decodes one DELTA_BINARY_PACKED run of 32-bit lengths ("Encodings.md", DELTA_BINARY_PACKED = 5) and returns what follows it.
func deltaRun(dst []int32, body []byte, slots int) ([]int32, []byte, error) {
	total, err := deltaCount(body, slots)
	if err != nil {
		return nil, nil, err
	}
	c := &compact{b: body}
	block, minis := int(c.uvarint()), int(c.uvarint())
	c.uvarint()
	value := c.int64()
	if total == 0 {
		return dst, body[c.i:], c.err
	}
	per := block / minis
	if per%8 != 0 {
		return nil, nil, fault.New(fault.Corrupt, "", "delta blocks of %d values in %d parts", block, minis)
	}
	dst = append(dst, int32(value))
	total--
	for total > 0 && c.err == nil {
		floor := c.int64()
		if c.err != nil || minis > len(body)-c.i {
			return nil, nil, errDelta
		}
		widths := body[c.i : c.i+minis]
		c.i += minis
		for _, width := range widths {
			if total == 0 {
				break
			}
			n := min(per, total)
			size := min(per*int(width)/8, len(body)-c.i) // the last part may be cut
			if width > 64 || size*8 < n*int(width) {
				return nil, nil, errDelta
			}
			part := body[c.i : c.i+size]
			for i := range n {
				value += floor + int64(bitsAt(part, i*int(width), uint(width)))
				dst = append(dst, int32(value))
			}
			c.i += size
			total -= n
		}
	}
	return dst, body[c.i:], c.err
}

// bitsAt is width bits at a bit position, least significant first.
func bitsAt(b []byte, bit int, width uint) uint64 {
	if width == 0 {
		return 0
	}
	v := load(b, bit>>3) >> (bit & 7)
	if got := 64 - uint(bit&7); got < width {
		v |= load(b, bit>>3+8) << got
	}
	return v & (^uint64(0) >> (64 - width))
}
