package sketch

import (
	"bytes"
	"encoding/binary"
	"sort"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
)

// Summary is what is worth knowing of a sketch without its bytes: small enough to stand in the list of an overlay, as JSON.
type Summary struct {
	Kind  column.Kind `json:"kind"` // with Scale and Width the encoding
	Scale uint8       `json:"scale,omitempty"`
	Width uint32      `json:"width,omitempty"`
	List  bool        `json:"list,omitempty"` // values are elements
	Counts
	Distinct Estimate `json:"distinct"`
	HLL      float64  `json:"hll"`
	// Quantiles are keys at Ranks, cut to 32 bytes, so that values that differ behind them are taken as one; none where no value is known.
	Quantiles [][]byte `json:"quantiles,omitempty"`
	// Cut has bit i set where Quantiles[i] is the beginning of a longer key.
	Cut uint64 `json:"cut,omitempty"`
}

// Ranks are those of Summary.Quantiles: the ends, one in a hundred from each, and every 32nd between.
var Ranks = ranks()

// summaryKey is the bytes of a quantile in a Summary.
const summaryKey = 32

func ranks() []float64 {
	out := []float64{0, 0.01}
	for i := 1; i < 32; i++ {
		out = append(out, float64(i)/32)
	}
	return append(out, 0.99, 1)
}

// Summary sums the sketch up.
func (s *Sketch) Summary() (Summary, error) {
	out := Summary{
		Kind: s.enc.Kind, Scale: s.enc.Scale, Width: s.enc.Width, List: s.ofList, Counts: s.Counts, Distinct: s.Distinct(), HLL: s.DistinctHLL(),
	}
	keys, err := s.Quantiles(Ranks)
	for i, k := range keys {
		out.Quantiles = append(out.Quantiles, k[:min(len(k), summaryKey)])
		if len(k) > summaryKey {
			out.Cut |= 1 << i
		}
	}
	return out, err
}

// Encoding is the type in which values were taken.
func (s *Summary) Encoding() index.Encoding {
	return index.Encoding{Kind: s.Kind, Scale: s.Scale, Width: s.Width}
}

// At is the quantile key at one of Ranks; nil if there is none. The key of the empty text is empty.
func (s *Summary) At(rank float64) []byte {
	i := sort.SearchFloat64s(Ranks, rank)
	if len(s.Quantiles) != len(Ranks) || i == len(Ranks) || Ranks[i] != rank {
		return nil
	}
	if key := s.Quantiles[i]; key != nil {
		return key
	}
	return []byte{}
}

// Whole reports whether At is a whole key: not the beginning of a longer one.
func (s *Summary) Whole(rank float64) bool {
	i := sort.SearchFloat64s(Ranks, rank)
	return i == len(Ranks) || s.Cut>>i&1 == 0
}

// Share estimates the part of the values, from 0 to 1, whose keys lie in the interval. ok is false where nothing is known of them.
func (s *Summary) Share(iv index.Interval) (share float64, ok bool) {
	if len(s.Quantiles) != len(Ranks) || s.Values == 0 {
		return 0, s.Values == 0
	}
	if iv.Point() {
		return s.point(iv.Lo), true
	}
	low, high := 0.0, 1.0
	if iv.Lo != nil {
		low = s.position(iv.Lo, iv.LoOpen)
	}
	if !iv.NoHi {
		high = s.position(iv.Hi, !iv.HiOpen)
	}
	return max(0, high-low), true
}

// gap is the most that lies between two quantiles.
const gap = 1.0 / 32

// point is the share of one value: that of an average value, within what the quantiles leave for it. A value that is none of them is less
// frequent than the space between two.
func (s *Summary) point(key []byte) float64 {
	key = key[:min(len(key), summaryKey)]
	q := s.Quantiles
	if bytes.Compare(key, q[0]) < 0 || bytes.Compare(key, q[len(q)-1]) > 0 {
		return 0
	}
	first := sort.Search(len(q), func(i int) bool { return bytes.Compare(q[i], key) >= 0 })
	last := sort.Search(len(q), func(i int) bool { return bytes.Compare(q[i], key) > 0 }) - 1
	average := 1 / max(s.Distinct.Value, 1)
	if last < first {
		return min(average, gap)
	}
	sure := Ranks[last] - Ranks[first]
	return min(max(average, sure), sure+2*gap)
}

// position is the share of values below a key, or at and below it, between quantiles by the distance from their keys.
func (s *Summary) position(key []byte, inclusive bool) float64 {
	key = key[:min(len(key), summaryKey)]
	q := s.Quantiles
	after := func(i int) bool {
		c := bytes.Compare(q[i], key)
		return c > 0 || c == 0 && !inclusive
	}
	i := sort.Search(len(q), after)
	switch {
	case i == 0:
		return 0
	case i == len(q):
		return 1
	}
	low, high := q[i-1], q[i]
	return Ranks[i-1] + (Ranks[i]-Ranks[i-1])*between(low, high, key)
}

// between is how far key lies on the way from low to high, from 0 to 1, by the eight bytes behind what all three share.
func between(low, high, key []byte) float64 {
	same := 0
	for same < len(low) && same < len(high) && low[same] == high[same] {
		same++
	}
	a, b, x := after(low, same), after(high, same), after(key, same)
	if x <= a || b <= a {
		return 0
	}
	return min(1, (x-a)/(b-a))
}

func after(key []byte, at int) float64 {
	var eight [8]byte
	if at < len(key) {
		copy(eight[:], key[at:])
	}
	return float64(binary.BigEndian.Uint64(eight[:]))
}
