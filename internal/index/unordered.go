package index

import (
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Unordered is the rows of nulls or of NaNs, which have no place in the order of keys: known from their count alone, in a unit, or (a
// unit of no bytes) not kept.
//
//	uv count
//	unit      only where 0 < count < rows; of length 0: not kept
type Unordered struct {
	Count uint32
	Unit  Unit
}

// maxUnordered bounds the bytes of a kept set, some 32 million scattered rows.
const maxUnordered = 4 << 20

// ReadUnordered reads the description of rows of an artifact of rows rows and a body of bodySize bytes.
func ReadUnordered(r *bytescan.Reader, rows uint32, bodySize int64) Unordered {
	n := r.Uvarint()
	if n > uint64(rows) {
		r.Fail("%d rows of %d are null or NaN", n, rows)
	}
	u := Unordered{Count: uint32(n)}
	if n > 0 && n < uint64(rows) {
		u.Unit = ReadUnit(r, bodySize, maxUnordered)
	}
	return u
}

// Known is the verdict before the unit is read.
func (u Unordered) Known(rows uint32) rowset.Verdict {
	switch u.Count {
	case 0:
		return rowset.Exactly(rowset.None(rows))
	case rows:
		return rowset.Exactly(rowset.All(rows))
	default:
		return rowset.Maybe(rows)
	}
}

// Readable reports whether the unit tells more than the count.
func (u Unordered) Readable() bool { return u.Unit.Len > 0 }

// Lost reports whether the rows are not kept.
func (u Unordered) Lost(rows uint32) bool { return u.Count > 0 && u.Count < rows && u.Unit.Len == 0 }

// Rows reads the unit's bytes.
func (u Unordered) Rows(what string, b []byte, rows uint32) (*rowset.Set, error) {
	r := bytescan.NewReader(what+" row set", b)
	set := ReadRows(r, rows)
	if r.Err() == nil && set.Count() != int64(u.Count) {
		r.Fail("%d rows, the root says %d", set.Count(), u.Count)
	}
	return set, r.Done()
}

// WriteUnordered writes the description of a set of count rows of an artifact of rows rows to w and, where it is neither empty nor full
// nor too large, its bytes to the body. A nil set is not kept.
func WriteUnordered(w *bytescan.Writer, body Sink, count int64, rows uint32, set *RowsWriter) error {
	w.Uvarint(uint64(count))
	if count == 0 || count == int64(rows) {
		return nil
	}
	b := &bytescan.Writer{}
	if set != nil {
		set.Append(b)
	}
	if len(b.Buf) > maxUnordered {
		b.Buf = nil
	}
	u, err := WriteUnit(body, b.Buf)
	u.Append(w)
	return err
}

// MergedRows is the null or the NaN rows of merged artifacts.
type MergedRows struct {
	rows *Rows
	lost bool
	n    int64 // of sources that lost theirs
}

// MergeUnordered moves the rows of every source. A reason: a source whose rows were not kept loses some of its rows, and nobody knows
// how many of these are left.
func MergeUnordered(what string, sources []Source, m *OrdinalMap, of []Unordered) (*MergedRows, string, error) {
	out := &MergedRows{rows: NewRows(m.Rows())}
	var buf []byte
	for i, u := range of {
		s := &sources[i]
		whole := rowset.Range{End: s.Rows}
		switch {
		case u.Count == 0:
			continue
		case u.Count == s.Rows:
			out.move(m, i, whole)
			continue
		case u.Lost(s.Rows):
			if m.Kept(i, whole) < s.Rows {
				return nil, "the null or NaN rows of an artifact were too many to keep, and some of its rows are gone", nil
			}
			out.lost, out.n = true, out.n+int64(u.Count)
			continue
		}
		b, err := s.Unit(what, u.Unit, buf)
		if err != nil {
			return nil, "", err
		}
		set, err := u.Rows(what, b, s.Rows)
		if err != nil {
			return nil, "", err
		}
		for _, r := range set.Ranges() {
			out.move(m, i, r)
		}
		buf = b
	}
	return out, "", nil
}

func (x *MergedRows) move(m *OrdinalMap, source int, r rowset.Range) {
	m.Each(source, r, func(_, to rowset.Range) { x.rows.Add(to) })
}

// Write writes them as WriteUnordered does, and returns how many they are.
func (x *MergedRows) Write(w *bytescan.Writer, body Sink, rows uint32) (int64, error) {
	var set RowsWriter
	for _, r := range x.rows.Set().Ranges() {
		set.Add(r)
	}
	n := set.Count() + x.n
	if x.lost {
		return n, WriteUnordered(w, body, n, rows, nil)
	}
	return n, WriteUnordered(w, body, n, rows, &set)
}
