package ngram

import (
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// source is an artifact being merged, read trigram by trigram.
type source struct {
	*reader
	from    *index.Source
	number  int
	alone   *index.Stretch // all rows that stay, where they stay together
	block   int            // the next dictionary block
	entries []entry        // of the block at hand, from the next one on
	buf     []byte
}

func openSource(from *index.Source, number int) (*source, error) {
	x, err := open(from.Root, from.Rows)
	if err != nil {
		return nil, err
	}
	if x.bodySize != from.Size {
		return nil, index.Broken(name, "body of %d bytes, its root says %d", from.Size, x.bodySize)
	}
	s := &source{reader: x, from: from, number: number}
	if len(x.blocks) > 0 {
		return s, s.fill()
	}
	return s, x.eachEntry(x.inside, func(e entry) { s.entries = append(s.entries, e) })
}

// fill reads dictionary blocks until an entry is at hand or none is left.
func (s *source) fill() error {
	for len(s.entries) == 0 && s.block < len(s.blocks) {
		b, err := s.from.Unit(name+" dictionary", s.blocks[s.block].unit, nil)
		if err != nil {
			return err
		}
		s.block++
		s.entries = s.entries[:0]
		if err := s.eachEntry(b, func(e entry) { s.entries = append(s.entries, e) }); err != nil {
			return err
		}
	}
	return nil
}

// posting is the bytes of the posting of the entry at hand.
func (s *source) posting() (b []byte, err error) {
	e := s.entries[0]
	if e.inside != nil {
		return e.inside, nil
	}
	s.buf, err = s.from.Unit(name+" posting", e.unit, s.buf)
	return s.buf, err
}

// joining is one merge.
type joining struct {
	rows    uint32
	m       *index.OrdinalMap
	sources []*source
	out     *writer
	limit   int64
	moved   []uint32 // new rows of the trigram at hand
}

// trigrams writes the postings of all sources.
func (j *joining) trigrams() (reason string, err error) {
	for {
		next := uint32(trigrams)
		for _, s := range j.sources {
			if len(s.entries) > 0 {
				next = min(next, s.entries[0].trigram)
			}
		}
		if next == trigrams {
			return "", nil
		}
		if reason, err = j.trigram(next); reason != "" || err != nil {
			return reason, err
		}
	}
}

func (j *joining) trigram(t uint32) (reason string, err error) {
	frequent := false
	j.moved = j.moved[:0]
	for _, s := range j.sources {
		if len(s.entries) == 0 || s.entries[0].trigram != t {
			continue
		}
		switch e := s.entries[0]; {
		case e.rows == 0:
			frequent = true
		case int64(4*len(j.moved))+4*int64(e.rows)+e.unit.Len > j.limit:
			return "the rows of one trigram take more memory than the merge may use", nil
		default:
			if err := j.move(s); err != nil {
				return "", err
			}
		}
		s.entries = s.entries[1:]
		if err := s.fill(); err != nil {
			return "", err
		}
	}
	if frequent || tooFrequent(uint32(len(j.moved)), j.rows) {
		return "", j.out.dropped(t)
	}
	if !slices.IsSorted(j.moved) {
		slices.Sort(j.moved)
	}
	for _, row := range j.moved {
		j.out.posting.add(row)
	}
	return "", j.out.kept(t)
}

// move sends the rows of a source's posting through the map.
func (j *joining) move(s *source) error {
	b, err := s.posting()
	if err != nil {
		return err
	}
	r := bytescan.NewReader(name+" posting", b)
	from := len(j.moved)
	j.moved = appendRows(j.moved, r, s.rows)
	if n := len(j.moved) - from; r.Err() == nil && n != int(s.entries[0].rows) {
		r.Fail("%d rows, the dictionary says %d", n, s.entries[0].rows)
	}
	if err := r.Done(); err != nil {
		return err
	}
	kept := from
	for _, old := range j.moved[from:] {
		var to uint32
		if s.alone != nil {
			to = s.alone.Row(old)
		} else {
			to = j.m.To(s.number, old)
		}
		if to != index.Gone {
			j.moved[kept] = to
			kept++
		}
	}
	j.moved = j.moved[:kept]
	return nil
}
