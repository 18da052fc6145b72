package index

import (
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
)

// Unit is a separately read part of a body, with the checksum that its parent holds.
//
//	uv offset, uv length, u32 CRC32C
type Unit struct {
	Span
	CRC uint32
}

// WriteUnit writes b to the body and describes it.
func WriteUnit(body Sink, b []byte) (Unit, error) {
	u := Unit{Span: Span{Off: body.Offset(), Len: int64(len(b))}, CRC: bytescan.CRC32C(b)}
	_, err := body.Write(b)
	return u, err
}

// Append writes the description.
func (u Unit) Append(w *bytescan.Writer) {
	w.Uvarint(uint64(u.Off))
	w.Uvarint(uint64(u.Len))
	w.U32(u.CRC)
}

// ReadUnit reads what Append wrote. The unit must lie in a body of size bytes and be no longer than limit.
func ReadUnit(r *bytescan.Reader, size, limit int64) Unit {
	off, n := r.Uvarint(), r.Uvarint()
	u := Unit{Span: Span{Off: int64(off), Len: int64(n)}, CRC: r.U32()}
	if r.Err() == nil && (n > uint64(limit) || off > uint64(size) || n > uint64(size)-off) {
		r.Fail("unit of %d bytes at %d does not fit in a body of %d bytes or the limit of %d", n, off, size, limit)
	}
	return u
}

// Wave is the units that a probe wants together.
type Wave []Unit

// Spans is what to answer to Steps.Need.
func (w Wave) Spans() []Span {
	out := make([]Span, len(w))
	for i, u := range w {
		out[i] = u.Span
	}
	return out
}

// Check verifies that data is the wave's units, byte for byte. what names the artifact in faults.
func (w Wave) Check(what string, data [][]byte) error {
	if len(data) != len(w) {
		return fault.New(fault.Invalid, what, "fed %d units, needs %d", len(data), len(w))
	}
	for i, u := range w {
		if err := u.check(what, data[i]); err != nil {
			return err
		}
	}
	return nil
}

func (u Unit) check(what string, b []byte) error {
	if int64(len(b)) != u.Len {
		return fault.New(fault.Corrupt, what, "unit at %d has %d bytes, expected %d", u.Off, len(b), u.Len)
	}
	return bytescan.CheckCRC(what, b, u.CRC)
}

// Broken is a corrupt fault about bytes that pass their checksum and still break their format.
func Broken(what, reason string, args ...any) error {
	return fault.New(fault.Corrupt, what, reason, args...)
}

// FromTheFuture is the fault of a root whose version this build does not read.
func FromTheFuture(kind string, version uint8) error {
	return fault.New(fault.Unsupported, kind, "format version %d is not known to this build", version).
		WithFix("upgrade skomer, or reindex with this version")
}
