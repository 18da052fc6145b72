// Package rowset answers: which rows are meant, and how sure is an index of them?
//
// Set is an immutable set of row numbers below a fixed size, kept as ranges while there are few and as bits otherwise.
// Verdict is a pair of sets, must ⊆ answer ⊆ may. The package knows nothing of predicates, files or bytes.
package rowset

import (
	"fmt"
	"math/bits"
	"slices"
)

// Range is the rows from Start up to and not including End.
type Range struct{ Start, End uint32 }

// Len is the number of rows.
func (r Range) Len() uint32 { return r.End - r.Start }

// Set is an immutable set of rows in [0, Size). Exactly one of ranges and bits is in use; nil bits means ranges.
// Ranges are ascending, non-empty, and never touch each other. Unused bits of the last word are zero.
type Set struct {
	size   uint32
	ranges []Range
	bits   []uint64
}

// maxRangesPerWord is the density at which bits take less room than ranges (8 bytes each way).
const maxRangesPerWord = 1

// None is the empty set over size rows.
func None(size uint32) *Set { return &Set{size: size} }

// All is the full set over size rows.
func All(size uint32) *Set {
	if size == 0 {
		return None(0)
	}
	return &Set{size: size, ranges: []Range{{0, size}}}
}

// FromRanges makes a set of ranges in any order, overlapping or touching or not. Ranges past size panic.
func FromRanges(size uint32, ranges []Range) *Set {
	sorted := slices.IsSortedFunc(ranges, func(a, b Range) int { return cmp32(a.Start, b.Start) })
	if !sorted {
		ranges = slices.Clone(ranges)
		slices.SortFunc(ranges, func(a, b Range) int { return cmp32(a.Start, b.Start) })
	}
	out := make([]Range, 0, len(ranges))
	for _, r := range ranges {
		if r.End > size {
			panic(fmt.Sprintf("rowset: range [%d, %d) past the %d rows of the set", r.Start, r.End, size))
		}
		out = appendRange(out, r)
	}
	return (&Set{size: size, ranges: out}).compact()
}

// FromBits makes a set of a bit per row, least significant first; it keeps the slice. Bits at and past size are ignored.
func FromBits(size uint32, words []uint64) *Set {
	need := int((uint64(size) + 63) / 64)
	words = words[:need]
	if rest := size % 64; rest != 0 && words[need-1]>>rest != 0 {
		words = slices.Clone(words)
		words[need-1] &= 1<<rest - 1
	}
	return (&Set{size: size, bits: words}).compact()
}

// FromRows makes a set of ascending row numbers; repeats are allowed.
func FromRows(size uint32, rows []uint32) *Set {
	var out []Range
	for _, r := range rows {
		out = appendRange(out, Range{r, r + 1})
	}
	if n := len(out); n > 0 && out[n-1].End > size {
		panic(fmt.Sprintf("rowset: row %d past the %d rows of the set", out[n-1].End-1, size))
	}
	return (&Set{size: size, ranges: out}).compact()
}

func appendRange(out []Range, r Range) []Range {
	if r.Start >= r.End {
		return out
	}
	if n := len(out); n > 0 && r.Start <= out[n-1].End {
		out[n-1].End = max(out[n-1].End, r.End)
		return out
	}
	return append(out, r)
}

func cmp32(a, b uint32) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// compact picks the smaller form.
func (s *Set) compact() *Set {
	words := (int(s.size) + 63) / 64
	if s.bits == nil {
		if len(s.ranges) > words*maxRangesPerWord && words > 4 {
			s.bits = make([]uint64, words)
			for _, r := range s.ranges {
				setBits(s.bits, r)
			}
			s.ranges = nil
		}
		return s
	}
	runs := 0
	carry := uint64(0)
	for _, w := range s.bits {
		runs += bits.OnesCount64(w &^ (w<<1 | carry))
		carry = w >> 63
	}
	if runs*2 <= words*maxRangesPerWord || words <= 4 {
		s.ranges = rangesOf(s.bits, make([]Range, 0, runs))
		s.bits = nil
	}
	return s
}

