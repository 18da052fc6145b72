package ordered

import (
	"encoding/binary"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// source reads the keys of an artifact in order, with their rows in a merged one: most blocks as pairs, those of keys with very many rows
// key by key.
type source struct {
	*reader
	from *index.Source
	read *index.Ahead
	m    *index.OrdinalMap
	no   int // of the source in the map
	share

	alone *index.Stretch // all rows of the source that stay, where they stay together

	pages  directory // still to be read, where the root's entries are pages
	blocks directory // still to be read
	page   []byte
	block  []byte // a view

	numeric bool // keys are of eight bytes, as ordered as their numbers
	fixed   int
	started bool // a key was read
	last    []byte
	seen    uint64 // (value, row) pairs read

	// A block as pairs.
	pairs []pair // that are left
	taken []pair // their memory
	words []uint64
	olds  []uint32
	text  []byte // keys that are no numbers
	ends  []int  // in the text
	lists []int  // where the rows of keys end, where they may have several

	// A block key by key.
	left   int              // keys behind the one at hand
	first  bool             // the next key is the block's first
	goesOn bool             // it may be the last one of the block before
	keys   *bytescan.Reader // at the next key
	rows   *bytescan.Reader // at its posting; nil: every key has one row
	packed []byte
	number int            // of the next key in the block
	keyed  bool           // a key is at hand: last is it
	runs   []rowset.Range // its new rows that were not yet gathered
	take   func(_, to rowset.Range)
	gather func([]rowset.Range)
}

// share is what one source of a merge may hold beside a block and a directory page.
type share struct {
	window      int64 // bytes read ahead
	pairs, text int   // of a block that is read as pairs; one with more is read key by key
}

// mergedBytes is what a pair takes at most in all the slices it passes through, those of a source and of the merge, with the room these grow by.
const mergedBytes = 128

// shareOf is an equal share of a budget.
func shareOf(b index.Budget, sources int) share {
	each := b.Bytes() / int64(sources)
	return share{
		window: each / 4,
		pairs:  int(min(each/2/mergedBytes, maxPairs)),
		text:   int(min(each/8, maxText)),
	}
}

func newSource(x *reader, from *index.Source, m *index.OrdinalMap, no int, mine share, gather func([]rowset.Range)) *source {
	s := &source{reader: x, from: from, read: index.NewAheadOf(from, mine.window), m: m, no: no, share: mine, numeric: numeric(x.enc), gather: gather}
	if x.level == levelPages {
		s.pages = x.top
	} else {
		s.blocks = x.top
	}
	if !variable(x.enc) {
		s.fixed = x.enc.Size()
	}
	s.take = func(_, to rowset.Range) {
		if s.runs = append(s.runs, to); len(s.runs) == maxRuns {
			s.gatherRuns()
		}
	}
	return s
}

func (s *source) gatherRuns() {
	s.gather(s.runs)
	s.runs = s.runs[:0]
}

// numeric reports whether keys are of eight bytes that are ordered as numbers.
func numeric(e index.Encoding) bool { return e.Narrow() && e.Size() == 8 }

// fill reads on until pairs or a key are at hand; ok is false after the last, when every row must have been seen.
func (s *source) fill() (ok bool, err error) {
	for len(s.pairs) == 0 && !s.keyed {
		if s.left > 0 {
			return true, s.nextKey()
		}
		if ok, err := s.nextBlock(); !ok || err != nil {
			return false, err
		}
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
		if s.blocks[0].continued != s.pages[0].continued {
			return false, index.Broken(name+" directory page", "the root says otherwise whether its first key is also the last before it")
		}
		s.pages = s.pages[1:]
	}
	e := s.blocks[0]
	s.blocks = s.blocks[1:]
	if s.block, err = s.read.Unit(name+" block", e.unit); err != nil {
		return false, err
	}
	goesOn := len(s.blocks) > 0 && s.blocks[0].continued || len(s.blocks) == 0 && len(s.pages) > 0 && s.pages[0].continued
	if whole := !e.continued && !goesOn; whole {
		if ok, err := s.openPairs(); ok || err != nil {
			return true, err
		}
	}
	return true, s.openKeys(e.continued)
}

// see counts rows as they are read, so that few bytes do not make a merge visit all rows again and again.
func (s *source) see(rows uint64) error {
	if s.seen += rows; s.seen > uint64(s.reader.rows) {
		return index.Broken(name, "holds more than %d rows", s.reader.rows)
	}
	return nil
}

// end checks that the keys, nulls and NaNs were all rows.
func (s *source) end() error {
	if n := s.seen + uint64(s.nulls.Count) + uint64(s.nans.Count); n != uint64(s.reader.rows) {
		return index.Broken(name, "holds %d rows of %d", n, s.reader.rows)
	}
	return nil
}

// head reads the head of the block.
func (s *source) head() (r *bytescan.Reader, form uint8, n int) {
	r = bytescan.NewReader(name+" block", s.block)
	form = r.U8()
	n = r.Count(len(s.block), 1)
	if r.Err() == nil && (form > formPostings || n == 0) {
		r.Fail("block of form %d with %d keys", form, n)
	}
	return r, form, n
}

// openKeys finds the postings behind the keys.
func (s *source) openKeys(continued bool) error {
	r, form, n := s.head()
	s.keys = bytescan.NewReader(name+" block", s.block[r.Offset():])
	for range n {
		shared, length := s.shared(r), uint64(0)
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

// nextKey reads the next key of the block.
func (s *source) nextKey() error {
	s.keyed = true
	return s.readKey(s.keys)
}

// gatherKey reads the rows of the key at hand, which is at hand no more.
func (s *source) gatherKey() error {
	if s.rows == nil {
		row := unpack(s.packed, s.number, rowBits(s.reader.rows))
		if row >= uint64(s.reader.rows) {
			return index.Broken(name+" block", "row %d of %d", row, s.reader.rows)
		}
		if err := s.see(1); err != nil {
			return err
		}
		s.send(rowset.Range{Start: uint32(row), End: uint32(row) + 1})
	} else if err := s.readPosting(); err != nil {
		return err
	}
	s.gatherRuns()
	s.number, s.left, s.keyed = s.number+1, s.left-1, false
	if s.left == 0 && s.rows != nil {
		return s.rows.Done()
	}
	return nil
}

// shared reads how many bytes a key shares, which of numbers takes one byte.
func (s *source) shared(r *bytescan.Reader) uint64 {
	if s.numeric {
		return uint64(r.U8())
	}
	return r.Uvarint()
}

// readKey reads a key behind the last one.
func (s *source) readKey(r *bytescan.Reader) error {
	shared := int(min(s.shared(r), 1<<20))
	length := s.fixed - shared
	if s.fixed == 0 {
		length = r.Count(maxKey+1, 1)
	}
	if s.first && shared > 0 || shared > len(s.last) || length < 0 || shared+length > maxKey+1 {
		r.Fail("key shares %d of %d bytes and adds %d", shared, len(s.last), length)
	}
	suffix := r.Bytes(length)
	if r.Err() != nil {
		return r.Err()
	}
	if s.started && string(suffix) <= string(s.last[shared:]) && !(s.goesOn && string(suffix) == string(s.last)) {
		return index.Broken(name+" block", "a key is not above the one before")
	}
	s.last = append(s.last[:shared], suffix...)
	s.first, s.goesOn, s.started = false, false, true
	return nil
}

// readPosting reads the posting of a key.
func (s *source) readPosting() error {
	r := s.rows
	head := r.Uvarint()
	if head>>1 > uint64(r.Left()) {
		r.Fail("posting of %d runs in %d bytes", head>>1, r.Left())
	}
	at, rows := uint64(0), uint64(s.reader.rows)
	for range head >> 1 {
		gap, length := r.Uvarint(), uint64(1)
		if head&1 == 1 {
			length += r.Uvarint()
		}
		start := at + gap
		if r.Err() == nil && (gap > rows || length-1 >= rows || start+length > rows) {
			r.Fail("rows %d + %d + %d of %d", at, gap, length, rows)
		}
		if r.Err() != nil {
			return r.Err()
		}
		if err := s.see(length); err != nil {
			return err
		}
		at = start + length
		s.send(rowset.Range{Start: uint32(start), End: uint32(at)})
	}
	return r.Err()
}

// send visits where rows go.
func (s *source) send(old rowset.Range) {
	if s.alone == nil {
		s.m.Each(s.no, old, s.take)
		return
	}
	from, end := max(old.Start, s.alone.Old.Start), min(old.End, s.alone.Old.End)
	if from < end {
		by := s.alone.To - s.alone.Old.Start // may wrap
		if s.runs = append(s.runs, rowset.Range{Start: from + by, End: end + by}); len(s.runs) == maxRuns {
			s.gatherRuns()
		}
	}
}

// word is the last key read, as a number.
func (s *source) word() uint64 { return binary.BigEndian.Uint64(s.last) }
