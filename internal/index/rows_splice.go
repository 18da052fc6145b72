package index

import (
	"encoding/binary"
	"math/bits"

	"github.com/skomerdb/skomer/internal/rowset"
)

// Splice adds rows of a source that AppendRows wrote, numbered from the start of of on and below its end, as far as they lie in the stretches
// and with these: stretches of the source, ascending on both sides, onto rows after all that were added. Row 0 of the writer is row base of
// the new ones. Ranges that stay in their chunk are copied as bytes, and bits are shifted. It returns how many rows the set has. After a
// failure some of them may have been added.
func (w *RowsWriter) Splice(what string, b []byte, of rowset.Range, along []Stretch, base uint32) (rows int64, err error) {
	s := splicer{w: w, b: b, size: uint64(of.End), along: along, to: uint64(base)}
	next := uint64(0)
	chunks := s.uvarint()
	for ; chunks > 0 && !s.bad; chunks-- {
		head := s.uvarint()
		if next += head >> 1; next >= chunkRows || next*chunkRows >= uint64(of.Len()) {
			s.bad = true
			break
		}
		s.base = uint64(of.Start) + next*chunkRows
		if head&1 == 1 {
			s.bits()
		} else {
			s.list()
		}
		next++
	}
	if s.bad || s.i != len(b) {
		return 0, Broken(what, "the bytes near %d of %d are no rows of [%d, %d)", s.i, len(b), of.Start, of.End)
	}
	return s.rows, nil
}

// splicer reads one set.
type splicer struct {
	w     *RowsWriter
	b     []byte
	i     int
	size  uint64
	base  uint64    // first row of the chunk
	to    uint64    // row 0 of the writer
	along []Stretch // of which the first one is at hand
	rows  int64     // read
	bad   bool

	// Rows [lo, hi) of the source go, shifted, to one chunk of the writer.
	lo, hi uint64
	shift  uint64 // may wrap
}

// uvarint reads a number below 2³²: none here is greater.
func (s *splicer) uvarint() uint64 {
	x := uint64(0)
	for shift := 0; shift < 35 && s.i < len(s.b); shift += 7 {
		c := s.b[s.i]
		s.i++
		if x |= uint64(c&0x7f) << shift; c < 0x80 {
			return x
		}
	}
	s.bad = true
	return 0
}

// window turns to the rows that go to one chunk, from row on or after it; false: none of them goes anywhere.
func (s *splicer) window(row uint64) bool {
	for len(s.along) > 0 && uint64(s.along[0].Old.End) <= row {
		s.along = s.along[1:]
	}
	if len(s.along) == 0 {
		s.lo, s.hi = ^uint64(0), ^uint64(0)
		return false
	}
	m := &s.along[0]
	s.shift = uint64(m.To) - s.to - uint64(m.Old.Start)
	s.lo = max(row, uint64(m.Old.Start))
	chunkEnd := ((s.lo+s.shift)/chunkRows + 1) * chunkRows
	s.hi = min(uint64(m.Old.End), chunkEnd-s.shift)
	return true
}

// cut visits the parts of [start, end) that go to one chunk each.
func (s *splicer) cut(start, end uint64, visit func(start, end uint64)) {
	for start < end {
		if start >= s.hi && !s.window(start) {
			return
		}
		from, to := max(start, s.lo), min(end, s.hi)
		if from < to {
			visit(from, to)
		}
		start = max(to, from)
	}
}

// list reads a chunk of ranges. Those between the first and the last one that go to the same chunk keep their bytes.
func (s *splicer) list() {
	n, b := s.uvarint(), s.b
	at, limit := s.base, min(s.base+chunkRows, s.size)
	var same kept
	for ; n > 0; n-- {
		var gap, length uint64
		if i := s.i; i+2 <= len(b) && b[i]|b[i+1] < 0x80 {
			gap, length, s.i = uint64(b[i]), uint64(b[i+1]), i+2
		} else if i+3 <= len(b) && b[i+1]|b[i+2] < 0x80 {
			gap, length, s.i = uint64(b[i]&0x7f)|uint64(b[i+1])<<7, uint64(b[i+2]), i+3
		} else {
			gap, length = s.uvarint(), s.uvarint()
		}
		start := at + gap
		at = start + length + 1
		if at > limit || s.bad {
			s.bad = true
			return
		}
		s.rows += int64(length) + 1
		if start >= s.lo && at <= s.hi {
			if same.n++; same.n == 1 {
				s.w.Add(rowset.Range{Start: uint32(start + s.shift), End: uint32(at + s.shift)})
				same.from, same.first, same.before = s.i, at, s.rows
				k := skim(b[s.i:], at, min(s.hi, limit), n-1)
				same.n, n, s.i, at, s.rows = same.n+k.ranges, n-uint64(k.ranges), s.i+k.bytes, k.at, s.rows+k.rows
			}
			same.to, same.at, same.rows = s.i, at, s.rows
			continue
		}
		s.take(&same)
		s.cut(start, at, func(start, end uint64) {
			s.w.Add(rowset.Range{Start: uint32(start + s.shift), End: uint32(end + s.shift)})
		})
	}
	s.take(&same)
}