func setBits(w []uint64, r Range) {
	first, last := r.Start>>6, (r.End-1)>>6
	lo, hi := ^uint64(0)<<(r.Start&63), ^uint64(0)>>(63-(r.End-1)&63)
	if first == last {
		w[first] |= lo & hi
		return
	}
	w[first] |= lo
	for i := first + 1; i < last; i++ {
		w[i] = ^uint64(0)
	}
	w[last] |= hi
}

func rangesOf(words []uint64, out []Range) []Range {
	for i, w := range words {
		base := uint32(i) << 6
		for w != 0 {
			start := bits.TrailingZeros64(w)
			n := bits.TrailingZeros64(^(w >> start))
			out = appendRange(out, Range{base + uint32(start), base + uint32(start+n)})
			if start+n == 64 {
				break
			}
			w &= ^uint64(0) << (start + n)
		}
	}
	return out
}

// Size is the number of rows the set is about.
func (s *Set) Size() uint32 { return s.size }

// Count is the number of rows in the set.
func (s *Set) Count() int64 {
	var n int64
	for _, w := range s.bits {
		n += int64(bits.OnesCount64(w))
	}
	for _, r := range s.ranges {
		n += int64(r.Len())
	}
	return n
}

// Empty reports whether no row is in the set.
func (s *Set) Empty() bool { return s.none() }

// Full reports whether every row is in the set.
func (s *Set) Full() bool { return s.all() }

// Contains reports whether row is in the set.
func (s *Set) Contains(row uint32) bool {
	if row >= s.size {
		return false
	}
	if s.bits != nil {
		return s.bits[row>>6]>>(row&63)&1 == 1
	}
	i, ok := slices.BinarySearchFunc(s.ranges, row, func(r Range, row uint32) int { return cmp32(r.Start, row) })
	return ok || i > 0 && s.ranges[i-1].End > row
}

// Ranges returns the set as ascending ranges that do not touch. The slice may be shared: do not write to it.
func (s *Set) Ranges() []Range {
	if s.bits != nil {
		return rangesOf(s.bits, nil)
	}
	return s.ranges
}

// Rows appends every row in ascending order.
func (s *Set) Rows(dst []uint32) []uint32 {
	for _, r := range s.Ranges() {
		for i := r.Start; i < r.End; i++ {
			dst = append(dst, i)
		}
	}
	return dst
}

// Words returns the set as one bit per row. The slice may be shared: do not write to it.
func (s *Set) Words() []uint64 {
	if s.bits != nil {
		return s.bits
	}
	w := make([]uint64, (int(s.size)+63)/64)
	for _, r := range s.ranges {
		setBits(w, r)
	}
	return w
}

// Intersects reports whether any row of r is in the set.
func (s *Set) Intersects(r Range) bool {
	r.End = min(r.End, s.size)
	if r.Start >= r.End {
		return false
	}
	if s.bits == nil {
		i, _ := slices.BinarySearchFunc(s.ranges, r.Start, func(x Range, at uint32) int { return cmp32(x.End, at+1) })
		return i < len(s.ranges) && s.ranges[i].Start < r.End
	}
	first, last := r.Start>>6, (r.End-1)>>6
	for i := first; i <= last; i++ {
		w := s.bits[i]
		if i == first {
			w &= ^uint64(0) << (r.Start & 63)
		}
		if i == last {
			w &= ^uint64(0) >> (63 - (r.End-1)&63)
		}
		if w != 0 {
			return true
		}
	}
	return false
}

// Equal reports whether both sets have the same size and rows.
func (s *Set) Equal(t *Set) bool {
	return s.size == t.size && slices.Equal(s.Ranges(), t.Ranges())
}

// String lists the ranges, for tests and explain.
func (s *Set) String() string {
	if s.Empty() {
		return fmt.Sprintf("none of %d", s.size)
	}
	if s.Full() {
		return fmt.Sprintf("all of %d", s.size)
	}
	r := s.Ranges()
	if len(r) > 8 {
		return fmt.Sprintf("%d of %d in %d ranges", s.Count(), s.size, len(r))
	}
	return fmt.Sprintf("%v of %d", r, s.size)
}
