package index

import (
	"math"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
)

// OpenRoot starts reading a root: its version byte, from 1 to version, and the encoding. A root above limit bytes fails.
func OpenRoot(kind string, root []byte, version uint8, limit int) (*bytescan.Reader, Encoding, error) {
	r := bytescan.NewReader(kind+" root", root)
	if v := r.U8(); r.Err() == nil && (v == 0 || v > version) {
		return nil, Encoding{}, FromTheFuture(kind, v)
	}
	if len(root) > limit {
		r.Fail("%d bytes, above the limit of %d", len(root), limit)
	}
	return r, ReadEncoding(r), nil
}

// StartRoot starts writing a root.
func StartRoot(version uint8, e Encoding) *bytescan.Writer {
	w := &bytescan.Writer{}
	w.U8(version)
	e.Append(w)
	return w
}

// ReadSize reads a number of bytes or rows that may be as large as a body.
func ReadSize(r *bytescan.Reader) int64 { return int64(min(r.Uvarint(), math.MaxInt64)) }

// MaxRowGroups bounds the granules of an artifact: Parquet numbers row groups with 16 bits.
const MaxRowGroups = 1 << 16

// GroupStarts is the starts of the row groups, closed by the number of rows, for kinds that keep something of each.
func (s *Spec) GroupStarts(kind string) ([]uint32, error) {
	groups, _, err := s.Granules()
	if err != nil {
		return nil, err
	}
	if len(groups) > MaxRowGroups {
		return nil, fault.New(fault.Unsupported, kind, "%d row groups, above the limit of %d", len(groups), MaxRowGroups)
	}
	return append(groups, s.Rows), nil
}

// The shapes of columns, as roots name them.
const (
	ShapeValues = iota // a value a row
	ShapeLists         // a list a row, whose elements are the values
)

// AppendShape writes a shape byte.
func AppendShape(w *bytescan.Writer, ofList bool) {
	if ofList {
		w.U8(ShapeLists)
	} else {
		w.U8(ShapeValues)
	}
}

// ReadShape reads a shape byte.
func ReadShape(r *bytescan.Reader) (ofList bool) {
	shape := r.U8()
	if shape > ShapeLists {
		r.Fail("shape %d is none", shape)
	}
	return shape == ShapeLists
}
