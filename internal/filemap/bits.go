package filemap

import "encoding/binary"

// bitWriter packs numbers, the least significant bits first.
type bitWriter struct {
	buf  []byte
	acc  uint64
	have int
}

// put appends the n lowest bits of v, n at most 56; the bits above them must be zero.
func (w *bitWriter) put(v uint64, n int) {
	w.acc |= v << w.have
	w.have += n
	for w.have >= 8 {
		w.buf = append(w.buf, byte(w.acc))
		w.acc >>= 8
		w.have -= 8
	}
}

// flush pads to a byte.
func (w *bitWriter) flush() {
	if w.have > 0 {
		w.buf = append(w.buf, byte(w.acc))
	}
	w.acc, w.have = 0, 0
}

// bitsAt is the n bits of b, n at most 56, from bit at on. Bits past the end are zero.
func bitsAt(b []byte, at, n int) uint64 {
	from := at >> 3
	var word uint64
	if from+8 <= len(b) {
		word = binary.LittleEndian.Uint64(b[from:])
	} else {
		for i := from; i < len(b); i++ {
			word |= uint64(b[i]) << (8 * (i - from))
		}
	}
	return word >> (at & 7) & (1<<n - 1)
}
