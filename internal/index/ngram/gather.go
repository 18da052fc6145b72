package ngram

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
)

// gather collects the rows of every trigram, in memory up to a budget and through spilled runs beyond it. Rows ascend, so that the
// rows of a trigram are those of its runs one after the other.
type gather struct {
	pages [trigrams >> 8]*[256]uint32 // by the first two bytes: 1 + number of the trigram in lists
	lists []list
	rows  uint32
	limit int64
	used  int64 // bytes that may be spilled
	runs  runs
}

// list is the rows of one trigram: of those since the last spill the gaps as varints.
type list struct {
	trigram uint32
	last    uint32
	n       uint32
	gaps    []byte
}

const minRun = 16 << 10 // bytes; a smaller budget is exceeded rather than spilled row by row

func newGather(rows uint32, limit int64, dir string) *gather {
	return &gather{rows: rows, limit: max(limit, minRun), runs: runs{dir: dir}}
}

// add adds the trigrams of a folded text in a row, which no row before exceeds.
func (g *gather) add(text []byte, row uint32) error {
	if len(text) < 3 {
		return nil
	}
	t := uint32(text[0])<<8 | uint32(text[1])
	for _, c := range text[2:] {
		t = t<<8&(trigrams-1) | uint32(c)
		l := g.list(t)
		switch {
		case l.n > 0 && l.last == row:
			continue
		case l.n == 0:
			l.gaps = binary.AppendUvarint(l.gaps, uint64(row))
			g.used += int64(cap(l.gaps))
		case !tooFrequent(l.n, g.rows):
			before := cap(l.gaps)
			l.gaps = binary.AppendUvarint(l.gaps, uint64(row-l.last-1))
			g.used += int64(cap(l.gaps) - before)
		default: // its rows are not kept
			g.used -= int64(cap(l.gaps))
			l.gaps = nil
			continue
		}
		l.n, l.last = l.n+1, row
	}
	if g.used > g.limit {
		return g.spill()
	}
	return nil
}

func (g *gather) list(t uint32) *list {
	page := g.pages[t>>8]
	if page == nil {
		page = new([256]uint32)
		g.pages[t>>8] = page
	}
	at := &page[t&0xff]
	if *at == 0 {
		g.lists = append(g.lists, list{trigram: t})
		*at = uint32(len(g.lists))
	}
	return &g.lists[*at-1]
}

// ascending is the trigrams seen, in order.
func (g *gather) ascending() []uint32 {
	out := make([]uint32, len(g.lists))
	for i := range g.lists {
		out[i] = g.lists[i].trigram
	}
	slices.Sort(out)
	return out
}

func (g *gather) spill() error {
	err := g.runs.write(func(w *bufio.Writer) error {
		var head [2 * binary.MaxVarintLen32]byte
		for _, t := range g.ascending() {
			l := g.list(t)
			if len(l.gaps) == 0 {
				continue
			}
			b := binary.AppendUvarint(binary.AppendUvarint(head[:0], uint64(t)), uint64(len(l.gaps)))
			if _, err := w.Write(b); err != nil {
				return err
			}
			if _, err := w.Write(l.gaps); err != nil {
				return err
			}
			l.gaps = nil
		}
		return nil
	})
	g.used = 0
	return err
}

// each visits the trigrams in order with their number of rows and, unless they are too frequent, the gaps between them: the first is
// the first row, others the rows in between.
func (g *gather) each(visit func(trigram, n uint32, gaps []byte) error) error {
	cursors, err := g.runs.open(g.limit)
	if err != nil {
		return err
	}
	var gaps []byte
	for _, t := range g.ascending() {
		gaps = gaps[:0]
		for _, c := range cursors {
			if c.trigram != t {
				continue
			}
			if gaps, err = c.take(gaps); err != nil {
				return err
			}
		}
		l := g.list(t)
		gaps = append(gaps, l.gaps...)
		if err := visit(t, l.n, gaps); err != nil {
			return err
		}
	}
	return nil
}

// runs is spilled trigrams in one temporary file. A run is trigrams in order, each a varint, the varint length of its gaps and the
// gaps.
type runs struct {
	dir  string
	file *os.File
	ends []int64
}

func spillFault(err error) error {
	return fault.Wrap(fault.Exhausted, "temporary file of the index build", err)
}

func (s *runs) write(run func(*bufio.Writer) error) error {
	if s.file == nil {
		f, err := os.CreateTemp(s.dir, "ngram-*.runs")
		if err != nil {
			return fault.Wrap(fault.Exhausted, "temporary folder of the index build", err)
		}
		s.file = f
	}
	w := bufio.NewWriterSize(s.file, 64<<10)
	if err := errors.Join(run(w), w.Flush()); err != nil {
		return spillFault(err)
	}
	end, err := s.file.Seek(0, io.SeekCurrent)
	s.ends = append(s.ends, end)
	return spillFault(err)
}

// open starts reading all runs, with about memory bytes of buffers.
func (s *runs) open(memory int64) ([]*cursor, error) {
	out := make([]*cursor, len(s.ends))
	start := int64(0)
	for i, end := range s.ends {
		buffer := int(min(max(memory/int64(len(s.ends)), 4<<10), 1<<20))
		out[i] = &cursor{in: bufio.NewReaderSize(io.NewSectionReader(s.file, start, end-start), buffer)}
		if err := out[i].next(); err != nil {
			return nil, err
		}
		start = end
	}
	return out, nil
}

func (s *runs) close() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// cursor reads a run.
type cursor struct {
	in      *bufio.Reader
	trigram uint32 // of the next gaps; trigrams: none is left
}

func (c *cursor) next() error {
	t, err := binary.ReadUvarint(c.in)
	switch {
	case errors.Is(err, io.EOF):
		c.trigram = trigrams
	case err != nil:
		return spillFault(err)
	default:
		c.trigram = uint32(t)
	}
	return nil
}

// take appends the gaps of the trigram and moves on.
func (c *cursor) take(gaps []byte) ([]byte, error) {
	n, err := binary.ReadUvarint(c.in)
	if err != nil {
		return nil, spillFault(err)
	}
	at := len(gaps)
	gaps = slices.Grow(gaps, int(n))[:at+int(n)]
	if _, err := io.ReadFull(c.in, gaps[at:]); err != nil {
		return nil, spillFault(err)
	}
	return gaps, c.next()
}
