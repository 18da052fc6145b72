package bitmap

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Merge unites the dictionaries of all sources and the row sets of equal values, sent through the map: those of sources whose rows all stay
// together are copied as pieces, unless they are small. "Too many" in one source is too many for all. It holds a dictionary page of each
// source, the row sets of one value, and what a reader holds of each root.
func (k Kind) Merge(spec index.Spec, sources []index.Source, m *index.OrdinalMap, _ index.Budget, body index.Sink) ([]byte, string, error) {
	enc, err := index.Mergeable(name, &spec, sources, m, index.OneColumnOrElement)
	if err != nil {
		return nil, "", err
	}
	values, err := valueCap(spec.Params)
	if err != nil {
		return nil, "", err
	}
	x := &merger{layout: layout{sizes: k.orDefault(), enc: enc, ofList: index.OfList(spec.Columns[0]), rows: spec.Rows}, sources: sources, m: m, along: m.Stretches(), of: make([]int, len(sources))}
	defer x.close()
	if reason, err := x.open(); reason != "" || err != nil {
		return nil, reason, err
	}
	if m.Identity() {
		return x.copyWhole(body)
	}
	tooMany, reason, err := x.fits(values)
	if reason != "" || err != nil {
		return nil, reason, err
	}
	return x.write(body, tooMany)
}

type merger struct {
	layout
	sources []index.Source
	m       *index.OrdinalMap
	readers []*reader
	values  []*dictionary
	sets    []*index.Ahead    // of the sources
	along   [][]index.Stretch // the map, unless it is none of few long stretches
	of      []int             // by source: one more than its place among those that hold the value at hand
	out     setWriter
}

func (x *merger) open() (reason string, err error) {
	x.readers, x.enc, reason, err = index.OpenSources(name, x.sources, x.enc, open, func(r *reader) (index.Encoding, int64) { return r.enc, r.bodySize })
	for i, r := range x.readers {
		if r.ofList != x.ofList {
			return "an artifact is of lists and another of values", nil
		}
		x.sets = append(x.sets, index.NewAhead(&x.sources[i]))
		x.values = append(x.values, &dictionary{reader: r, from: &x.sources[i], source: i})
	}
	return reason, err
}

func (x *merger) close() {
	for _, a := range x.sets {
		a.Close()
	}
}

// copyWhole copies an artifact whose rows stay where they are.
func (x *merger) copyWhole(body index.Sink) ([]byte, string, error) {
	var units []index.Unit
	r := x.readers[0]
	err := x.eachKey(func(_ []byte, of []held) error {
		units = append(units, of[0].rows.unit)
		return nil
	})
	units = append(units, r.nulls.Unit, r.nans.Unit)
	for _, p := range r.pages {
		units = append(units, p.unit)
	}
	if err != nil {
		return nil, "", err
	}
	return slices.Clone(x.sources[0].Root), "", index.CopyUnits(name, &x.sources[0], units, body)
}

// fits tells whether the values are too many together. Where rows are gone, values may be gone with them: then only the data knows.
func (x *merger) fits(values int) (tooMany bool, reason string, err error) {
	gone := false
	for i, r := range x.readers {
		tooMany = tooMany || r.tooMany
		gone = gone || x.m.Kept(i, rowset.Range{End: r.rows}) < r.rows
	}
	if tooMany {
		return true, "", nil
	}
	n, size := 0, 0
	err = x.eachKey(func(key []byte, _ []held) error {
		n, size = n+1, size+len(key)
		return nil
	})
	if n <= values && size <= byteCap(values) || err != nil {
		return false, "", err
	}
	if gone {
		return false, fmt.Sprintf("its artifacts have %d values together, above the cap of %d, and some rows are gone", n, values), nil
	}
	return true, "", nil
}

func (x *merger) write(body index.Sink, tooMany bool) ([]byte, string, error) {
	var sets []valueRows
	reason := ""
	if !tooMany {
		err := x.eachKey(func(key []byte, of []held) error {
			rows, err := x.rowsOf(of)
			if err != nil || rows.count == 0 || reason != "" {
				return err
			}
			if rows.size() > maxRowSet-2*maxChunk {
				reason = "a value has more scattered rows than one row set may hold"
				return nil
			}
			x.layout.pieces = rows.inPieces() || x.layout.pieces
			v, err := x.layout.write(body, string(key), rows.count, rows.append)
			sets = append(sets, v)
			return err
		})
		if reason != "" || err != nil {
			return nil, reason, err
		}
	}
	rest, without := &bytescan.Writer{}, int64(0)
	kinds := []func(*reader) index.Unordered{func(r *reader) index.Unordered { return r.nulls }, func(r *reader) index.Unordered { return r.nans }}
	if !x.hasNaNs() {
		kinds = kinds[:1]
	}
	for _, of := range kinds {
		list := make([]index.Unordered, len(x.readers))
		for i, r := range x.readers {
			list[i] = of(r)
		}
		merged, reason, err := index.MergeUnordered(name, x.sources, x.m, list)
		if reason != "" || err != nil {
			return nil, reason, err
		}
		n, err := merged.Write(rest, body, x.rows)
		if err != nil {
			return nil, "", err
		}
		without += n
	}
	return x.seal(body, rest, without, sets, tooMany)
}

