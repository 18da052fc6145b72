package mask

import (
	"encoding/binary"
	"math/bits"

	"github.com/skomerdb/skomer/internal/column"
)

// sieve is bits by hash of the keys of one integer-like column: a value whose bit is not set is none of them. A Bloom filter of one
// hash function (Bloom, 1970), with sieveBits bits a key or more.
type sieve struct {
	words []uint64 // a power of two many; nil: everything may be a key
	shift int
}

const sieveBits = 16

// sift makes the sieve, once all keys are there.
func (k *keySet) sift() {
	if len(k.cols) != 1 || !sieved(k.cols[0].Leaf().Type) || len(k.rows) == 0 {
		return
	}
	log := max(6, bits.Len(uint(len(k.rows)*sieveBits-1)))
	s := sieve{make([]uint64, 1<<log>>6), 64 - log}
	for key := range k.rows {
		var raw [8]byte
		if copy(raw[:], key[1:]) > 0 { // nulls have no bytes
			h := s.hash(binary.LittleEndian.Uint64(raw[:]))
			s.words[h>>6] |= 1 << (h & 63)
		}
	}
	k.sieve = s
	k.bytes += int64(8 * len(s.words))
}

// sieved reports whether values of a type are 4 or 8 bytes that are equal where the values are.
func sieved(t column.Type) bool {
	return !t.Kind.Nested() && !t.Kind.VarLen() && !t.Kind.Floating() && t.Kind != column.Bool && (t.Size() == 4 || t.Size() == 8)
}

// hash multiplies by 2^64 over the golden ratio (Knuth, The Art of Computer Programming 3, 6.4).
func (s *sieve) hash(x uint64) uint64 { return x * 0x9e3779b97f4a7c15 >> s.shift }

func (s *sieve) passes(x uint64) bool {
	h := s.hash(x)
	return s.words[h>>6]>>(h&63)&1 == 1
}

func (k *keySet) siftable(b *column.Batch) bool {
	return k.sieve.words != nil && b.Cols[0].Dict == nil && b.Cols[0].Valid == nil && b.Cols[0].Type.Kind == k.cols[0].Leaf().Type.Kind
}

// sifted is rowsIn where the values are the column's own: only those that pass the sieve are looked up.
func (k *keySet) sifted(b *column.Batch, hits []uint32) []uint32 {
	v := b.Cols[0]
	var key []byte
	look := func(i int) {
		key = appendCell(key[:0], v, i)
		if _, in := k.rows[string(key)]; in {
			hits = append(hits, b.Position(i))
		}
	}
	if v.Type.Size() == 4 {
		for i, x := range v.Int32s() {
			if k.sieve.passes(uint64(uint32(x))) {
				look(i)
			}
		}
		return hits
	}
	for i, x := range v.Int64s() {
		if k.sieve.passes(uint64(x)) {
			look(i)
		}
	}
	return hits
}
