package zonemap

import (
	"bytes"
	"sort"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Open parses a root of at most 4 MiB, into at most 32 MiB.
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
	out := &reader{rows: rows, enc: enc, bodySize: index.ReadSize(r)}
	out.readGroups(r)
	switch form := r.U8(); form {
	case 0:
		if len(root) > inlineRoot {
			r.Fail("%d bytes with pages inside, above the limit of %d", len(root), inlineRoot)
		}
		out.readInline(r)
	case 1:
		out.readDirectory(r)
	default:
		r.Fail("page form %d is none", form)
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return out, nil
}

type reader struct {
	rows     uint32
	enc      index.Encoding
	bodySize int64
	groups   []opened
}

// opened is a row group as its root describes it. Of pages and blocks at most one is set.
type opened struct {
	zone
	count  int // pages
	pages  []zone
	blocks []block
}

type block struct {
	unit  index.Unit
	pages int
}

func (o *opened) end() uint32 { return o.start + o.rows }

func (x *reader) readGroups(r *bytescan.Reader) {
	at := uint32(0)
	n := r.Count(index.MaxRowGroups, 3)
	x.groups = make([]opened, 0, n)
	for range n {
		g := opened{zone: readZone(r, x.enc, at, x.rows)}
		pages := r.Uvarint()
		if pages == 0 || pages > uint64(g.rows) {
			r.Fail("row group of %d rows and %d pages", g.rows, pages)
		}
		if r.Err() != nil {
			return
		}
		g.count, at = int(pages), g.end()
		x.groups = append(x.groups, g)
	}
	if at != x.rows {
		r.Fail("row groups hold %d rows, the artifact %d", at, x.rows)
	}
}

func (x *reader) readInline(r *bytescan.Reader) {
	for i := range x.groups {
		if g := &x.groups[i]; g.count > 1 {
			g.pages = readPages(r, x.enc, g.count, g.start, g.end())
			if last := len(g.pages) - 1; r.Err() == nil && g.pages[last].start+g.pages[last].rows != g.end() {
				r.Fail("pages of the row group at row %d leave rows out", g.start)
			}
		}
	}
}

// readPages reads n zones that follow each other from row start and end by row end.
func readPages(r *bytescan.Reader, e index.Encoding, n int, start, end uint32) []zone {
	out := make([]zone, 0, min(n, r.Left()/2+1))
	for range n {
		z := readZone(r, e, start, end)
		if r.Err() != nil {
			return nil
		}
		out, start = append(out, z), start+z.rows
	}
	return out
}

func (x *reader) readDirectory(r *bytescan.Reader) {
	for i := range x.groups {
		g := &x.groups[i]
		if g.count == 1 {
			continue
		}
		left := g.count
		blocks := r.Count(g.count, 7)
		g.blocks = make([]block, 0, blocks)
		for range blocks {
			n := r.Count(left, 0)
			g.blocks = append(g.blocks, block{unit: index.ReadUnit(r, x.bodySize, maxBlock), pages: n})
			left -= n
		}
		if r.Err() == nil && left != 0 {
			r.Fail("row group at row %d has %d pages outside its blocks", g.start, left)
		}
		if r.Err() != nil {
			return
		}
	}
}

// Probe answers from the root, then from the page blocks of the row groups that it leaves in doubt.
func (x *reader) Probe(leaf *predicate.Leaf) index.Probe {
	ask, ok := index.Asked(leaf, x.enc)
	if !ok {
		return index.Settled(rowset.Maybe(x.rows))
	}
	p := &probe{reader: x, leaf: leaf, ask: ask}
	var t tally
	for i := range x.groups {
		g := &x.groups[i]
		if g.pages == nil {
			t.add(&g.zone, &ask)
		}
		for j := range g.pages {
			t.add(&g.pages[j], &ask)
		}
	}
	p.verdict = index.Sign(leaf, t.Known(x.rows))
	unsure := p.verdict.Unsure()
	for i := range x.groups {
		g := &x.groups[i]
		if len(g.blocks) > 0 && unsure.Intersects(rowset.Range{Start: g.start, End: g.end()}) {
			p.doubt = append(p.doubt, i)
			for _, b := range g.blocks {
				p.wave = append(p.wave, b.unit)
			}
		}
	}
	return p
}

type probe struct {
	*reader
	leaf    *predicate.Leaf
	ask     index.Ask
	verdict rowset.Verdict
	doubt   []int // row groups whose blocks are wanted
	wave    index.Wave
}

func (p *probe) Need() []index.Span { return p.wave.Spans() }

func (p *probe) Verdict() rowset.Verdict { return p.verdict }

func (p *probe) Feed(data [][]byte) error {
	coarse, wave := p.verdict, p.wave
	p.verdict, p.wave = rowset.Maybe(p.rows), nil
	if err := wave.Check(name+" block", data); err != nil {
		return err
	}
	var t tally
	for i, next := 0, 0; i < len(p.groups); i++ {
		g := &p.groups[i]
		if next == len(p.doubt) || p.doubt[next] != i {
			t.add(&g.zone, &p.ask)
			continue
		}
		next++
		if err := t.addBlocks(g, p.enc, data[:len(g.blocks)], &p.ask); err != nil {
			return err
		}
		data = data[len(g.blocks):]
	}
	p.verdict = rowset.Tighten(coarse, index.Sign(p.leaf, t.Known(p.rows)))
	return nil
}

// tally judges zones.
type tally struct{ index.Tally }

func (t *tally) addBlocks(g *opened, e index.Encoding, data [][]byte, ask *index.Ask) error {
	at := g.start
	for i, b := range g.blocks {
		r := bytescan.NewReader(name+" block", data[i])
		for _, z := range readPages(r, e, b.pages, at, g.end()) {
			t.add(&z, ask)
			at += z.rows
		}
		if err := r.Done(); err != nil {
			return err
		}
	}
	if at != g.end() {
		return index.Broken(name+" block", "pages end at row %d, their row group at %d", at, g.end())
	}
	return nil
}

func (t *tally) add(z *zone, ask *index.Ask) {
	some, all := z.match(ask)
	t.Add(index.Granule{Start: z.start, Rows: z.rows, Nulls: z.nulls, NaNs: z.nans}, some, all)
}

// match reports whether some and whether all of the granule's values, nulls and NaNs apart, lie in what is asked.
func (z *zone) match(ask *index.Ask) (some, all bool) {
	if !z.values() {
		return false, false
	}
	i := sort.Search(len(ask.In), func(i int) bool { return !z.above(&ask.In[i]) })
	if i == len(ask.In) || z.below(&ask.In[i]) {
		return false, false
	}
	return true, ask.Exact && z.within(&ask.In[i])
}

// above reports that every value lies above the interval. A cut min is less than every value.
func (z *zone) above(iv *index.Interval) bool {
	return iv.Above(z.min) || z.flags&flagMinCut != 0 && !iv.NoHi && bytes.Equal(z.min, iv.Hi)
}

// below reports that every value lies below the interval. A cut max is greater than every value.
func (z *zone) below(iv *index.Interval) bool {
	if z.flags&flagMaxNone != 0 {
		return false
	}
	return iv.Below(z.max) || z.flags&flagMaxCut != 0 && bytes.Equal(z.max, iv.Lo)
}

// within reports that every value lies in the interval.
func (z *zone) within(iv *index.Interval) bool {
	c := bytes.Compare(z.min, iv.Lo)
	low := c > 0 || c == 0 && (!iv.LoOpen || z.flags&flagMinCut != 0)
	if !low || iv.NoHi {
		return low
	}
	if z.flags&flagMaxNone != 0 {
		return false
	}
	c = bytes.Compare(z.max, iv.Hi)
	return c < 0 || c == 0 && (!iv.HiOpen || z.flags&flagMaxCut != 0)
}
