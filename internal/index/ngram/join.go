package ngram

import (
	"slices"

	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// source is an artifact being merged, read trigram by trigram.
type source struct {
	*reader
	from     *index.Source
	postings *index.Ahead
	block    int     // the next dictionary block
	entries  []entry // of the block at hand
	at       int     // the next one of them
	buf      []byte
}

func openSource(from *index.Source) (*source, error) {
	x, err := open(from.Root, from.Rows)
	if err != nil {
		return nil, err
	}
	if x.bodySize != from.Size {
		return nil, index.Broken(name, "body of %d bytes, its root says %d", from.Size, x.bodySize)
	}
	s := &source{reader: x, from: from, postings: index.NewAhead(from)}
	if len(x.blocks) > 0 {
		return s, s.fill()
	}
	return s, x.eachEntry(x.inside, func(e entry) { s.entries = append(s.entries, e) })
}

// fill reads dictionary blocks until an entry is at hand or none is left.
func (s *source) fill() (err error) {
	for s.at == len(s.entries) && s.block < len(s.blocks) {
		if s.buf, err = s.from.Unit(name+" dictionary", s.blocks[s.block].unit, s.buf); err != nil {
			return err
		}
		first, end := s.blocks[s.block].first, uint32(trigrams)
		if s.block++; s.block < len(s.blocks) {
			end = s.blocks[s.block].first
		}
		s.entries, s.at = s.entries[:0], 0
		if err := s.eachEntry(s.buf, func(e entry) { s.entries = append(s.entries, e) }); err != nil {
			return err
		}
		if n := len(s.entries); n > 0 && (s.entries[0].trigram < first || s.entries[n-1].trigram >= end) {
			return index.Broken(name+" dictionary", "trigrams %d to %d in a block of [%d, %d)", s.entries[0].trigram, s.entries[n-1].trigram, first, end)
		}
	}
	return nil
}

// trigram is the one at hand; trigrams: none is left.
func (s *source) trigram() uint32 {
	if s.at == len(s.entries) {
		return trigrams
	}
	return s.entries[s.at].trigram
}

// posting is the bytes of a posting, a view that the next call ends.
func (s *source) posting(e *entry) ([]byte, error) {
	if e.inside != nil {
		return e.inside, nil
	}
	return s.postings.Unit(name+" posting", e.unit)
}

// joining is one merge.
type joining struct {
	rows    uint32
	m       *index.OrdinalMap
	along   [][]index.Stretch // the map, unless it is none of few stretches
	sources []*source
	out     *writer
	limit   int64
	held    [][]byte // by source: the posting of the trigram at hand
	moved   []uint32 // rows of the trigram at hand
}

// trigrams writes the postings of all sources.
func (j *joining) trigrams() (reason string, err error) {
	for {
		next := uint32(trigrams)
		for _, s := range j.sources {
			next = min(next, s.trigram())
		}
		if next == trigrams {
			return "", nil
		}
		if reason, err = j.trigram(next); reason != "" || err != nil {
			return reason, err
		}
		for _, s := range j.sources {
			if s.trigram() != next {
				continue
			}
			s.at++
			if err := s.fill(); err != nil {
				return "", err
			}
		}
	}
}

func (j *joining) trigram(t uint32) (reason string, err error) {
	frequent, used := false, int64(0)
	for _, s := range j.sources {
		if s.trigram() != t {
			continue
		}
		e := &s.entries[s.at]
		frequent = frequent || e.rows == 0
		used += 4*int64(e.rows) + e.unit.Len
	}
	switch {
	case frequent:
		return "", j.out.dropped(t)
	case used > j.limit:
		return "the rows of one trigram take more memory than the merge may use", nil
	}
	for i, s := range j.sources {
		if j.held[i] = nil; s.trigram() != t {
			continue
		}
		if j.held[i], err = s.posting(&s.entries[s.at]); err != nil {
			return "", err
		}
	}
	if j.along != nil {
		err = j.copyRows()
	} else {
		err = j.moveRows()
	}
	switch {
	case err != nil:
		return "", err
	case tooFrequent(j.out.posting.rows, j.rows):
		return "", j.out.dropped(t)
	default:
		return "", j.out.kept(t)
	}
}

// copyRows writes the new rows of the postings at hand, stretch by stretch.
func (j *joining) copyRows() error {
	for _, along := range j.along {
		i := along[0].Source
		if j.held[i] == nil {
			continue
		}
		s := j.sources[i]
		c := copier{along: along, size: s.rows, least: j.out.sizes.copied, out: &j.out.posting, scratch: j.moved}
		err := c.copy(j.held[i], s.entries[s.at].rows)
		if j.moved = c.scratch; err != nil {
			return err
		}
	}
	return nil
}

// moveRows sends the rows of the postings at hand through the map, one by one.
func (j *joining) moveRows() error {
	j.moved = j.moved[:0]
	for i, b := range j.held {
		if b == nil {
			continue
		}
		s, from := j.sources[i], len(j.moved)
		err := eachRow(b, s.rows, s.entries[s.at].rows, func(old rowset.Range) bool {
			for row := old.Start; row < old.End; row++ {
				j.moved = append(j.moved, row)
			}
			return true
		})
		if err != nil {
			return err
		}
		kept := from
		for _, old := range j.moved[from:] {
			if to := j.m.To(i, old); to != index.Gone {
				j.moved[kept] = to
				kept++
			}
		}
		j.moved = j.moved[:kept]
	}
	if !slices.IsSorted(j.moved) {
		slices.Sort(j.moved)
	}
	for _, row := range j.moved {
		j.out.posting.add(row)
	}
	return nil
}
