package ordered

import (
	"encoding/binary"
	"math"
	"sort"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// numbers is an interval of keys of eight bytes, both ends included.
type numbers struct{ lo, hi uint64 }

// numbersOf is intervals as numbers, ascending and disjoint as they are; ok is false where an end is no key of eight bytes.
func numbersOf(in []index.Interval) (out []numbers, ok bool) {
	out = make([]numbers, 0, len(in))
	for _, iv := range in {
		x := numbers{0, math.MaxUint64}
		switch {
		case len(iv.Lo) == 8:
			x.lo = binary.BigEndian.Uint64(iv.Lo)
		case len(iv.Lo) > 0:
			return nil, false
		}
		switch {
		case iv.NoHi:
		case len(iv.Hi) == 8:
			x.hi = binary.BigEndian.Uint64(iv.Hi)
		default:
			return nil, false
		}
		if len(iv.Lo) == 8 && iv.LoOpen {
			if x.lo == math.MaxUint64 {
				continue
			}
			x.lo++
		}
		if !iv.NoHi && iv.HiOpen {
			if x.hi == 0 {
				continue
			}
			x.hi--
		}
		if x.lo <= x.hi {
			out = append(out, x)
		}
	}
	return out, true
}

// matchNarrow is matchKeys for keys of eight bytes, read as big-endian numbers. b is the bytes from the first key on.
func matchNarrow(r *bytescan.Reader, b []byte, n int, in []numbers) (hits []hit) {
	at, key, next := 0, uint64(0), 0
	for i := range n {
		shared := 9
		if at < len(b) {
			shared = int(b[at])
		}
		end := at + 9 - shared
		if shared > 8 || end > len(b) || i == 0 && shared > 0 {
			r.Fail("key %d shares %d of 8 bytes, at byte %d of %d", i, shared, at, len(b))
			return nil
		}
		same := ^(^uint64(0) >> (8 * shared))
		k := key&same | suffix(b[at+1:], 8-shared)
		if i > 0 && k <= key {
			r.Fail("key %d is not above the one before", i)
			return nil
		}
		at, key = end, k
		if i == 0 {
			next = sort.Search(len(in), func(j int) bool { return in[j].hi >= k })
		}
		for next < len(in) && in[next].hi < k {
			next++
		}
		if next == len(in) || k < in[next].lo {
			continue
		}
		if h := len(hits) - 1; h >= 0 && hits[h].to == i {
			hits[h].to = i + 1
		} else {
			hits = append(hits, hit{from: i, to: i + 1})
		}
	}
	r.Bytes(at)
	return hits
}

// suffix is the number whose last n bytes b begins with.
func suffix(b []byte, n int) (x uint64) {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b) >> (64 - 8*n)
	}
	for _, c := range b[:n] {
		x = x<<8 | uint64(c)
	}
	return x
}
