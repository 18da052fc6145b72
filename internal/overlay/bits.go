package overlay

import (
	"encoding/binary"
	"math/bits"

	"github.com/skomerdb/skomer/internal/bytescan"
)

// bitset is a set of small numbers, one bit each; nil is empty.
type bitset []uint64

func (b bitset) has(i int) bool { return i>>6 < len(b) && b[i>>6]>>(i&63)&1 == 1 }

// with returns a copy that has i too.
func (b bitset) with(i int) bitset {
	out := make(bitset, max(len(b), i>>6+1))
	copy(out, b)
	out[i>>6] |= 1 << (i & 63)
	return out
}

func (b bitset) count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

func (b bitset) equal(c bitset) bool {
	for i := range max(len(b), len(c)) {
		var x, y uint64
		if i < len(b) {
			x = b[i]
		}
		if i < len(c) {
			y = c[i]
		}
		if x != y {
			return false
		}
	}
	return true
}

// Forms of a stored bitset.
const (
	bitsDeltas = 1 // count, then per member the distance from the one before: varints
	bitsWords  = 2 // words of 8 bytes
)

// encode appends the smaller form; an empty set has one form.
func (b bitset) encode(w *bytescan.Writer) {
	var deltas bytescan.Writer
	deltas.Uvarint(uint64(b.count()))
	last := 0
	for i, word := range b {
		for ; word != 0; word &= word - 1 {
			at := i<<6 + bits.TrailingZeros64(word)
			deltas.Uvarint(uint64(at - last))
			last = at
		}
	}
	words := (last + 64) >> 6
	if len(deltas.Buf) <= words*8 {
		w.U8(bitsDeltas)
		w.Bytes(deltas.Buf)
		return
	}
	w.U8(bitsWords)
	w.Uvarint(uint64(words))
	for _, word := range b[:words] {
		w.U64(word)
	}
}

// decodeBits reads a set of numbers below size.
func decodeBits(r *bytescan.Reader, size int) bitset {
	switch form := r.U8(); form {
	case bitsDeltas:
		return decodeDeltas(r, size)
	case bitsWords:
		raw := r.Bytes(8 * r.Count((size+63)/64, 8))
		out := make(bitset, len(raw)/8)
		for i := range out {
			out[i] = binary.LittleEndian.Uint64(raw[8*i:])
		}
		if n := len(out); n > 0 && size < n*64 && out[n-1]>>(size&63) != 0 {
			r.Fail("tombstone past the %d artifacts", size)
		}
		return out
	default:
		r.Fail("tombstones of form %d", form)
		return nil
	}
}

func decodeDeltas(r *bytescan.Reader, size int) bitset {
	n := r.Count(size, 1)
	if n == 0 {
		return nil
	}
	out := make(bitset, (size+63)/64)
	at := uint64(0)
	for range n {
		d := r.Uvarint()
		if d > uint64(size) || at+d >= uint64(size) {
			r.Fail("tombstone past the %d artifacts", size)
			return nil
		}
		at += d
		out[at>>6] |= 1 << (at & 63)
	}
	return out
}
