package bitmap

import (
	"bytes"
	"slices"
	"sort"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Probe answers in at most two waves: pages of the dictionary, then row sets. A dictionary in the root costs no wave.
func (x *reader) Probe(leaf *predicate.Leaf) index.Probe {
	test := leaf // of a value
	if x.ofList && leaf.Op == predicate.Contains {
		test = index.EqualElement(leaf)
	}
	ask, ok := index.Asked(test, x.enc)
	if !ok || x.ofList != (leaf.Op == predicate.Contains) {
		return index.Settled(rowset.Maybe(x.rows))
	}
	p := &probe{reader: x, leaf: leaf, test: test, ask: ask, null: x.nulls.Known(x.rows), nan: x.nans.Known(x.rows), found: index.NewRows(x.rows)}
	p.isTrue = rowset.Maybe(x.rows)
	sqlNot := leaf.Negated && leaf.Dialect == predicate.SQL
	switch leaf.Op {
	case predicate.IsNull:
		p.wantNull = true
	case predicate.IsNaN:
		p.wantNaN, p.wantNull = true, sqlNot
	default:
		p.wantNull, p.wantNaN = sqlNot, index.PassesNaN(leaf)
		p.look()
	}
	if len(p.looking) == 0 {
		p.wantSets()
	}
	return p
}

// side is the row sets of values that pass, or of those that do not.
type side struct {
	sets  []rowSet
	bytes int64
}

func (s *side) add(r rowSet) {
	s.sets, s.bytes = append(s.sets, r), s.bytes+r.unit.Len
}

type probe struct {
	*reader
	leaf, test        *predicate.Leaf
	ask               index.Ask
	wantNull, wantNaN bool

	looking       []int // pages in the wave
	whole         bool  // every value of the file was tried, and a row has one
	passed, other side
	sets          []rowSet // row sets in the wave, after those of nulls and NaNs
	complement    bool     // they are those of values that do not pass
	wave          index.Wave
	capped        bool // nothing is known of values

	null, nan, isTrue rowset.Verdict
	found             *index.Rows
	done, failed      bool
	verdict           *rowset.Verdict
}

// look tries the values in the root or asks for the pages where some may pass.
func (p *probe) look() {
	switch {
	case p.tooMany:
		p.capped = true
	case p.pages == nil:
		p.whole = !p.ofList
		if p.values > 0 {
			p.takePage(bytescan.NewReader(name+" dictionary", p.inline), p.values)
		}
	default:
		for i := range p.pages {
			if p.overlaps(i) {
				p.looking, p.wave = append(p.looking, i), append(p.wave, p.pages[i].unit)
			}
		}
		p.whole = len(p.looking) == len(p.pages) && !p.ofList
	}
}

// overlaps reports whether a key asked for may lie in a page.
func (p *probe) overlaps(page int) bool {
	in := p.ask.In
	i := sort.Search(len(in), func(i int) bool { return !in[i].Above(p.pages[page].first) })
	return i < len(in) && (page+1 == len(p.pages) || bytes.Compare(in[i].Lo, p.pages[page+1].first) < 0)
}

func (p *probe) takePage(r *bytescan.Reader, n int) {
	p.other.sets = slices.Grow(p.other.sets, min(n, 4096))
	p.readPage(r, n, p.ask.HoldsInOrder(p.test), func(rows rowSet, passed bool) {
		if passed {
			p.passed.add(rows)
		} else {
			p.other.add(rows)
		}
	})
}

// wantSets asks for the cheaper row sets: those of the values that pass, or all others with the null and NaN rows.
func (p *probe) wantSets() {
	p.sets = p.passed.sets
	size, rest := p.passed.bytes, p.other.bytes+p.nulls.Unit.Len+p.nans.Unit.Len
	if p.whole && rest < size && !p.nulls.Lost(p.rows) && !p.nans.Lost(p.rows) {
		p.sets, size, p.complement, p.wantNull, p.wantNaN = p.other.sets, rest, true, true, true
	}
	if p.capped = p.capped || size > maxProbe; p.capped {
		p.sets, p.complement = nil, false
	}
	p.wantNull, p.wantNaN = p.wantNull && p.nulls.Readable(), p.wantNaN && p.nans.Readable()
	if p.wantNull {
		p.wave = append(p.wave, p.nulls.Unit)
	}
	if p.wantNaN {
		p.wave = append(p.wave, p.nans.Unit)
	}
	for _, s := range p.sets {
		if s.count < p.rows {
			p.wave = append(p.wave, s.unit)
		}
	}
	if len(p.wave) == 0 {
		p.settle()
	}
}

func (p *probe) Need() []index.Span { return p.wave.Spans() }

// Entries is the rows of the row sets to read.
func (p *probe) Entries() (n int64) {
	for _, s := range p.sets {
		if s.count < p.rows {
			n += int64(s.count)
		}
	}
	return n
}

func (p *probe) Feed(data [][]byte) error {
	wave := p.wave
	p.wave = nil
	err := wave.Check(name, data)
	switch {
	case err != nil:
	case len(p.looking) > 0:
		err = p.takePages(data)
	default:
		err = p.takeSets(data)
	}
	p.failed = err != nil
	return err
}

func (p *probe) takePages(data [][]byte) error {
	for i, at := range p.looking {
		r := bytescan.NewReader(name+" page", data[i])
		p.takePage(r, p.pages[at].values)
		if err := r.Done(); err != nil {
			return err
		}
	}
	p.looking = nil
	p.wantSets()
	return nil
}

func (p *probe) takeSets(data [][]byte) (err error) {
	for _, s := range []struct {
		wanted bool
		index.Unordered
		into *rowset.Verdict
	}{{p.wantNull, p.nulls, &p.null}, {p.wantNaN, p.nans, &p.nan}} {
		if !s.wanted {
			continue
		}
		rows, err := s.Rows(name, data[0], p.rows)
		if err != nil {
			return err
		}
		*s.into, data = rowset.Exactly(rows), data[1:]
	}
	for _, s := range p.sets {
		if s.count == p.rows {
			continue
		}
		if err := s.visit(data[0], p.rows, func(x rowset.Range) { p.found.Add(x) }); err != nil {
			return err
		}
		data = data[1:]
	}
	p.settle()
	return nil
}

// settle ends the probe: every row set that it wants was read.
func (p *probe) settle() {
	p.done = true
	if p.capped {
		return
	}
	for _, s := range p.sets {
		if s.count == p.rows {
			p.found.Add(rowset.Range{End: p.rows})
		}
	}
	p.isTrue = rowset.Exactly(p.found.Set())
	if p.complement {
		p.isTrue = index.FalseOf(rowset.Either(p.isTrue, p.nan), p.null)
	}
}

// Verdict is Maybe until the last wave was fed.
func (p *probe) Verdict() rowset.Verdict {
	if !p.done || p.failed {
		return rowset.Maybe(p.rows)
	}
	if p.verdict == nil {
		if p.ofList { // a list that holds the value does so whatever else is null
			p.null = rowset.Both(p.null, rowset.Negate(p.isTrue, rowset.All(p.rows)))
		}
		v := index.Sign(p.leaf, index.Known{True: p.isTrue, False: index.FalseOf(p.isTrue, p.null), Null: p.null, NaN: p.nan})
		p.verdict = &v
	}
	return *p.verdict
}
