package column

import (
	"encoding/binary"
	"math/bits"
)

// Keep is a copy of the rows whose bits are set: bit i%64 of words[i/64] is row i, bits from Rows on are zero. A dictionary with more
// values than rows are kept is flattened.
func (b *Batch) Keep(words []uint64) *Batch {
	k := &keeping{words: words[:(b.Rows+63)/64]}
	for _, w := range k.words {
		k.n += bits.OnesCount64(w)
	}
	if k.n == b.Rows {
		return b.Clone()
	}
	out := &Batch{Rows: k.n, Cols: make([]*Vector, len(b.Cols))}
	if b.Pos != nil {
		out.Pos = kept(b.Pos[:b.Rows], k)
	} else {
		out.Pos = k.numbers(b.Start)
	}
	for i, v := range b.Cols {
		out.Cols[i] = v.keep(k)
	}
	return out
}

// keeping is which of a batch's rows are kept, and how many.
type keeping struct {
	words []uint64
	n     int
	found []uint32 // the rows by number; nil: not asked for yet
}

func (k *keeping) rows() []uint32 {
	if k.found == nil {
		k.found = k.numbers(0)
	}
	return k.found
}

// sparse is the set bits of a word below which they are looked for one by one.
const sparse = 8

// places is, for every byte, where its set bits are, lowest first. What follows the last one is 0: eight values are moved at a time,
// without a branch, and those that are not wanted are overwritten by the next eight.
var places = func() (out [256][8]uint8) {
	for b := range out {
		for at, rest := 0, uint8(b); rest != 0; at++ {
			out[b][at] = uint8(bits.TrailingZeros8(rest))
			rest &= rest - 1
		}
	}
	return out
}()

// numbers is the rows that are kept, counted from start.
func (k *keeping) numbers(start uint32) []uint32 {
	out := make([]uint32, k.n+8)
	at := 0
	for w, word := range k.words {
		for first := start + uint32(w)<<6; word != 0; first, word = first+8, word>>8 {
			from, to := &places[byte(word)], (*[8]uint32)(out[at:])
			to[0], to[1], to[2], to[3] = first+uint32(from[0]), first+uint32(from[1]), first+uint32(from[2]), first+uint32(from[3])
			to[4], to[5], to[6], to[7] = first+uint32(from[4]), first+uint32(from[5]), first+uint32(from[6]), first+uint32(from[7])
			at += bits.OnesCount8(byte(word))
		}
	}
	return out[:k.n:k.n]
}

// kept copies the elements that are kept.
func kept[T any](from []T, k *keeping) []T {
	out := make([]T, k.n+8)
	at := 0
	for w, word := range k.words {
		block := from[w<<6 : min(len(from), w<<6+64)]
		n := bits.OnesCount64(word)
		if n == 64 {
			at += copy(out[at:], block)
			continue
		}
		if n >= sparse {
			for ; len(block) >= 8; block, word = block[8:], word>>8 {
				move8((*[8]T)(out[at:]), (*[8]T)(block), &places[byte(word)])
				at += bits.OnesCount8(byte(word))
			}
		}
		for ; word != 0; word &= word - 1 {
			out[at] = block[bits.TrailingZeros64(word)]
			at++
		}
	}
	return out[:k.n:k.n]
}

func move8[T any](to, from *[8]T, at *[8]uint8) {
	to[0], to[1], to[2], to[3] = from[at[0]&7], from[at[1]&7], from[at[2]&7], from[at[3]&7]
	to[4], to[5], to[6], to[7] = from[at[4]&7], from[at[5]&7], from[at[6]&7], from[at[7]&7]
}

// keptBits is kept of single bits.
func keptBits(from []uint64, k *keeping) []uint64 {
	out := make([]uint64, (k.n+63)/64+1)
	at := 0
	for w, word := range k.words {
		x, n := from[w], bits.OnesCount64(word)
		switch {
		case n == 0:
			continue
		case n == 64:
		case x&word == word:
			x = 1<<n - 1
		default:
			x = gathered(x, word)
		}
		out[at>>6] |= x << (at & 63)
		out[at>>6+1] |= x >> (64 - at&63)
		at += n
	}
	return out[: (k.n+63)/64 : (k.n+63)/64]
}

// gathered moves the bits of x that mask has to the low end.
func gathered(x, mask uint64) (out uint64) {
	for at := 0; mask != 0; mask >>= 1 {
		out |= x & mask & 1 << at
		at += int(mask & 1)
		x >>= 1
	}
	return out
}

func (v *Vector) keep(k *keeping) *Vector {
	out := &Vector{Type: v.Type, Len: k.n}
	if v.Valid != nil {
		out.Valid = keptBits(v.Valid, k)
	}
	switch kind := v.Type.Kind; {
	case kind == Unknown:
	case v.Dict != nil:
		v.keepIndexes(out, k)
	case kind == Struct:
		for _, kid := range v.Kids {
			out.Kids = append(out.Kids, kid.keep(k))
		}
	case kind == List || kind == Map:
		v.pickElements(out, k.rows())
	case kind == Bool:
		out.Fixed = BytesOf(keptBits(wordsOf(v.Fixed, len(k.words)), k))[:(k.n+7)/8]
	case kind.VarLen():
		v.keepBytes(out, k)
	case v.Type.Size() == 8:
		out.Fixed = BytesOf(kept(v.Int64s(), k))
	case v.Type.Size() == 4:
		out.Fixed = BytesOf(kept(v.Int32s(), k))
	default:
		out.Fixed = v.pickFixed(k.rows())
	}
	return out
}

func (v *Vector) keepIndexes(out *Vector, k *keeping) {
	out.Dict, out.Idx = v.Dict, kept(v.Idx[:v.Len], k)
	if v.Dict.Len <= k.n {
		out.Dict = v.Dict.Clone()
		return
	}
	*out = *out.Flatten()
}

// wordsOf is n words of packed bits.
func wordsOf(b []byte, n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		if from := b[i*8:]; len(from) >= 8 {
			out[i] = binary.LittleEndian.Uint64(from)
		} else {
			var last [8]byte
			copy(last[:], from)
			out[i] = binary.LittleEndian.Uint64(last[:])
		}
	}
	return out
}

// keepBytes copies byte strings, neighbours together.
func (v *Vector) keepBytes(out *Vector, k *keeping) {
	total, runs := 0, k.runs()
	for _, r := range runs {
		total += int(v.Off[r.to] - v.Off[r.from])
	}
	out.Off, out.Bytes = make([]uint32, 1, k.n+1), make([]byte, 0, total)
	for _, r := range runs {
		moved := uint32(len(out.Bytes)) - v.Off[r.from]
		out.Bytes = append(out.Bytes, v.Bytes[v.Off[r.from]:v.Off[r.to]]...)
		for _, end := range v.Off[r.from+1 : r.to+1] {
			out.Off = append(out.Off, end+moved)
		}
	}
}

// run is neighbouring rows, to not among them.
type run struct{ from, to int }

// runs is the rows that are kept.
func (k *keeping) runs() []run {
	var out []run
	for w, word := range k.words {
		for word != 0 {
			from := bits.TrailingZeros64(word)
			to := from + bits.TrailingZeros64(^(word >> from))
			if n := len(out); n > 0 && out[n-1].to == w<<6+from {
				out[n-1].to = w<<6 + to
			} else {
				out = append(out, run{w<<6 + from, w<<6 + to})
			}
			word &= ^uint64(0) << to
		}
	}
	return out
}
