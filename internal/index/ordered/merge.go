package ordered

import (
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
)

// Merge merges the sorted blocks of all sources, and sends the rows of each key through the map. Beside its budget it holds one block and one
// directory page of each source, the directory it writes, and of the keys with most rows a bit a row.
func (k Kind) Merge(spec index.Spec, sources []index.Source, m *index.OrdinalMap, budget index.Budget, body index.Sink) ([]byte, string, error) {
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
	if len(readers) > maxMerge {
		return nil, "it would be of too many artifacts", nil
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
	if err := mergeKeys(readers, sources, m, budget, out); err != nil {
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
