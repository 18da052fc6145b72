package plan

import (
	"bytes"
	"slices"
	"sort"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Bound is what a data file, row group or page states of a column: keys of its least and greatest value. A nil key is unknown; that of the
// empty text is empty.
type Bound struct {
	Low, High []byte
	Rows      int64
	Empty     bool // it holds no value: every row is null
}

// Overlap is how well bounds separate values: what a test for one value of the column keeps, on average.
type Overlap struct {
	Granules  int
	Unbounded int     // granules without usable bounds, which every test keeps
	Kept      float64 // granules kept
	// KeptRows is the rows in them, Rows those of all granules.
	KeptRows, Rows float64
}

// Share is the part of the granules that a test for one value keeps, 0 to 1.
func (o Overlap) Share() float64 {
	if o.Granules == 0 {
		return 0
	}
	return o.Kept / float64(o.Granules)
}

// FileBounds is what the manifests of a snapshot state of a column, file by file.
func FileBounds(s *facts.Snapshot, c predicate.Column) []Bound {
	m := newMetrics(s, c)
	out := make([]Bound, s.Files.Len())
	for i := range out {
		b := &out[i]
		b.Rows = s.Files.Records[i]
		b.Empty = b.Rows == 0 || at(m.nulls, i) == b.Rows && at(m.values, i) == b.Rows && !m.repeats
		lower, upper := m.bounds(i)
		in := decodeBounds(m.t, lower, upper)
		if in.hasLo && in.hasHi {
			b.Low, b.High = column.AppendKey([]byte{}, in.lo), column.AppendKey([]byte{}, in.hi)
		}
	}
	return out
}

// OverlapOf tests every point against the bounds. Without points, the ends of the bounds are tested.
func OverlapOf(bounds []Bound, points [][]byte) Overlap {
	o := Overlap{}
	x := overlapping{}
	var loose int64 // rows of unbounded granules
	for i := range bounds {
		b := &bounds[i]
		o.Granules++
		o.Rows += float64(b.Rows)
		switch {
		case b.Empty:
		case b.Low == nil || b.High == nil:
			o.Unbounded++
			loose += b.Rows
		default:
			x.low, x.high = append(x.low, end{b.Low, b.Rows}), append(x.high, end{b.High, b.Rows})
			if points == nil {
				x.ends = append(x.ends, b.Low, b.High)
			}
		}
	}
	x.seal()
	if points == nil {
		points = x.ends
	}
	o.Kept, o.KeptRows = float64(o.Unbounded), float64(loose)
	for _, p := range points {
		granules, rows := x.at(p)
		o.Kept += float64(granules) / float64(len(points))
		o.KeptRows += float64(rows) / float64(len(points))
	}
	return o
}

// overlapping finds how many intervals hold a point: those that began, without those that ended.
type overlapping struct {
	low, high []end // ascending; rows summed up from the start
	ends      [][]byte
}

type end struct {
	key  []byte
	rows int64
}

func (x *overlapping) seal() {
	for _, ends := range [][]end{x.low, x.high} {
		slices.SortFunc(ends, func(a, b end) int { return bytes.Compare(a.key, b.key) })
		for i := 1; i < len(ends); i++ {
			ends[i].rows += ends[i-1].rows
		}
	}
}

func (x *overlapping) at(p []byte) (granules int, rows int64) {
	began := sort.Search(len(x.low), func(i int) bool { return bytes.Compare(x.low[i].key, p) > 0 })
	ended := sort.Search(len(x.high), func(i int) bool { return bytes.Compare(x.high[i].key, p) >= 0 })
	return began - ended, upTo(x.low, began) - upTo(x.high, ended)
}

func upTo(ends []end, n int) int64 {
	if n == 0 {
		return 0
	}
	return ends[n-1].rows
}
