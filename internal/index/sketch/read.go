package sketch

import (
	"math"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Open parses a root of at most 256 bytes.
func (Kind) Open(root []byte, rows uint32) (index.Reader, error) {
	x, err := OpenRoot(root)
	if err != nil {
		return nil, err
	}
	if x.Rows != int64(rows) {
		return nil, index.Broken(name+" root", "counts %d rows, the artifact %d", x.Rows, rows)
	}
	return x, nil
}

// OpenRoot is Open for a sketch of however many rows: that of a table.
func OpenRoot(root []byte) (*Reader, error) {
	r := bytescan.NewReader(name+" root", root)
	if v := r.U8(); r.Err() == nil && v != version {
		return nil, index.FromTheFuture(name, v)
	}
	if len(root) > maxRoot {
		r.Fail("%d bytes, above the limit of %d", len(root), maxRoot)
	}
	x := &Reader{header: header{enc: index.ReadEncoding(r)}}
	switch shape := r.U8(); shape {
	case shapeValues:
	case shapeLists:
		x.ofList = true
	default:
		r.Fail("shape %d is none", shape)
	}
	if x.lgK = r.U8(); r.Err() == nil && (x.lgK < minLgK || x.lgK > maxLgK) {
		r.Fail("lg k %d is not from %d to %d", x.lgK, minLgK, maxLgK)
	}
	size := int64(min(r.Uvarint(), math.MaxInt64))
	for _, n := range []*int64{&x.Rows, &x.Values, &x.Nulls, &x.NaNs, &x.Empty} {
		u := r.Uvarint()
		if u > math.MaxInt64/8 {
			r.Fail("count %d is too large", u)
		}
		*n = int64(u)
	}
	if r.Err() == nil && (!x.ofList && x.Values+x.Nulls+x.NaNs != x.Rows || x.Empty > x.Values) {
		r.Fail("%d values (%d empty), %d nulls and %d NaNs in %d rows", x.Values, x.Empty, x.Nulls, x.NaNs, x.Rows)
	}
	for i := range x.units {
		x.units[i] = index.ReadUnit(r, size, maxUnit)
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return x, nil
}

// Reader is an opened artifact.
type Reader struct {
	header
	units [3]index.Unit // theta, HLL, KLL
}

// Probe says nothing of any leaf.
func (x *Reader) Probe(*predicate.Leaf) index.Probe {
	return index.Settled(rowset.Maybe(uint32(x.Rows)))
}

// Load starts reading the sketches: one wave.
func (x *Reader) Load() *Loading { return &Loading{reader: x, wave: x.units[:]} }

// Loading is the steps that lead to a Sketch.
type Loading struct {
	reader *Reader
	wave   index.Wave
	sketch *Sketch
}

// Need is the bytes of the three sketches.
func (l *Loading) Need() []index.Span { return l.wave.Spans() }

// Feed checks and parses them.
func (l *Loading) Feed(data [][]byte) error {
	wave := l.wave
	l.wave = nil
	if err := wave.Check(name, data); err != nil {
		return err
	}
	x := l.reader
	s := &Sketch{header: x.header}
	var err error
	if s.theta, err = parseTheta(data[0], x.lgK, x.Values-x.Empty); err != nil {
		return err
	}
	if s.hll, err = parseHLL(data[1], x.Values-x.Empty); err != nil {
		return err
	}
	if s.order, err = parseQuantiles(x.enc, data[2], x.Values); err != nil {
		return err
	}
	l.sketch = s
	return nil
}

// Sketch is what was read; nil before that, and after a failed Feed.
func (l *Loading) Sketch() *Sketch { return l.sketch }
