package ordered

import (
	"encoding/binary"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// source reads the keys of an artifact in order, with their rows in a merged one.
type source struct {
	*reader
	from *index.Source
	read *index.Ahead
	m    *index.OrdinalMap
	no   int // of the source in the map

	alone *index.Stretch // all rows of the source that stay, where they stay together

	pages  directory // still to be read, where the root's entries are pages
	blocks directory // still to be read
	page   []byte
	block  []byte // a view

	left   int              // keys of the block
	first  bool             // the next key is the block's first
	goesOn bool             // it may be the last one of the block before
	keys   *bytescan.Reader // at the next key
	rows   *bytescan.Reader // at its posting; nil: every key has one row
	packed []byte
	number int // of the next key in the block

	numbers []uint64 // the keys of the block, where they are of eight bytes with one row each
	moved   []uint32 // where these rows go

	fixed  int
	key    []byte
	narrow uint64         // of a wide key its first eight bytes
	runs   []rowset.Range // new rows of the key; none where all are gone
	pairs  uint64         // (value, row) pairs read
	take   func(_, to rowset.Range)
}

func newSource(x *reader, from *index.Source, m *index.OrdinalMap, no int) *source {
	s := &source{reader: x, from: from, read: index.NewAhead(from), m: m, no: no}
	if x.level == levelPages {
		s.pages = x.top
	} else {
		s.blocks = x.top
	}
	if !variable(x.enc) {
		s.fixed = x.enc.Size()
	}
	s.take = func(_, to rowset.Range) { s.runs = append(s.runs, to) }
	return s
}

func (s *source) less(t *source) bool {
	if s.narrow != t.narrow || s.fixed == 8 {
		return s.narrow < t.narrow
	}
	return string(s.key) < string(t.key)
}

// next reads the next key and its rows in one block; ok is false after the last, when every row must have been seen.
func (s *source) next() (ok bool, err error) {
	for s.left == 0 {
		if ok, err := s.nextBlock(); !ok || err != nil {
			return false, err
		}
	}
	if len(s.numbers) > 0 {
		s.nextNumber()
		return true, nil
	}
	if err := s.readKey(); err != nil {
		return false, err
	}
	s.runs = s.runs[:0]
	if s.rows == nil {
		row := unpack(s.packed, s.number, rowBits(s.reader.rows))
		if row >= uint64(s.reader.rows) {
			return false, index.Broken(name+" block", "row %d of %d", row, s.reader.rows)
		}
		s.pairs++
		if to := s.to(uint32(row)); to != index.Gone {
			s.runs = append(s.runs, rowset.Range{Start: to, End: to + 1})
		}
	} else if err := s.readPosting(); err != nil {
		return false, err
	}
	s.number, s.left = s.number+1, s.left-1
	if s.left == 0 && s.rows != nil {
		return true, s.rows.Done()
	}
	return true, nil
}

// nextBlock reads the next block, and the next directory page where its turn has come.
func (s *source) nextBlock() (ok bool, err error) {
	for len(s.blocks) == 0 {
		if len(s.pages) == 0 {
			return false, s.end()
		}
		if s.page, err = s.from.Unit(name+" directory page", s.pages[0].unit, s.page); err != nil {
			return false, err
		}
		r := bytescan.NewReader(name+" directory page", s.page)
		if s.blocks = readDirectory(r, s.bodySize, maxBlock); r.Done() != nil {
			return false, r.Done()
		}
		s.pages = s.pages[1:]
	}
	e := s.blocks[0]
	s.blocks = s.blocks[1:]
	if s.block, err = s.read.Unit(name+" block", e.unit); err != nil {
		return false, err
	}
	return true, s.openBlock(e.continued)
}

// end checks that the keys, nulls and NaNs were all rows.
func (s *source) end() error {
	if n := s.pairs + uint64(s.nulls.Count) + uint64(s.nans.Count); n != uint64(s.reader.rows) {
		return index.Broken(name, "holds %d rows of %d", n, s.reader.rows)
	}
	return nil
}

// openBlock finds the postings behind the keys.
func (s *source) openBlock(continued bool) error {
	r := bytescan.NewReader(name+" block", s.block)
	form := r.U8()
	n := r.Count(len(s.block), 1)
	if r.Err() == nil && (form > formPostings || n == 0) {
		r.Fail("block of form %d with %d keys", form, n)
	}
	s.numbers = s.numbers[:0]
	if r.Err() == nil && s.fixed == 8 && s.enc.Narrow() && form == formUnique && !continued {
		return s.openNumbers(s.block[r.Offset():], n)
	}
	s.keys = bytescan.NewReader(name+" block", s.block[r.Offset():])
	for range n {
		shared, length := r.Uvarint(), uint64(0)
		if s.fixed == 0 {
			length = r.Uvarint()
		} else {
			length = uint64(s.fixed) - min(shared, uint64(s.fixed))
		}
		r.Bytes(int(min(length, maxKey+1)))
	}
	s.packed, s.rows = nil, nil
	if form == formUnique {
		s.packed = r.Bytes((n*int(rowBits(s.reader.rows)) + 7) / 8)
		if err := r.Done(); err != nil {
			return err
		}
	} else {
		s.rows = r
	}
	s.left, s.number, s.first, s.goesOn = n, 0, true, continued
	return r.Err()
}

func (s *source) readKey() error {
	r := s.keys
	shared := int(min(r.Uvarint(), 1<<20))
	length := s.fixed - shared
	if s.fixed == 0 {
		length = r.Count(maxKey+1, 1)
	}
	if s.first && shared > 0 || shared > len(s.key) || length < 0 || shared+length > maxKey+1 {
		r.Fail("key %d shares %d of %d bytes and adds %d", s.number, shared, len(s.key), length)
	}
	suffix := r.Bytes(length)
	if r.Err() != nil {
		return r.Err()
	}
	if s.pairs > 0 {
		c := string(suffix) > string(s.key[shared:])
		if !c && !(s.goesOn && string(suffix) == string(s.key)) {
			return index.Broken(name+" block", "key %d is not above the one before", s.number)
		}
	}
	s.key = append(s.key[:shared], suffix...)
	s.first, s.goesOn = false, false
	switch {
	case s.fixed == 8:
		s.narrow = binary.BigEndian.Uint64(s.key)
	case s.enc.Narrow():
		s.narrow = uint64(s.key[0])
	default:
		s.narrow = prefixOf(s.key)
	}
	return nil
}

// readPosting reads the posting of the key.
func (s *source) readPosting() error {
	r := s.rows
	head := r.Uvarint()
	if head>>1 > uint64(r.Left()) {
		r.Fail("posting of %d runs in %d bytes", head>>1, r.Left())
	}
	at, rows := uint64(0), uint64(s.reader.rows)
	for range head >> 1 {
		start, length := at+r.Uvarint(), uint64(1)
		if head&1 == 1 {
			length += r.Uvarint()
		}
		if r.Err() == nil && (start > rows || length > rows || start+length > rows) {
			r.Fail("rows %d + %d of %d", start, length, rows)
		}
		if r.Err() != nil {
			return r.Err()
		}
		at, s.pairs = start+length, s.pairs+length
		s.send(rowset.Range{Start: uint32(start), End: uint32(at)})
	}
	return r.Err()
}