// rowsOf is the new rows of a value: copied and spliced, or written as they come while these ascend, else gathered first.
func (x *merger) rowsOf(of []held) (*setWriter, error) {
	out, end := &x.out, uint32(0)
	out.reset()
	if x.along != nil {
		return out, x.splice(of)
	}
	var gathered *index.Rows
	visit := func(_, to rowset.Range) {
		if gathered == nil && to.Start < end {
			gathered = index.NewRows(x.rows)
		}
		if gathered == nil {
			out.add(to)
		}
		end = to.End
	}
	if err := x.eachRun(of, visit); err != nil || gathered == nil {
		return out, err
	}
	if err := x.eachRun(of, func(_, to rowset.Range) { gathered.Add(to) }); err != nil {
		return nil, err
	}
	out.reset()
	for _, r := range gathered.Set().Ranges() {
		out.add(r)
	}
	return out, nil
}

// splice writes the new rows of a value stretch by stretch.
func (x *merger) splice(of []held) error {
	clear(x.of)
	for i := range of {
		x.of[of[i].source] = i + 1
	}
	for _, along := range x.along {
		i := x.of[along[0].Source]
		if i == 0 {
			continue
		}
		h := &of[i-1]
		all := x.readers[h.source].rows
		if h.rows.count == all {
			for _, m := range along {
				x.out.add(rowset.Range{Start: m.To, End: m.To + m.Old.Len()})
			}
			continue
		}
		b, err := x.sets[h.source].Unit(name+" row set", h.rows.unit)
		if err != nil {
			return err
		}
		if err := x.out.splice(b, all, h.rows.count, along, x.sizes.copied); err != nil {
			return err
		}
	}
	return nil
}

// eachRun visits the new rows of a value, source by source.
func (x *merger) eachRun(of []held, visit func(_, to rowset.Range)) error {
	for _, h := range of {
		all := x.readers[h.source].rows
		if h.rows.count == all {
			x.m.Each(h.source, rowset.Range{End: all}, visit)
			continue
		}
		b, err := x.sets[h.source].Unit(name+" row set", h.rows.unit)
		if err != nil {
			return err
		}
		if err := h.rows.visit(b, all, func(old rowset.Range) { x.m.Each(h.source, old, visit) }); err != nil {
			return err
		}
	}
	return nil
}

// held is the rows of a value in one source.
type held struct {
	source int
	rows   rowSet
}

// eachKey visits the values of all sources in key order. The key is a view that the next one ends.
func (x *merger) eachKey(visit func(key []byte, of []held) error) error {
	heads := make([]*dictionary, 0, len(x.values))
	for _, d := range x.values {
		ok, err := d.start()
		if err != nil {
			return err
		}
		if ok {
			heads = append(heads, d)
		}
	}
	var of []held
	var key []byte
	for len(heads) > 0 {
		least := heads[0].key()
		for _, d := range heads[1:] {
			if k := d.key(); bytes.Compare(k, least) < 0 {
				least = k
			}
		}
		key = append(key[:0], least...)
		of = of[:0]
		left := 0
		for i, d := range heads {
			if bytes.Equal(d.key(), key) {
				of = append(of, held{d.source, d.rows[d.at]})
				ok, err := d.next()
				if err != nil {
					return err
				}
				if !ok {
					continue
				}
			}
			if left < i {
				heads[left] = d
			}
			left++
		}
		heads = heads[:left]
		if err := visit(key, of); err != nil {
			return err
		}
	}
	return nil
}

// dictionary reads the values of a source in order, page by page.
type dictionary struct {
	*reader
	from   *index.Source
	source int
	page   int // the next one
	at     int
	keys   []byte // of the page
	ends   []int  // where each of them ends
	rows   []rowSet
	unit   []byte
	last   []byte
}

// key is a view that the next page ends.
func (d *dictionary) key() []byte {
	from := 0
	if d.at > 0 {
		from = d.ends[d.at-1]
	}
	return d.keys[from:d.ends[d.at]]
}

// start moves to the first value; ok is false where there is none.
func (d *dictionary) start() (ok bool, err error) {
	if d.at = 0; d.page == 1 {
		return len(d.ends) > 0, nil // its page is at hand
	}
	d.page = 0
	return d.nextPage()
}

// next moves to the next value; ok is false after the last.
func (d *dictionary) next() (ok bool, err error) {
	if d.at++; d.at < len(d.ends) {
		return true, nil
	}
	d.at--
	d.last = append(d.last[:0], d.key()...)
	if ok, err = d.nextPage(); ok && bytes.Compare(d.key(), d.last) <= 0 {
		return false, index.Broken(name+" page", "page %d does not go on after the one before", d.page-1)
	}
	return ok, err
}

func (d *dictionary) nextPage() (ok bool, err error) {
	r, n := (*bytescan.Reader)(nil), 0
	switch {
	case d.inline != nil && d.page == 0:
		r, n = bytescan.NewReader(name+" dictionary", d.inline), d.values
	case d.page < len(d.pages):
		p := d.pages[d.page]
		if d.unit, err = d.from.Unit(name+" page", p.unit, d.unit); err != nil {
			return false, err
		}
		r, n = bytescan.NewReader(name+" page", d.unit), p.values
	default:
		return false, nil
	}
	d.page++
	d.at, d.rows, d.keys, d.ends = 0, slices.Grow(d.rows[:0], n), slices.Grow(d.keys[:0], r.Left()), slices.Grow(d.ends[:0], n)
	d.readPage(r, n, func(key []byte) bool {
		d.keys = append(d.keys, key...)
		d.ends = append(d.ends, len(d.keys))
		return true
	}, func(s rowSet, _ bool) { d.rows = append(d.rows, s) })
	return len(d.ends) > 0, r.Done()
}
