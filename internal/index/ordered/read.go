package ordered

import (
	"bytes"
	"slices"
	"sort"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Open parses a root of at most 2 MiB, into at most 28 MiB.
func (Kind) Open(root []byte, rows uint32) (index.Reader, error) {
	x, err := open(root, rows)
	if err != nil {
		return nil, err
	}
	return x, nil
}

func open(root []byte, rows uint32) (*reader, error) {
	x := &reader{rows: rows}
	r, err := x.start(root)
	if err != nil {
		return nil, err
	}
	if n := r.Uvarint(); r.Err() == nil && n != uint64(rows) {
		r.Fail("covers %d rows, asked to cover %d", n, rows)
	}
	x.bodySize = index.ReadSize(r)
	x.nulls = index.ReadUnordered(r, rows, x.bodySize)
	if x.enc.Kind.Floating() {
		x.nans = index.ReadUnordered(r, rows, x.bodySize)
	}
	if uint64(x.nulls.Count)+uint64(x.nans.Count) < uint64(rows) {
		x.readTop(r)
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return x, nil
}

// start reads the version and the encodings.
func (x *reader) start(root []byte) (r *bytescan.Reader, err error) {
	if len(root) == 0 || root[0] != versionTuples {
		r, x.enc, err = index.OpenRoot(name, root, version, maxRoot)
		return r, err
	}
	r = bytescan.NewReader(name+" root", root)
	if len(root) > maxRoot {
		r.Fail("%d bytes, above the limit of %d", len(root), maxRoot)
	}
	x.enc, x.parts = tupleEncoding, readParts(r)
	return r, nil
}

type reader struct {
	rows        uint32
	parts       []part // of tuples; nil: keys are values of one column
	enc         index.Encoding
	bodySize    int64
	nulls, nans index.Unordered
	last        []byte // the greatest key
	dataBytes   int64
	level       uint8
	top         directory // empty: no row has a key
}

func (x *reader) readTop(r *bytescan.Reader) {
	x.last = r.Blob(max(maxKey+1, x.enc.Size()))
	x.dataBytes = index.ReadSize(r)
	limit := int64(maxBlock)
	switch x.level = r.U8(); x.level {
	case levelBlocks:
	case levelPages:
		limit = maxPage
	default:
		r.Fail("directory level %d is none", x.level)
	}
	if r.Err() == nil && x.dataBytes > x.bodySize {
		r.Fail("%d data bytes in a body of %d", x.dataBytes, x.bodySize)
	}
	x.top = readDirectory(r, x.bodySize, limit)
}

// cutInterval is an interval of stored keys. At an end that was cut (a literal longer than stored keys) the stored key of that value may or
// may not match.
func cutInterval(iv index.Interval) index.Interval {
	if len(iv.Lo) > maxKey {
		iv.Lo, iv.LoOpen = cutKey(iv.Lo), false
	}
	if len(iv.Hi) > maxKey {
		iv.Hi, iv.HiOpen = cutKey(iv.Hi), false
	}
	return iv
}

// unsure reports whether a stored key inside the interval may stand for values outside it: it was cut, as the end that equals it was.
func unsure(iv *index.Interval, key []byte) bool {
	return len(key) > maxKey && (bytes.Equal(key, iv.Lo) || bytes.Equal(key, iv.Hi))
}

// inBounds cuts the intervals and drops those that no key of the artifact lies in. Where there is nothing to cut the result is a part of in,
// which probes of many artifacts share.
func (x *reader) inBounds(in []index.Interval) []index.Interval {
	if len(x.top) == 0 {
		return nil
	}
	from := sort.Search(len(in), func(i int) bool { c := cutInterval(in[i]); return !c.Above(x.top[0].sep) })
	to := sort.Search(len(in), func(i int) bool { c := cutInterval(in[i]); return c.Below(x.last) })
	in = in[from:max(from, to)]
	if slices.ContainsFunc(in, func(iv index.Interval) bool { return len(iv.Lo) > maxKey || len(iv.Hi) > maxKey }) {
		in = slices.Clone(in)
		for i := range in {
			in[i] = cutInterval(in[i])
		}
	}
	return in
}

// complement is the keys outside one interval.
func complement(iv index.Interval) []index.Interval {
	var out []index.Interval
	if len(iv.Lo) > 0 || iv.LoOpen {
		out = append(out, index.Interval{Hi: iv.Lo, HiOpen: !iv.LoOpen})
	}
	if !iv.NoHi {
		out = append(out, index.Interval{Lo: iv.Hi, LoOpen: !iv.HiOpen, NoHi: true})
	}
	return out
}

// locate returns the positions of the entries that may hold keys of the intervals, ascending. end is the separator after the last
// entry, nil when nothing follows; endContinued: keys equal to it may lie in the last entry too.
func (d directory) locate(intervals []index.Interval, end []byte, endContinued bool) []int {
	var out []int
	next := 0
	for len(intervals) > 0 && next < len(d) {
		// those before the next entry lie in entries that were found
		intervals = intervals[sort.Search(len(intervals), func(i int) bool { return !intervals[i].Above(d[next].sep) }):]
		if len(intervals) == 0 {
			break
		}
		iv := &intervals[0]
		if c := bytes.Compare(iv.Lo, end); end != nil && (c > 0 || c == 0 && !endContinued) {
			break
		}
		from := sort.Search(len(d), func(i int) bool { return bytes.Compare(d[i].sep, iv.Lo) > 0 }) - 1
		for from > 0 && d[from].continued && bytes.Equal(d[from].sep, iv.Lo) {
			from--
		}
		for j := max(from, next); j < len(d) && (j <= from || !iv.Above(d[j].sep)); j++ {
			out, next = append(out, j), j+1
		}
		intervals = intervals[1:]
	}
	return out
}

// ProbeAll answers a conjunction in at most two waves.
func (x *reader) ProbeAll(leaves []*predicate.Leaf) index.Probe {
	if len(x.parts) > 0 {
		return x.probeTuples(leaves)
	}
	var in []index.Interval
	sure, used := true, ranges(leaves[0].Column.ID(), leaves)
	for i, l := range used {
		ask, ok := index.Asked(l, x.enc)
		switch {
		case !ok:
			return index.Settled(rowset.Maybe(x.rows))
		case i == 0:
			in = ask.In
		default:
			in = index.Common(in, ask.In)
		}
		sure = sure && ask.Exact
	}
	if len(used) == 0 {
		return index.Settled(rowset.Maybe(x.rows))
	}
	return x.probeKeys(in, sure && len(used) == len(leaves))
}

// probeTuples looks up the tuples that leaves leave.
func (x *reader) probeTuples(leaves []*predicate.Leaf) index.Probe {
	c := conjunctionOf(leaves, x.parts)
	if len(c.used) == 0 {
		return index.Settled(rowset.Maybe(x.rows))
	}
	return x.probeKeys(c.in, c.sure && len(c.used) == len(leaves))
}

// probeKeys finds the rows whose keys lie in intervals; exact: those rows match for certain.
func (x *reader) probeKeys(in []index.Interval, exact bool) index.Probe {
	p := &probe{
		reader: x, exact: exact, null: x.nulls.Known(x.rows), nan: x.nans.Known(x.rows),
		may: index.NewRows(x.rows), unsure: index.NewRows(x.rows),
	}
	p.side = x.side(in)
	p.capped = p.least > maxProbe
	p.firstWave()
	return p
}

// Probe answers in at most two waves: directory pages with null and NaN rows, then blocks.
func (x *reader) Probe(leaf *predicate.Leaf) index.Probe {
	if len(x.parts) > 0 {
		return x.probeTuples([]*predicate.Leaf{leaf})
	}
	ask, ok := index.Asked(leaf, x.enc)
	if !ok {
		return index.Settled(rowset.Maybe(x.rows))
	}
	p := &probe{
		reader: x, leaf: leaf, exact: ask.Exact, null: x.nulls.Known(x.rows), nan: x.nans.Known(x.rows),
		may: index.NewRows(x.rows), unsure: index.NewRows(x.rows),
	}
	sqlNot := leaf.Negated && leaf.Dialect == predicate.SQL
	switch leaf.Op {
	case predicate.IsNull:
		p.wantNull = true
	case predicate.IsNaN:
		p.wantNaN, p.wantNull = true, sqlNot
	default:
		p.wantNull, p.wantNaN = sqlNot, index.PassesNaN(leaf)
		p.choose(ask)
	}
	p.wantNull, p.wantNaN = p.wantNull && x.nulls.Readable(), p.wantNaN && x.nans.Readable()
	p.firstWave()
	return p
}

// side is the keys to read: those asked for or all others.
type side struct {
	intervals []index.Interval
	entries   []int // of the root's directory
	bytes     int64 // of blocks; where the entries are pages an estimate
	least     int64 // of blocks that surely lie in it, in pages that do
}

func (x *reader) side(in []index.Interval) side {
	s := side{intervals: x.inBounds(in)}
	s.entries = x.top.locate(s.intervals, nil, false)
	for _, i := range s.entries {
		s.bytes += x.top[i].unit.Len
	}
	s.least = s.bytes
	if x.level == levelPages {
		page, inside := float64(x.dataBytes)/float64(len(x.top)), x.pagesInside(s)
		s.bytes = int64(page * float64(len(s.entries)+inside) / 2)
		s.least = int64(page * float64(inside))
	}
	return s
}

// pagesInside counts the pages all of whose keys lie in a range of the side. Lists of points have none.
func (x *reader) pagesInside(s side) int {
	n := 0
	for _, i := range s.entries {
		end := x.last
		if i+1 < len(x.top) {
			end = x.top[i+1].sep
		}
		for j := range s.intervals[:min(len(s.intervals), 2)] {
			if iv := &s.intervals[j]; !iv.Below(x.top[i].sep) && !iv.Above(end) {
				n++
				break
			}
		}
	}
	return n
}

// choose picks the cheaper side: the keys asked for, or all the others together with the null and NaN rows.
func (p *probe) choose(ask index.Ask) {
	p.side = p.reader.side(ask.In)
	if len(ask.In) == 1 && !ask.In[0].Point() {
		other, extra := p.reader.side(complement(ask.In[0])), int64(0)
		kept := true
		for _, s := range []index.Unordered{p.nulls, p.nans} {
			extra += s.Unit.Len
			kept = kept && (s.Readable() || s.Count == 0 || s.Count == p.rows)
		}
		if kept && other.bytes+extra < p.side.bytes {
			p.side, p.others, p.wantNull, p.wantNaN = other, true, true, true
		}
	}
	p.capped = p.least > maxProbe
}

type probe struct {
	*reader
	leaf *predicate.Leaf // nil: the verdict is about the keys in the side
	side
	others            bool // the side is the keys that do not match
	exact             bool // a key in the intervals asked for matches for certain
	capped            bool // too many blocks: nothing is known of keys
	wantNull, wantNaN bool

	wave    index.Wave
	pages   []int // entries of the root whose directory pages are in the wave
	done    bool
	failed  bool
	null    rowset.Verdict
	nan     rowset.Verdict
	numbers []numbers // the intervals of the side, where keys are numeric: numbers of eight bytes
	numeric bool
	may     *index.Rows // rows of keys in the side
	unsure  *index.Rows // those of them whose key is cut
	verdict *rowset.Verdict
}

func (p *probe) firstWave() {
	if p.wantNull {
		p.wave = append(p.wave, p.nulls.Unit)
	}
	if p.wantNaN {
		p.wave = append(p.wave, p.nans.Unit)
	}
	if !p.capped {
		for _, i := range p.entries {
			p.wave = append(p.wave, p.top[i].unit)
		}
		if p.level == levelPages {
			p.pages = p.entries
		}
	}
	p.done = len(p.wave) == 0
}

func (p *probe) Need() []index.Span { return p.wave.Spans() }

// Entries is about how many rows a range takes, by its part of the bytes of all blocks. Of single values it is what their blocks hold besides, and
// not counted.
func (p *probe) Entries() int64 {
	if p.dataBytes == 0 || len(p.intervals) == 0 || p.intervals[0].Point() {
		return 0
	}
	return int64(float64(p.least) / float64(p.dataBytes) * float64(p.rows))
}

func (p *probe) Feed(data [][]byte) error {
	wave := p.wave
	p.wave = nil
	err := wave.Check(name, data)
	if err == nil {
		err = p.take(data)
	}
	p.failed, p.done = err != nil, len(p.wave) == 0
	return err
}

// take parses a wave: null rows, NaN rows, then directory pages or blocks.
func (p *probe) take(data [][]byte) (err error) {
	if p.wantNull {
		p.null, data, err = p.takeRows(&p.nulls, data)
	}
	if p.wantNaN && err == nil {
		p.nan, data, err = p.takeRows(&p.nans, data)
	}
	if err != nil {
		return err
	}
	p.wantNull, p.wantNaN = false, false
	if len(p.pages) > 0 {
		return p.takePages(data)
	}
	if p.enc.Narrow() && p.enc.Size() == 8 {
		p.numbers, p.numeric = numbersOf(p.intervals)
	}
	for _, b := range data {
		if err := p.takeBlock(b); err != nil {
			return err
		}
	}
	return nil
}

func (p *probe) takeRows(u *index.Unordered, data [][]byte) (rowset.Verdict, [][]byte, error) {
	rows, err := u.Rows(name, data[0], p.rows)
	return rowset.Exactly(rows), data[1:], err
}

func (p *probe) takePages(data [][]byte) error {
	size := int64(0)
	for i, at := range p.pages {
		r := bytescan.NewReader(name+" directory page", data[i])
		d := readDirectory(r, p.bodySize, maxBlock)
		if err := r.Done(); err != nil {
			return err
		}
		var end []byte
		continued := false
		if at+1 < len(p.top) {
			end, continued = p.top[at+1].sep, p.top[at+1].continued
		}
		for _, j := range d.locate(p.intervals, end, continued) {
			p.wave = append(p.wave, d[j].unit)
			size += d[j].unit.Len
		}
		if size > maxProbe {
			p.capped, p.wave = true, nil
			break
		}
	}
	p.pages, p.least = nil, max(p.least, size-2*maxBlock)
	return nil
}

// Verdict is Maybe until the last wave was fed.
func (p *probe) Verdict() rowset.Verdict {
	if !p.done || p.failed {
		return rowset.Maybe(p.rows)
	}
	if p.verdict == nil {
		isTrue := p.isTrue()
		if p.leaf == nil {
			p.verdict = &isTrue
			return isTrue
		}
		v := index.Sign(p.leaf, index.Known{True: isTrue, False: index.FalseOf(isTrue, p.null), Null: p.null, NaN: p.nan})
		p.verdict = &v
	}
	return *p.verdict
}

// isTrue is where the unsigned leaf is true.
func (p *probe) isTrue() rowset.Verdict {
	if p.capped {
		return rowset.Maybe(p.rows)
	}
	may := p.may.Set()
	v := rowset.Verdict{Must: rowset.AndNot(may, p.unsure.Set()), May: may}
	if p.others {
		outside := rowset.Either(rowset.Either(p.null, p.nan), v)
		v = rowset.Negate(outside, rowset.All(p.rows))
	}
	if !p.exact {
		v.Must = rowset.None(p.rows)
	}
	return v
}
