package rowset

import (
	"fmt"
	"sort"
)

// And is the rows in both sets. Sets of different sizes panic.
func And(a, b *Set) *Set {
	switch sameSize(a, b); {
	case a == b || a.none() || b.all():
		return a
	case b.none() || a.all():
		return b
	}
	return combine(a, b, func(x, y uint64) uint64 { return x & y }, intersectRanges)
}

// Or is the rows in either set.
func Or(a, b *Set) *Set {
	switch sameSize(a, b); {
	case a == b || a.all() || b.none():
		return a
	case b.all() || a.none():
		return b
	}
	return combine(a, b, func(x, y uint64) uint64 { return x | y }, uniteRanges)
}

// AndNot is the rows in a and not in b.
func AndNot(a, b *Set) *Set {
	switch sameSize(a, b); {
	case a.none() || b.none():
		return a
	case a == b || b.all():
		return None(a.size)
	}
	return combine(a, b, func(x, y uint64) uint64 { return x &^ y }, func(x, y []Range) []Range {
		return intersectRanges(x, gaps(y, a.size))
	})
}

// Not is the rows not in s.
func Not(s *Set) *Set { return AndNot(All(s.size), s) }

func sameSize(a, b *Set) {
	if a.size != b.size {
		panic(fmt.Sprintf("rowset: sets over %d and %d rows", a.size, b.size))
	}
}

// none and all tell without a look at the rows; a set of no row, and of every row, is always held as ranges.
func (s *Set) none() bool { return s.bits == nil && len(s.ranges) == 0 }

func (s *Set) all() bool {
	return s.bits == nil && (s.size == 0 || len(s.ranges) == 1 && s.ranges[0].Len() == s.size)
}

func combine(a, b *Set, word func(x, y uint64) uint64, ranges func(x, y []Range) []Range) *Set {
	if a.bits == nil && b.bits == nil {
		return (&Set{size: a.size, ranges: ranges(a.ranges, b.ranges)}).compact()
	}
	x, y := a.Words(), b.Words()
	out := make([]uint64, len(x))
	for i := range out {
		out[i] = word(x[i], y[i])
	}
	return (&Set{size: a.size, bits: out}).compact()
}

func intersectRanges(x, y []Range) []Range {
	var out []Range
	for i, j := 0, 0; i < len(x) && j < len(y); {
		out = appendRange(out, Range{max(x[i].Start, y[j].Start), min(x[i].End, y[j].End)})
		if x[i].End < y[j].End {
			i++
		} else {
			j++
		}
	}
	return out
}

func uniteRanges(x, y []Range) []Range {
	out := make([]Range, 0, len(x)+len(y))
	for len(x) > 0 || len(y) > 0 {
		if len(y) == 0 || len(x) > 0 && x[0].Start <= y[0].Start {
			out, x = appendRange(out, x[0]), x[1:]
		} else {
			out, y = appendRange(out, y[0]), y[1:]
		}
	}
	return out
}

func gaps(x []Range, size uint32) []Range {
	out := make([]Range, 0, len(x)+1)
	at := uint32(0)
	for _, r := range x {
		out = appendRange(out, Range{at, r.Start})
		at = r.End
	}
	return appendRange(out, Range{at, size})
}

// Slice is the rows of s in [start, end), renumbered from 0: how a segment's set becomes a file's.
func Slice(s *Set, start, end uint32) *Set {
	if start > end || end > s.size {
		panic(fmt.Sprintf("rowset: slice [%d, %d) of %d rows", start, end, s.size))
	}
	if start == end {
		return None(0)
	}
	if s.bits != nil {
		return FromBits(end-start, shifted(s.bits[start/64:(uint64(end)+63)/64], start%64))
	}
	first := sort.Search(len(s.ranges), func(i int) bool { return s.ranges[i].End > start })
	var out []Range
	for _, r := range s.ranges[first:] {
		if r.Start >= end {
			break
		}
		out = append(out, Range{max(r.Start, start) - start, min(r.End, end) - start})
	}
	return (&Set{size: end - start, ranges: out}).compact()
}

// shifted is words without their first by bits, of which there are fewer than 64.
func shifted(words []uint64, by uint32) []uint64 {
	if by == 0 {
		return words
	}
	out := make([]uint64, len(words))
	for i, w := range words {
		out[i] = w >> by
		if i+1 < len(words) {
			out[i] |= words[i+1] << (64 - by)
		}
	}
	return out
}

// Verdict is what an index says of a predicate: every row of Must matches, no row outside May does.
type Verdict struct{ Must, May *Set }

// Maybe is the verdict that says nothing about size rows.
func Maybe(size uint32) Verdict { return Verdict{Must: None(size), May: All(size)} }

// Exactly is the verdict that the matching rows are s.
func Exactly(s *Set) Verdict { return Verdict{Must: s, May: s} }

// AtMost is the verdict that the matching rows are some of s.
func AtMost(s *Set) Verdict { return Verdict{Must: None(s.size), May: s} }

// Exact reports whether the verdict leaves no doubt.
func (v Verdict) Exact() bool { return v.Must == v.May || v.Must.Count() == v.May.Count() }

// Unsure is the rows that must be rechecked.
func (v Verdict) Unsure() *Set { return AndNot(v.May, v.Must) }

// Both is the verdict of a conjunction.
func Both(a, b Verdict) Verdict { return both(a, b, And) }

// Either is the verdict of a disjunction.
func Either(a, b Verdict) Verdict { return both(a, b, Or) }

// both combines verdicts set by set, or once where neither leaves a doubt.
func both(a, b Verdict, op func(x, y *Set) *Set) Verdict {
	if a.Must == a.May && b.Must == b.May {
		return Exactly(op(a.May, b.May))
	}
	return Verdict{Must: op(a.Must, b.Must), May: op(a.May, b.May)}
}

// Tighten joins two verdicts about the same predicate.
func Tighten(a, b Verdict) Verdict { return Verdict{Must: Or(a.Must, b.Must), May: And(a.May, b.May)} }

// Negate turns the verdict of a predicate into that of its negation over domain: the rows on which the predicate is
// known to be true or false. A nil domain is unknown and gives Maybe.
func Negate(v Verdict, domain *Set) Verdict {
	if domain == nil {
		return Maybe(v.May.size)
	}
	return Verdict{Must: AndNot(domain, v.May), May: AndNot(domain, v.Must)}
}

// SliceVerdict is Slice of both sets.
func SliceVerdict(v Verdict, start, end uint32) Verdict {
	if v.Must == v.May {
		return Exactly(Slice(v.May, start, end))
	}
	return Verdict{Must: Slice(v.Must, start, end), May: Slice(v.May, start, end)}
}
