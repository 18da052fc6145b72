package valueset

import (
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Open parses a root of at most 4 MiB, which it keeps, into at most 8 MiB beside it.
func (Kind) Open(root []byte, rows uint32) (index.Reader, error) {
	x, err := open(root, rows)
	if err != nil {
		return nil, err
	}
	return x, nil
}

func open(root []byte, rows uint32) (*reader, error) {
	r, enc, err := index.OpenRoot(name, root, version, maxRoot)
	if err != nil {
		return nil, err
	}
	x := &reader{rows: rows, enc: enc, ofList: index.ReadShape(r)}
	x.bodySize = index.ReadSize(r)
	n := r.Count(index.MaxRowGroups, 2)
	form := r.U8()
	if r.Err() == nil && (form > formUnits || form == formInline && len(root) > inlineRoot) {
		r.Fail("sets in form %d in a root of %d bytes", form, len(root))
	}
	x.readGroups(r, root, n, form)
	if err := r.Done(); err != nil {
		return nil, err
	}
	return x, nil
}

type reader struct {
	rows     uint32
	enc      index.Encoding
	bodySize int64
	ofList   bool
	groups   []group
}

// Silent is the row groups with too many values to list.
func (x *reader) Silent() (silent, parts int) {
	for i := range x.groups {
		if x.groups[i].tooMany {
			silent++
		}
	}
	return silent, len(x.groups)
}

func (x *reader) readGroups(r *bytescan.Reader, root []byte, n int, form uint8) {
	at := uint32(0)
	x.groups = make([]group, 0, n)
	for range n {
		g := x.readGroup(r, at)
		if r.Err() == nil && g.values > 0 {
			if form == formInline {
				from := r.Offset()
				index.ReadKeys(r, x.enc, g.values, maxKeys, func(int, []byte) {})
				g.set = root[from:r.Offset()]
			} else {
				g.unit = index.ReadUnit(r, x.bodySize, maxSet)
			}
		}
		if r.Err() != nil {
			return
		}
		at += g.Rows
		x.groups = append(x.groups, g)
	}
	if at != x.rows {
		r.Fail("row groups hold %d rows, the artifact %d", at, x.rows)
	}
}

func (x *reader) readGroup(r *bytescan.Reader, at uint32) group {
	rows, nulls, nans := r.Uvarint(), r.Uvarint(), uint64(0)
	if x.enc.Kind.Floating() && !x.ofList {
		nans = r.Uvarint()
	}
	if r.Err() == nil && (rows == 0 || rows > uint64(x.rows-at) || nulls > rows || nans > rows-nulls) {
		r.Fail("row group of %d rows, %d nulls, %d NaNs at row %d of %d", rows, nulls, nans, at, x.rows)
	}
	if r.Err() != nil {
		return group{}
	}
	g := group{Granule: index.Granule{Start: at, Rows: uint32(rows), Nulls: uint32(nulls), NaNs: uint32(nans)}}
	if !g.Values() && !x.ofList {
		return g
	}
	listed := r.Count(maxCap+1, 0)
	if g.tooMany = listed == 0; !g.tooMany {
		g.values = listed - 1
	}
	if !x.ofList && !g.tooMany && g.values == 0 {
		r.Fail("no values in a row group of %d rows, %d nulls, %d NaNs", rows, nulls, nans)
	}
	return g
}

// Probe answers from the root, then from the sets of the row groups that it leaves in doubt: one wave.
func (x *reader) Probe(leaf *predicate.Leaf) index.Probe {
	test := leaf // of a value
	if x.ofList && leaf.Op == predicate.Contains {
		test = index.EqualElement(leaf)
	}
	ask, ok := index.Asked(test, x.enc)
	if !ok || x.ofList != (leaf.Op == predicate.Contains) {
		return index.Settled(rowset.Maybe(x.rows))
	}
	p := &probe{reader: x, leaf: leaf, test: test, ask: ask, some: make([]bool, len(x.groups)), all: make([]bool, len(x.groups))}
	for i := range x.groups {
		g := &x.groups[i]
		if p.some[i] = len(ask.In) > 0 && (g.values > 0 || g.tooMany); p.some[i] && g.set != nil {
			p.take(i, bytescan.NewReader(name+" set", g.set))
		}
	}
	p.verdict = p.judge()
	unsure, size := p.verdict.Unsure(), int64(0)
	for i := range x.groups {
		g := &x.groups[i]
		if !p.some[i] || g.values == 0 || g.set != nil || !unsure.Intersects(g.Range()) {
			continue
		}
		if size += g.unit.Len; size > maxProbe {
			break
		}
		p.wanted, p.wave = append(p.wanted, i), append(p.wave, g.unit)
	}
	return p
}

type probe struct {
	*reader
	leaf      *predicate.Leaf
	test      *predicate.Leaf // the leaf, or what it asks of an element
	ask       index.Ask
	some, all []bool // per row group: the leaf may be true of some of its values, is true of all
	wanted    []int  // row groups of the wave
	wave      index.Wave
	verdict   rowset.Verdict
}

// take tries every value of a row group's set.
func (p *probe) take(i int, r *bytescan.Reader) {
	n, hits := p.groups[i].values, 0
	holds := p.ask.HoldsInOrder(p.test)
	index.ReadKeys(r, p.enc, n, maxKeys, func(_ int, key []byte) {
		if holds(key) {
			hits++
		}
	})
	p.some[i], p.all[i] = hits > 0, hits == n
}

func (p *probe) judge() rowset.Verdict {
	var t index.Tally
	for i := range p.groups {
		if p.ofList {
			t.AddLists(p.groups[i].Granule, p.some[i])
		} else {
			t.Add(p.groups[i].Granule, p.some[i], p.all[i])
		}
	}
	return index.Sign(p.leaf, t.Known(p.rows))
}

func (p *probe) Need() []index.Span { return p.wave.Spans() }

func (p *probe) Verdict() rowset.Verdict { return p.verdict }

func (p *probe) Feed(data [][]byte) error {
	wave := p.wave
	p.verdict, p.wave = rowset.Maybe(p.rows), nil
	if err := wave.Check(name+" set", data); err != nil {
		return err
	}
	for j, i := range p.wanted {
		r := bytescan.NewReader(name+" set", data[j])
		p.take(i, r)
		if err := r.Done(); err != nil {
			return err
		}
	}
	p.verdict = p.judge()
	return nil
}
