package ngram

import (
	"cmp"
	"slices"

	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// probe looks the trigrams of a query up and then reads the postings that narrow it most.
type probe struct {
	*reader
	leaf  *predicate.Leaf
	query query

	looking []int // dictionary blocks in the wave
	looked  map[int]bool
	found   map[uint32]entry
	reading []entry // postings in the wave
	size    int64   // of their bytes
	sets    map[uint32]*rowset.Set
	wave    index.Wave
	verdict rowset.Verdict
}

// start asks for the dictionary blocks of the query's trigrams.
func (p *probe) start() {
	p.verdict = rowset.Maybe(p.rows)
	if p.query.op == all {
		return
	}
	wanted := map[uint32]bool{}
	p.query.eachGram(func(g uint32) { wanted[g] = true })
	if len(p.blocks) == 0 {
		if err := p.look(p.inside, wanted); err == nil { // it was read when the root was opened
			p.choose()
		}
		return
	}
	p.looked = map[int]bool{}
	for g := range wanted {
		if i := p.block(g); i >= 0 && !p.looked[i] {
			p.looked[i] = true
			p.looking = append(p.looking, i)
		}
	}
	slices.Sort(p.looking)
	if len(p.looking) > maxBlocks {
		for _, i := range p.looking[maxBlocks:] {
			p.looked[i] = false
		}
		p.looking = p.looking[:maxBlocks]
	}
	for _, i := range p.looking {
		p.wave = append(p.wave, p.blocks[i].unit)
	}
	if len(p.wave) == 0 {
		p.choose()
	}
}

// look takes the wanted entries of a dictionary block.
func (p *probe) look(b []byte, wanted map[uint32]bool) error {
	return p.eachEntry(b, func(e entry) {
		if wanted[e.trigram] {
			p.found[e.trigram] = e
		}
	})
}

// absent reports that no row has the trigram, by a dictionary that was read.
func (p *probe) absent(g uint32) bool {
	if _, ok := p.found[g]; ok {
		return false
	}
	if len(p.blocks) == 0 {
		return true
	}
	i := p.block(g)
	return i < 0 || p.looked[i]
}

// choose asks for postings, once the dictionary is known.
func (p *probe) choose() {
	p.want(&p.query)
	p.wave = nil
	for i := range p.reading {
		p.wave = append(p.wave, p.reading[i].unit)
	}
	if len(p.wave) == 0 {
		p.settle()
	}
}

const (
	enough  = 6  // postings of one conjunction
	fewRows = 64 // a posting this short makes all longer ones of its conjunction needless
)

// want asks for the postings that settle a part of the query, or as many as fit, and reports whether the part can narrow anything.
func (p *probe) want(q *query) bool {
	switch q.op {
	case all:
		return false
	case none:
		return true
	case some:
		reading, size := len(p.reading), p.size
		for i := range q.subs {
			if !p.want(&q.subs[i]) {
				p.reading, p.size = p.reading[:reading], size
				*q = query{}
				return false
			}
		}
		return true
	}
	if slices.ContainsFunc(q.grams, p.absent) {
		*q = query{op: none}
		return true
	}
	narrows := p.wantGrams(q)
	for i := range q.subs {
		narrows = p.want(&q.subs[i]) || narrows
	}
	return narrows
}

// wantGrams asks for the shortest postings of a conjunction and forgets its other trigrams.
func (p *probe) wantGrams(q *query) bool {
	entries := make([]entry, 0, len(q.grams))
	for _, g := range q.grams {
		if e, ok := p.found[g]; ok && e.rows > 0 {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Or(cmp.Compare(a.rows, b.rows), cmp.Compare(a.trigram, b.trigram)) })
	q.grams = nil
	for i, e := range entries {
		if i == enough || i > 0 && entries[i-1].rows <= fewRows && e.rows > fewRows {
			break
		}
		if e.inside == nil && !slices.ContainsFunc(p.reading, func(r entry) bool { return r.trigram == e.trigram }) {
			if p.size += e.unit.Len; p.size > maxProbe {
				p.size -= e.unit.Len
				break
			}
			p.reading = append(p.reading, e)
		}
		q.grams = append(q.grams, e.trigram)
	}
	return len(q.grams) > 0
}

func (p *probe) Need() []index.Span { return p.wave.Spans() }

func (p *probe) Verdict() rowset.Verdict { return p.verdict }

func (p *probe) Feed(data [][]byte) error {
	wave := p.wave
	p.wave = nil
	if err := wave.Check(name, data); err != nil {
		return err
	}
	if len(p.looking) > 0 {
		wanted := map[uint32]bool{}
		p.query.eachGram(func(g uint32) { wanted[g] = true })
		for _, b := range data {
			if err := p.look(b, wanted); err != nil {
				return err
			}
		}
		p.looking = nil
		p.choose()
		return nil
	}
	for i, e := range p.reading {
		s, err := readPosting(data[i], p.rows, e.rows)
		if err != nil {
			return err
		}
		p.sets[e.trigram] = s
	}
	p.settle()
	return nil
}

// settle ends the probe: every posting it wants was read.
func (p *probe) settle() {
	may, err := p.rowsOf(&p.query)
	if err != nil {
		return
	}
	unknown := rowset.Maybe(p.rows)
	p.verdict = index.Sign(p.leaf, index.Known{True: rowset.AtMost(may), False: unknown, Null: unknown, NaN: unknown})
}

// rowsOf is the rows that have what the query wants.
func (p *probe) rowsOf(q *query) (*rowset.Set, error) {
	switch q.op {
	case none:
		return rowset.None(p.rows), nil
	case all:
		return rowset.All(p.rows), nil
	}
	var out *rowset.Set
	for _, g := range q.grams {
		s, err := p.rowsWith(g)
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = s
		} else {
			out = rowset.And(out, s)
		}
	}
	for i := range q.subs {
		s, err := p.rowsOf(&q.subs[i])
		switch {
		case err != nil:
			return nil, err
		case out == nil:
			out = s
		case q.op == some:
			out = rowset.Or(out, s)
		default:
			out = rowset.And(out, s)
		}
	}
	if out == nil {
		out = rowset.All(p.rows)
	}
	return out, nil
}

func (p *probe) rowsWith(g uint32) (*rowset.Set, error) {
	if s := p.sets[g]; s != nil {
		return s, nil
	}
	e := p.found[g]
	s, err := readPosting(e.inside, p.rows, e.rows)
	if err == nil {
		p.sets[g] = s
	}
	return s, err
}

// probeNulls answers a null test, from the root or from the null rows.
func (x *reader) probeNulls(leaf *predicate.Leaf) index.Probe {
	p := &nullProbe{reader: x, leaf: leaf, null: x.nulls.Known(x.rows)}
	if x.nulls.Readable() {
		p.wave = index.Wave{x.nulls.Unit}
	}
	return p
}

type nullProbe struct {
	*reader
	leaf *predicate.Leaf
	null rowset.Verdict
	wave index.Wave
}

func (p *nullProbe) Need() []index.Span { return p.wave.Spans() }

func (p *nullProbe) Feed(data [][]byte) error {
	wave := p.wave
	p.wave = nil
	if err := wave.Check(name, data); err != nil {
		return err
	}
	rows, err := p.nulls.Rows(name, data[0], p.rows)
	if err == nil {
		p.null = rowset.Exactly(rows)
	}
	return err
}

func (p *nullProbe) Verdict() rowset.Verdict {
	unknown := rowset.Maybe(p.rows)
	return index.Sign(p.leaf, index.Known{True: unknown, False: unknown, Null: p.null, NaN: unknown})
}
