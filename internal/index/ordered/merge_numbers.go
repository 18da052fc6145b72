package ordered

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// send visits where rows go.
func (s *source) send(old rowset.Range) {
	if s.alone == nil {
		s.m.Each(s.no, old, s.take)
		return
	}
	from, end := max(old.Start, s.alone.Old.Start), min(old.End, s.alone.Old.End)
	if from < end {
		by := s.alone.To - s.alone.Old.Start // may wrap
		s.runs = append(s.runs, rowset.Range{Start: from + by, End: end + by})
	}
}

// to is where a row goes.
func (s *source) to(row uint32) uint32 {
	if s.alone == nil {
		return s.m.To(s.no, row)
	}
	return s.alone.Row(row)
}

// openNumbers reads a block of n keys of eight bytes with one row each, of which b is all but the head.
func (s *source) openNumbers(b []byte, n int) error {
	s.numbers, s.moved = s.numbers[:0], s.moved[:0]
	last, at := uint64(0), 0
	if s.pairs > 0 {
		last = binary.BigEndian.Uint64(s.key)
	}
	for i := range n {
		if len(b)-at < 1 || b[at] > 7 || i == 0 && b[at] != 0 || len(b)-at < 9-int(b[at]) {
			return index.Broken(name+" block", "key %d does not fit", i)
		}
		shared := uint(b[at]) * 8
		key := bigEndian(b[at+1:]) >> shared
		if shared > 0 {
			key |= last >> (64 - shared) << (64 - shared)
		}
		if key <= last && (i > 0 || s.pairs > 0) {
			return index.Broken(name+" block", "key %d is not above the one before", i)
		}
		s.numbers = append(s.numbers, key)
		last, at = key, at+9-int(shared/8)
	}
	width := rowBits(s.reader.rows)
	if b = b[at:]; len(b) != (n*int(width)+7)/8 {
		return index.Broken(name+" block", "%d bytes of rows of %d keys", len(b), n)
	}
	for i := range n {
		row := unpack(b, i, width)
		if row >= uint64(s.reader.rows) {
			return index.Broken(name+" block", "row %d of %d", row, s.reader.rows)
		}
		s.moved = append(s.moved, s.to(uint32(row)))
	}
	s.key = binary.BigEndian.AppendUint64(s.key[:0], last)
	s.pairs, s.left, s.number = s.pairs+uint64(n), n, 0
	return nil
}

// bigEndian is the first eight bytes; those past the end are 0.
func bigEndian(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var window [8]byte
	copy(window[:], b)
	return binary.BigEndian.Uint64(window[:])
}

// nextNumber moves to the next key of a block of numbers.
func (s *source) nextNumber() {
	s.narrow = s.numbers[s.number]
	if s.runs = s.runs[:0]; s.moved[s.number] != index.Gone {
		s.runs = append(s.runs, rowset.Range{Start: s.moved[s.number], End: s.moved[s.number] + 1})
	}
	s.number, s.left = s.number+1, s.left-1
}

// takeNumbers writes the key at hand of the first source and those behind it in its block, as long as they are below those of all others. The last
// one of the block is left: it may go on in the next.
func (g *gathered) takeNumbers(heap []*source) error {
	s, bound := heap[0], uint64(math.MaxUint64)
	for _, kid := range heap[1:min(len(heap), 3)] {
		bound = min(bound, kid.narrow)
	}
	if s.left == 0 || s.narrow >= bound || s.narrow == g.narrow {
		return nil
	}
	if err := g.flush(); err != nil {
		return err
	}
	i, end := s.number-1, len(s.numbers)-1
	for ; i < end && s.numbers[i] < bound; i++ {
		if to := s.moved[i]; to != index.Gone {
			if err := g.out.single(s.numbers[i], to); err != nil {
				return err
			}
		}
	}
	s.number, s.left = i, len(s.numbers)-i
	s.nextNumber()
	return nil
}

// single takes a key of eight bytes with its only row.
func (w *writer) single(narrow uint64, row uint32) error {
	if w.any {
		if err := w.closeKey(false); err != nil {
			return err
		}
		w.any = false
	}
	if w.count == 0 {
		if err := w.addRun(narrow, nil, rowset.Range{Start: row, End: row + 1}); err != nil {
			return err
		}
		err := w.closeKey(false)
		w.any = false
		return err
	}
	shared := bits.LeadingZeros64(narrow^binary.BigEndian.Uint64(w.last)) / 8
	keys, n := append(w.keys.Buf, uint8(shared), 0, 0, 0, 0, 0, 0, 0, 0), len(w.keys.Buf)
	binary.BigEndian.PutUint64(keys[n+1:], narrow<<(8*shared))
	w.keys.Buf = keys[:n+9-shared]
	binary.BigEndian.PutUint64(w.last, narrow)
	if len(w.singles) == w.count {
		w.oneRow(row)
	} else {
		appendPosting(&w.postings, []rowset.Range{{Start: row, End: row + 1}})
	}
	w.count++
	if len(w.keys.Buf)+len(w.postings.Buf)+w.asPosted >= w.sizes.block {
		return w.closeBlock()
	}
	return nil
}

// addRuns takes ascending runs of one key as addRun does.
func (w *writer) addRuns(narrow uint64, key []byte, runs []rowset.Range) error {
	for i, r := range runs {
		if n := len(w.runs); i > 0 && w.runs[n-1].End < r.Start && n < w.sizes.runs {
			w.runs = append(w.runs, r)
			continue
		}
		if err := w.addRun(narrow, key, r); err != nil {
			return err
		}
	}
	return nil
}

// packRows appends rows in width bits each, least significant bit first, padded to a byte.
func packRows(w *bytescan.Writer, rows []uint32, width uint) {
	acc, have := uint64(0), uint(0)
	for _, r := range rows {
		acc |= uint64(r) << have
		if have += width; have >= 32 {
			w.U32(uint32(acc))
			acc, have = acc>>32, have-32
		}
	}
	for ; have > 0; have -= min(have, 8) {
		w.U8(uint8(acc))
		acc >>= 8
	}
}
