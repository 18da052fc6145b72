package index

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Rows gathers row numbers in any order into a set. It keeps ranges until a bitmap over all rows is smaller, so it never
// holds more than an eighth of a byte a row (twice that while it switches).
type Rows struct {
	size   uint32
	ranges []rowset.Range
	words  []uint64
	mixed  bool // ranges are out of order
}

// NewRows starts an empty set over size rows.
func NewRows(size uint32) *Rows { return &Rows{size: size} }

// Add adds the rows of r; it reports false, adding nothing, when r is empty or runs past the last row.
func (s *Rows) Add(r rowset.Range) bool {
	if r.Start >= r.End || r.End > s.size {
		return false
	}
	if s.words != nil {
		s.mark(r)
		return true
	}
	if n := len(s.ranges); n > 0 && s.ranges[n-1].End == r.Start {
		s.ranges[n-1].End = r.End
		return true
	}
	s.mixed = s.mixed || len(s.ranges) > 0 && r.Start < s.ranges[len(s.ranges)-1].End
	s.ranges = append(s.ranges, r)
	few, enough := 1024, uint64(len(s.ranges))*64 // a word each, twice what the bitmap takes
	if s.mixed {
		few, enough = 64, enough*8 // sorting takes longer than a look at some empty words
	}
	if len(s.ranges) > few && enough > uint64(s.size) {
		s.words = make([]uint64, (uint64(s.size)+63)/64)
		for _, r := range s.ranges {
			s.mark(r)
		}
		s.ranges = nil
	}
	return true
}

func (s *Rows) mark(r rowset.Range) {
	markWords(s.words, r.Start, r.End)
}

// Cut takes rows off the end of the set, none of which was added.
func (s *Rows) Cut(size uint32) {
	if s.size = size; s.words != nil {
		s.words = s.words[:(uint64(size)+63)/64]
	}
}

// Set is the rows gathered; s must not be used afterwards.
func (s *Rows) Set() *rowset.Set {
	if s.words != nil {
		return rowset.FromBits(s.size, s.words)
	}
	return rowset.FromRanges(s.size, s.ranges)
}

// Runs visits the rows gathered as runs, ascending and apart, so many at most at a time; s must not be used afterwards.
func (s *Rows) Runs(most int, visit func([]rowset.Range) error) error {
	if s.words == nil {
		for runs := range slices.Chunk(s.Set().Ranges(), most) {
			if err := visit(runs); err != nil {
				return err
			}
		}
		return nil
	}
	runs := make([]rowset.Range, 0, most)
	var err error
	(&ranks{words: s.words, before: []uint32{0}}).each(0, s.size, func(start, end, _ uint32) {
		if len(runs) == most && err == nil {
			err, runs = visit(runs), runs[:0]
		}
		if err == nil {
			runs = append(runs, rowset.Range{Start: start, End: end})
		}
	})
	if err != nil || len(runs) == 0 {
		return err
	}
	return visit(runs)
}

// The bytes of a row set, cut into chunks of 65,536 rows; empty chunks are left out:
//
//	uv chunks
//	per chunk   uv (chunk number - previous - 1; the first: chunk number) << 1 | form
//	  form 0    uv ranges; per range uv gap from the last end, uv length - 1
//	  form 1    8,192 bytes, a bit per row, least significant first
const (
	chunkRows   = 1 << 16
	chunkBitmap = chunkRows / 8
)

// ReadRows reads a set over size rows that AppendRows wrote. Memory: 32 bytes a byte read, or a bit a row, whichever is less.
func ReadRows(r *bytescan.Reader, size uint32) *rowset.Set {
	out := NewRows(size)
	if out.Read(r); r.Err() != nil {
		return rowset.None(size)
	}
	return out.Set()
}

// Read adds the rows of a set that AppendRows wrote and returns how many they are. After a failure some of them may be added.
func (s *Rows) Read(r *bytescan.Reader) (rows int64) {
	return VisitRows(r, s.size, func(x rowset.Range) { s.Add(x) })
}

// VisitRows shows the rows of a set over size rows that AppendRows wrote, as ascending ranges, and returns how many they are. After a
// failure some of them may have been shown.
func VisitRows(r *bytescan.Reader, size uint32, visit func(rowset.Range)) (rows int64) {
	next := uint64(0)
	for range r.Count(chunkRows, 3) {
		head := r.Uvarint()
		if next += head >> 1; next >= chunkRows {
			r.Fail("row chunk %d is past the last", next)
		}
		if r.Err() != nil {
			break
		}
		c := chunkReader{r: r, base: next * chunkRows, size: uint64(size), visit: visit}
		if head&1 == 1 {
			rows += c.bitmap()
		} else {
			rows += c.ranges()
		}
		next++
	}
	return rows
}

// chunkReader reads a chunk whose first row is base.
type chunkReader struct {
	r          *bytescan.Reader
	base, size uint64
	visit      func(rowset.Range)
}

func (c *chunkReader) ranges() (rows int64) {
	at, r := uint64(0), c.r
	for range r.Count(chunkRows, 2) {
		start := at + min(r.Uvarint(), chunkRows)
		at = start + 1 + min(r.Uvarint(), chunkRows)
		if r.Err() != nil {
			break
		}
		c.show(start, at)
		rows += int64(at - start)
	}
	return rows
}

func (c *chunkReader) bitmap() (rows int64) {
	b := c.r.Bytes(chunkBitmap)
	for i := 0; i+8 <= len(b); i += 8 {
		for w := binary.LittleEndian.Uint64(b[i:]); w != 0; {
			start := bits.TrailingZeros64(w)
			n := bits.TrailingZeros64(^(w >> start))
			c.show(uint64(i*8+start), uint64(i*8+start+n))
			rows += int64(n)
			if start+n >= 64 {
				break
			}
			w &= ^uint64(0) << (start + n)
		}
	}
	return rows
}

func (c *chunkReader) show(start, end uint64) {
	if end > chunkRows || c.base+end > c.size {
		c.r.Fail("rows [%d, %d) run past the chunk or the %d rows of the artifact", c.base+start, c.base+end, c.size)
		return
	}
	c.visit(rowset.Range{Start: uint32(c.base + start), End: uint32(c.base + end)})
}
