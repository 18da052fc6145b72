package bitmap

import (
	"fmt"
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Merge unites the dictionaries of all sources and the row sets of equal values, sent through the map: those of sources whose rows all stay
// together are copied as pieces, unless they are small. "Too many" in one source is too many for all. It holds a window of
// 128 KiB and a dictionary page of each source, the row sets of one value, and what a reader holds of each root.
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
	values  []*dictionary
	sets    []*index.Ahead    // of the sources
	along   [][]index.Stretch // the map, unless it is none of few long stretches
	of      []int             // by source: one more than its place among those that hold the value at hand
	out     setWriter
}

func (x *merger) open() (reason string, err error) {
	x.values, x.enc, reason, err = index.OpenSources(name, x.sources, x.enc, openDictionary, func(d *dictionary) (index.Encoding, int64) { return d.enc, d.bodySize })
	for i, d := range x.values {
		if d.ofList != x.ofList {
			return "an artifact is of lists and another of values", nil
		}
		d.from, d.source = &x.sources[i], i
		x.sets = append(x.sets, index.NewAhead(&x.sources[i]))
	}
	return reason, err
}

// close gives the memory of the sources to other merges.
func (x *merger) close() {
	for _, d := range x.values {
		*d = dictionary{keys: d.keys, ends: d.ends, sets: d.sets, unit: d.unit, last: d.last}
		dictionaries.Put(d)
	}
	for _, a := range x.sets {
		a.Close()
	}
}

// copyWhole copies an artifact whose rows stay where they are.
func (x *merger) copyWhole(body index.Sink) ([]byte, string, error) {
	var units []index.Unit
	r := x.values[0]
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
	for i, r := range x.values {
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
		most := 0
		for _, d := range x.values {
			most = max(most, d.values)
		}
		sets = make([]valueRows, 0, most)
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
			v, err := x.layout.write(body, string(key), rows.count, rows.bytes)
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
		list := make([]index.Unordered, len(x.values))
		for i, r := range x.values {
			list[i] = of(r.reader)
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
	x.out.reset()
	if x.along != nil {
		return &x.out, x.splice(of)
	}
	return &x.out, x.gather(of)
}

// gather writes the new rows of a value run by run.
func (x *merger) gather(of []held) error {
	out, end := &x.out, uint32(0)
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
		return err
	}
	if err := x.eachRun(of, func(_, to rowset.Range) { gathered.Add(to) }); err != nil {
		return err
	}
	out.reset()
	for _, r := range gathered.Set().Ranges() {
		out.add(r)
	}
	return nil
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
		all := x.values[h.source].rows
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
		all := x.values[h.source].rows
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