// kept is consecutive ranges of a list that go to one chunk, the first of which was added.
type kept struct {
	n            int
	from, to     int    // the bytes of all but the first
	first, at    uint64 // where the first one ends, and the last one
	before, rows int64  // read up to the first range and up to the last
}

// take adds all but the first range.
func (s *splicer) take(x *kept) {
	if x.n > 1 {
		list := s.b[x.from:x.to]
		list, length := lastUvarint(list)
		list, gap := lastUvarint(list)
		start, shift := x.at-length-1, s.shift-s.w.cur*chunkRows
		last := rowset.Range{Start: uint32(start + shift), End: uint32(x.at + shift)}
		if s.w.dense {
			markList(s.w.words, list, uint32(x.first+shift))
			markWords(s.w.words, last.Start, last.End)
		} else {
			s.w.extend(list, x.n-2, uint32(start-gap+shift), last)
		}
		s.w.count, s.w.end = s.w.count+x.rows-x.before, x.at+s.shift
	}
	x.n = 0
}

// lastUvarint takes the number at the end of a list.
func lastUvarint(b []byte) (rest []byte, x uint64) {
	i := len(b) - 1
	for i > 0 && b[i-1] >= 0x80 {
		i--
	}
	for k := len(b) - 1; k >= i; k-- {
		x = x<<7 | uint64(b[k]&0x7f)
	}
	return b[:i], x
}

// extend adds n listed ranges to those of the chunk at hand, which then end at row at, and one behind them.
func (w *RowsWriter) extend(list []byte, n int, at uint32, last rowset.Range) {
	w.closeRange()
	w.list = append(w.list, list...)
	if w.n += n; n > 0 {
		w.at = at
	}
	w.open = last
	if w.n > maxListed || len(w.list) > chunkBitmap {
		w.densify()
	}
}

// bits reads a chunk of bits.
func (s *splicer) bits() {
	if len(s.b)-s.i < chunkBitmap {
		s.bad = true
		return
	}
	b := s.b[s.i : s.i+chunkBitmap]
	s.i += chunkBitmap
	for i := 0; i < len(b); i += 8 {
		s.rows += int64(bits.OnesCount64(binary.LittleEndian.Uint64(b[i:])))
	}
	end := min(s.base+chunkRows, s.size)
	if !zeroFrom(b, int(end-s.base)) {
		s.bad = true
		return
	}
	s.cut(s.base, end, func(start, end uint64) {
		s.w.addBits(b, uint32(start-s.base), uint32(end-s.base), start+s.shift)
	})
}

// zeroFrom reports whether all bits from one on are 0.
func zeroFrom(b []byte, bit int) bool {
	if bit == len(b)*8 {
		return true
	}
	if b[bit/8]>>(bit%8) != 0 {
		return false
	}
	for _, c := range b[bit/8+1:] {
		if c != 0 {
			return false
		}
	}
	return true
}

// addBits adds the rows of bits [from, to), the first of which is row at; they lie in one chunk.
func (w *RowsWriter) addBits(b []byte, from, to uint32, at uint64) {
	w.turnTo(at / chunkRows)
	if !w.dense {
		w.densify()
	}
	for n, dst := to-from, uint32(at%chunkRows); n > 0; {
		take := min(64-dst&63, n)
		x := bitsAt(b, from) & (^uint64(0) >> (64 - take)) // the first take of them
		w.words[dst>>6] |= x << (dst & 63)
		if x != 0 {
			w.count, w.end = w.count+int64(bits.OnesCount64(x)), w.cur*chunkRows+uint64(dst)+uint64(bits.Len64(x))
		}
		from, dst, n = from+take, dst+take, n-take
	}
}

// bitsAt is 64 bits from one on; those past the end are 0.
func bitsAt(b []byte, from uint32) uint64 {
	at, shift := from/8, from%8
	if int(at)+9 <= len(b) {
		return binary.LittleEndian.Uint64(b[at:])>>shift | uint64(b[at+8])<<(64-shift)
	}
	var window [9]byte
	copy(window[:], b[at:])
	return binary.LittleEndian.Uint64(window[:])>>shift | uint64(window[8])<<(64-shift)
}
