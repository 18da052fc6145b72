// Package bytescan answers: what do these untrusted bytes say, without running off their end?
//
// Reader is a cursor with a sticky error: read several fields, test Err once. Every length is checked against what is
// left and against a cap before anything is allocated. Integers are little-endian, varints are unsigned LEB128.
// The package knows no format.
package bytescan

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/skomerdb/skomer/internal/fault"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC32C is the checksum that every separately read unit carries (RFC 3720, polynomial 0x1EDC6F41).
func CRC32C(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// ExtendCRC is the checksum of what sum stands for followed by b; the checksum of nothing is 0.
func ExtendCRC(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

// CheckCRC returns a corrupt fault unless b has checksum want.
func CheckCRC(what string, b []byte, want uint32) error {
	if got := CRC32C(b); got != want {
		return fault.New(fault.Corrupt, what, "checksum %08x, expected %08x", got, want)
	}
	return nil
}

// Reader reads from a byte slice. After the first failure every read returns zero values and Err tells why.
type Reader struct {
	what string
	buf  []byte
	off  int
	err  error
}

// NewReader reads b; what names the unit in errors.
func NewReader(what string, b []byte) *Reader { return &Reader{what: what, buf: b} }

// Err returns the first failure as a corrupt fault, or nil.
func (r *Reader) Err() error { return r.err }

// Fail records a format error unless one is already recorded.
func (r *Reader) Fail(reason string, args ...any) {
	if r.err == nil {
		r.err = fault.New(fault.Corrupt, r.what, reason, args...)
	}
}

// Left is the number of unread bytes; 0 after a failure.
func (r *Reader) Left() int {
	if r.err != nil {
		return 0
	}
	return len(r.buf) - r.off
}

// Offset is the position of the next byte.
func (r *Reader) Offset() int { return r.off }

// Done fails unless every byte was read, and returns Err.
func (r *Reader) Done() error {
	if r.err == nil && r.off != len(r.buf) {
		r.Fail("%d bytes left over at offset %d", len(r.buf)-r.off, r.off)
	}
	return r.err
}

// Bytes returns the next n bytes as a view, nil on failure.
func (r *Reader) Bytes(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > len(r.buf)-r.off {
		r.Fail("needs %d bytes at offset %d, has %d", n, r.off, len(r.buf)-r.off)
		return nil
	}
	b := r.buf[r.off : r.off+n : r.off+n]
	r.off += n
	return b
}

// U8 reads one byte.
func (r *Reader) U8() uint8 {
	if b := r.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// U16 reads two bytes.
func (r *Reader) U16() uint16 {
	if b := r.Bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// U32 reads four bytes.
func (r *Reader) U32() uint32 {
	if b := r.Bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// U64 reads eight bytes.
func (r *Reader) U64() uint64 {
	if b := r.Bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Uvarint reads an unsigned varint.
func (r *Reader) Uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	if r.off < len(r.buf) && r.buf[r.off] < 0x80 { // most are one byte
		r.off++
		return uint64(r.buf[r.off-1])
	}
	v, n := binary.Uvarint(r.buf[r.off:])
	if n <= 0 {
		r.Fail("bad varint at offset %d", r.off)
		return 0
	}
	r.off += n
	return v
}

// Count reads a varint that counts items of at least minSize bytes each, and fails above limit or when the items
// cannot fit in what is left. Use it before any allocation that the bytes ask for.
func (r *Reader) Count(limit, minSize int) int {
	v := r.Uvarint()
	if r.err != nil {
		return 0
	}
	if v > uint64(limit) || v > math.MaxInt32 {
		r.Fail("count %d above the limit of %d", v, limit)
		return 0
	}
	if minSize > 0 && v > uint64(r.Left()/minSize) {
		r.Fail("count %d does not fit in the %d bytes left", v, r.Left())
		return 0
	}
	return int(v)
}

// Blob reads a varint length of at most limit and that many bytes, as a view.
func (r *Reader) Blob(limit int) []byte { return r.Bytes(r.Count(limit, 1)) }

// String reads a Blob as a string (copied).
func (r *Reader) String(limit int) string { return string(r.Blob(limit)) }

// Writer appends fields to Buf in Reader's encodings. The zero value is ready.
type Writer struct{ Buf []byte }

// Bytes appends b without a length.
func (w *Writer) Bytes(b []byte) { w.Buf = append(w.Buf, b...) }

// U8 appends one byte.
func (w *Writer) U8(v uint8) { w.Buf = append(w.Buf, v) }

// U16 appends two bytes.
func (w *Writer) U16(v uint16) { w.Buf = binary.LittleEndian.AppendUint16(w.Buf, v) }

// U32 appends four bytes.
func (w *Writer) U32(v uint32) { w.Buf = binary.LittleEndian.AppendUint32(w.Buf, v) }

// U64 appends eight bytes.
func (w *Writer) U64(v uint64) { w.Buf = binary.LittleEndian.AppendUint64(w.Buf, v) }

// Uvarint appends an unsigned varint.
func (w *Writer) Uvarint(v uint64) { w.Buf = binary.AppendUvarint(w.Buf, v) }

// Blob appends a varint length and b.
func (w *Writer) Blob(b []byte) {
	w.Uvarint(uint64(len(b)))
	w.Bytes(b)
}

// String appends a varint length and s.
func (w *Writer) String(s string) {
	w.Uvarint(uint64(len(s)))
	w.Buf = append(w.Buf, s...)
}
