package ordered

import (
	"bytes"
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Merge merges the sorted blocks of all sources key by key, and sends the rows of each key through the map. It holds one block and one
// directory page of each source, and the runs of rows of one key or a bit a row.
func (k Kind) Merge(spec index.Spec, sources []index.Source, m *index.OrdinalMap, _ index.Budget, body index.Sink) ([]byte, string, error) {
	parts, err := partsOf(spec.Columns)
	if err != nil {
		return nil, "", err
	}
	enc, err := index.Mergeable(name, &spec, sources, m, func(string, []column.Path) (index.Encoding, error) { return keyEncoding(parts), nil })
	if err != nil {
		return nil, "", err
	}
	readers, enc, reason, err := index.OpenSources(name, sources, enc, open, func(x *reader) (index.Encoding, int64) { return x.enc, x.bodySize })
	if reason != "" || err != nil {
		return nil, reason, err
	}
	for _, x := range readers {
		if !slices.Equal(x.parts, readers[0].parts) || !widen(x.parts, parts) {
			return nil, "the values of its artifacts were taken in different encodings", nil
		}
	}
	if m.Identity() {
		return copyWhole(readers[0], &sources[0], body)
	}
	nulls, nans, reason, err := mergeUnordered(readers, sources, m)
	if reason != "" || err != nil {
		return nil, reason, err
	}
	out := newWriter(enc, spec.Rows, k.orDefault(), body)
	switch {
	case len(readers) > 0:
		out.parts = readers[0].parts
	case len(parts) > 1:
		out.parts = parts
	}
	if err := mergeKeys(readers, sources, m, out); err != nil {
		return nil, "", err
	}
	return out.seal(func(rest *bytescan.Writer) error {
		if _, err := nulls.Write(rest, body, spec.Rows); err != nil || nans == nil {
			return err
		}
		_, err := nans.Write(rest, body, spec.Rows)
		return err
	})
}

// copyWhole copies an artifact whose rows stay where they are.
func copyWhole(x *reader, from *index.Source, body index.Sink) ([]byte, string, error) {
	var units []index.Unit
	add := func(d directory) {
		for _, e := range d {
			units = append(units, e.unit)
		}
	}
	if x.level == levelPages {
		for _, e := range x.top {
			b, err := from.Unit(name+" directory page", e.unit, nil)
			if err != nil {
				return nil, "", err
			}
			r := bytescan.NewReader(name+" directory page", b)
			if add(readDirectory(r, x.bodySize, maxBlock)); r.Done() != nil {
				return nil, "", r.Done()
			}
		}
	}
	add(x.top)
	units = append(units, x.nulls.Unit, x.nans.Unit)
	return slices.Clone(from.Root), "", index.CopyUnits(name, from, units, body)
}

func mergeUnordered(readers []*reader, sources []index.Source, m *index.OrdinalMap) (nulls, nans *index.MergedRows, reason string, err error) {
	of := make([]index.Unordered, len(readers))
	for i, x := range readers {
		of[i] = x.nulls
	}
	if nulls, reason, err = index.MergeUnordered(name, sources, m, of); reason != "" || err != nil {
		return nil, nil, reason, err
	}
	if len(readers) == 0 || !readers[0].enc.Kind.Floating() {
		return nulls, nil, "", nil
	}
	for i, x := range readers {
		of[i] = x.nans
	}
	nans, reason, err = index.MergeUnordered(name, sources, m, of)
	return nulls, nans, reason, err
}

// mergeKeys writes the keys of all sources in order.
func mergeKeys(readers []*reader, sources []index.Source, m *index.OrdinalMap, out *writer) error {
	var heap []*source
	alone := m.Alone()
	for i, x := range readers {
		s := newSource(x, &sources[i], m, i)
		s.alone = alone[i]
		ok, err := s.next()
		if err != nil {
			return err
		}
		if ok {
			heap = append(heap, s)
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		siftSources(heap, i)
	}
	g := gathered{out: out, rows: m.Rows()}
	for len(heap) > 0 {
		s := heap[0]
		if len(s.numbers) > 0 {
			if err := g.takeNumbers(heap); err != nil {
				return err
			}
			if len(heap) > 1 && s.narrow > heap[1].narrow || len(heap) > 2 && s.narrow > heap[2].narrow {
				siftSources(heap, 0)
				continue
			}
		}
		if err := g.take(s); err != nil {
			return err
		}
		ok, err := s.next()
		if err != nil {
			return err
		}
		if !ok {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		if len(heap) > 1 {
			siftSources(heap, 0)
		}
	}
	return g.flush()
}

func siftSources(heap []*source, i int) {
	for {
		least := i
		for kid := 2*i + 1; kid <= 2*i+2 && kid < len(heap); kid++ {
			if heap[kid].less(heap[least]) {
				least = kid
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

// gathered is the key at hand and its new rows.
type gathered struct {
	out      *writer
	rows     uint32
	narrow   uint64
	key      []byte
	runs     []rowset.Range
	unsorted bool
	many     *index.Rows // instead of runs, where these are many
}

// maxGathered is the runs of one key above which they are kept as bits.
const maxGathered = 1 << 17

// take adds the rows of a source's key, after those of a lesser key were written.
func (g *gathered) take(s *source) error {
	if s.narrow != g.narrow || !g.out.narrow && !bytes.Equal(s.key, g.key) {
		if err := g.flush(); err != nil {
			return err
		}
		if g.narrow = s.narrow; !g.out.narrow {
			g.key = append(g.key[:0], s.key...)
		}
	}
	if g.many != nil {
		for _, r := range s.runs {
			g.many.Add(r)
		}
		return nil
	}
	for _, r := range s.runs {
		if n := len(g.runs); n > 0 && r.Start <= g.runs[n-1].End {
			if r.Start == g.runs[n-1].End {
				g.runs[n-1].End = r.End
				continue
			}
			g.unsorted = true
		}
		g.runs = append(g.runs, r)
	}
	if len(g.runs) > maxGathered {
		g.many = index.NewRows(g.rows)
		for _, r := range g.runs {
			g.many.Add(r)
		}
		g.runs, g.unsorted = g.runs[:0], false
	}
	return nil
}

func (g *gathered) flush() error {
	runs := g.runs
	if g.many != nil {
		runs, g.many = g.many.Set().Ranges(), nil
	}
	if g.unsorted {
		slices.SortFunc(runs, func(a, b rowset.Range) int { return int(int64(a.Start) - int64(b.Start)) })
	}
	if err := g.out.addRuns(g.narrow, g.key, runs); err != nil {
		return err
	}
	g.runs, g.unsorted = g.runs[:0], false
	return nil
}
