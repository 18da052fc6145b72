package parquetio

import (
	"math/bits"
	"slices"

	"github.com/skomerdb/skomer/internal/column"
)

// rows appends n rows of which k take the next values, where their validity bits, appended already, are set.
func (a *accumulator) rows(v *values, n, k int, dict *column.Vector) error {
	if err := a.take(v, k, dict); err != nil {
		return err
	}
	start := a.slots
	a.slots += n
	a.nulls += n - k
	if k < n {
		a.spread(start, n, k)
		a.stored += n - k
	}
	return nil
}

// room appends zero validity bits for n more slots.
func (a *accumulator) room(n int) {
	if words := (a.slots + n + 63) / 64; words > len(a.valid) {
		a.valid = slices.Grow(a.valid, words-len(a.valid))
		clear(a.valid[len(a.valid):words])
		a.valid = a.valid[:words]
	}
}

// mark appends a slot's validity for every level; valid is one that reaches top. It returns how many are.
func (a *accumulator) mark(def []uint8, top uint8) (valid int) {
	a.room(len(def))
	for i, d := range def {
		if d == top {
			at := a.slots + i
			a.valid[at>>6] |= 1 << (at & 63)
			valid++
		}
	}
	return valid
}

// setRange sets the bits [from, to).
func setRange(words []uint64, from, to int) {
	for from < to {
		w, b := from>>6, from&63
		n := min(64-b, to-from)
		words[w] |= ^uint64(0) >> (64 - n) << b
		from += n
	}
}

// spread moves the last k stored values apart to the n slots from start on where the validity bits are set. The other slots hold
// zeros, index 0 or empty bytes.
func (a *accumulator) spread(start, n, k int) {
	switch w := a.store(); {
	case a.dict != nil:
		a.idx = spread(a.idx, a.valid, start, n, k, 1)
	case w == 0:
		a.off = spreadOffsets(a.off, a.valid, start, n, k)
	default:
		a.fixed = spread(a.fixed, a.valid, start, n, k, w)
	}
}

// spread moves the last k items of w elements each, from the back, run by run.
func spread[T byte | uint32](s []T, valid []uint64, start, n, k, w int) []T {
	base := len(s) - k*w
	s = slices.Grow(s, (n-k)*w)[:base+n*w]
	from := base + k*w
	for i := n; i > 0; {
		run, set := runBefore(valid, start, start+i)
		to := s[base+(i-run)*w : base+i*w]
		if set {
			from -= run * w
			copy(to, s[from:from+run*w])
		} else {
			clear(to)
		}
		i -= run
	}
	return s
}

// spreadOffsets is spread for ends of byte strings: a null's end is that of the value before it.
func spreadOffsets(off []uint32, valid []uint64, start, n, k int) []uint32 {
	base := len(off) - k
	off = slices.Grow(off, n-k)[:base+n]
	from := base + k
	for i := n; i > 0; {
		run, set := runBefore(valid, start, start+i)
		to := off[base+i-run : base+i]
		if set {
			from -= run
			copy(to, off[from:from+run])
		} else {
			end := off[from-1]
			for j := range to {
				to[j] = end
			}
		}
		i -= run
	}
	return off
}

// runBefore is the length of the run of equal bits that ends before end, not reaching below start, and what they are.
func runBefore(words []uint64, start, end int) (n int, set bool) {
	last := end - 1
	set = words[last>>6]>>(last&63)&1 == 1
	for n < end-start {
		at := end - n // one past the bits to look at
		w, b := (at-1)>>6, (at-1)&63
		x := words[w] << (63 - b)
		if set {
			x = ^x
		}
		run := min(bits.LeadingZeros64(x), b+1)
		n += run
		if run < b+1 {
			break
		}
	}
	return min(n, end-start), set
}
