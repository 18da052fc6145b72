package rowset

import "math/bits"

// Bridge is s with small gaps filled: what to decode where skipping a few rows costs more than reading them. Gaps of at most gap
// rows are filled; in a set that is held as bits, those that leave no word of 64 rows empty, up to 126 rows, for the price of a
// look at each word.
func Bridge(s *Set, gap uint32) *Set {
	if s.bits != nil {
		return bridgeWords(s)
	}
	var out []Range
	for _, r := range s.ranges {
		if n := len(out); n > 0 && r.Start-out[n-1].End <= gap {
			out[n-1].End = r.End
			continue
		}
		out = append(out, r)
	}
	return (&Set{size: s.size, ranges: out}).compact()
}

func bridgeWords(s *Set) *Set {
	var out []Range
	for i := 0; i < len(s.bits); i++ {
		if s.bits[i] == 0 {
			continue
		}
		first := i
		for i+1 < len(s.bits) && s.bits[i+1] != 0 {
			i++
		}
		out = append(out, Range{
			Start: uint32(first)<<6 + uint32(bits.TrailingZeros64(s.bits[first])), End: uint32(i)<<6 + uint32(bits.Len64(s.bits[i])),
		})
	}
	return (&Set{size: s.size, ranges: out}).compact()
}
