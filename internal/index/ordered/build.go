package ordered

import (
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// NewBuilder starts an external sort of the column. Pairs are gathered up to the budget, sorted and spilled as runs to
// Budget.TempDir (the system's where it is empty), and merged by Finish. Null and NaN rows take a bit a row at most beside it.
func (k Kind) NewBuilder(spec index.Spec, budget index.Budget) (index.Builder, error) {
	parts, err := partsOf(spec.Columns)
	if err != nil {
		return nil, err
	}
	if len(parts) > 1 {
		return &tupleBuilder{
			parts: parts, tuples: newTuples(parts), count: index.RowCount{Want: spec.Rows},
			sorter: newSorter(tupleEncoding, spec.Rows, budget), sizes: k.orDefault(),
		}, nil
	}
	e := parts[0].enc
	return &builder{
		enc: e, keys: index.NewKeys(e), count: index.RowCount{Want: spec.Rows},
		nulls: index.NewRows(spec.Rows), nans: index.NewRows(spec.Rows),
		sorter: newSorter(e, spec.Rows, budget), sizes: k.orDefault(),
	}, nil
}

type builder struct {
	enc         index.Encoding
	keys        *index.Keys
	count       index.RowCount
	nulls, nans *index.Rows
	sorter      *sorter
	sizes       sizes
}

func (b *builder) Add(cols []*column.Vector) error {
	v, at, k := cols[0], b.count.Got, b.keys
	if err := b.count.Add(v.Len); err != nil {
		return err
	}
	if err := k.Load(v); err != nil {
		return err
	}
	for i := range v.Len {
		row := at + uint32(i)
		var err error
		switch {
		case k.Null(i):
			b.nulls.Add(rowset.Range{Start: row, End: row + 1})
		case k.NaN(i):
			b.nans.Add(rowset.Range{Start: row, End: row + 1})
		case b.enc.Narrow():
			err = b.sorter.addNarrow(k.Narrow[i], row)
		default:
			err = b.sorter.addWide(cutKey(k.Wide(i)), row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Cut ends the segment early.
func (b *builder) Cut(rows uint32) error {
	b.nulls.Cut(rows)
	b.nans.Cut(rows)
	return b.count.Cut(rows)
}

func (b *builder) Finish(body index.Sink) ([]byte, string, error) {
	if err := b.count.Done(); err != nil {
		return nil, "", err
	}
	out := newWriter(b.enc, b.count.Want, b.sizes, body)
	if err := b.sorter.each(out.add); err != nil {
		return nil, "", err
	}
	return out.seal(func(rest *bytescan.Writer) error {
		if err := writeUnordered(rest, body, b.nulls.Set()); err != nil || !b.enc.Kind.Floating() {
			return err
		}
		return writeUnordered(rest, body, b.nans.Set())
	})
}

func writeUnordered(w *bytescan.Writer, body index.Sink, s *rowset.Set) error {
	var rows index.RowsWriter
	for _, r := range s.Ranges() {
		rows.Add(r)
	}
	return index.WriteUnordered(w, body, rows.Count(), s.Size(), &rows)
}

func (b *builder) Close() error {
	b.nulls, b.nans, b.keys = nil, nil, nil
	return b.sorter.close()
}

// tupleBuilder sorts the tuples of several columns.
type tupleBuilder struct {
	parts  []part
	tuples *tuples
	count  index.RowCount
	sorter *sorter
	sizes  sizes
}

func (b *tupleBuilder) Add(cols []*column.Vector) error {
	at := b.count.Got
	if err := b.count.Add(cols[0].Len); err != nil {
		return err
	}
	if err := b.tuples.load(cols); err != nil {
		return err
	}
	for i := range cols[0].Len {
		if err := b.sorter.addWide(cutKey(b.tuples.of(i)), at+uint32(i)); err != nil {
			return err
		}
	}
	return nil
}

// Cut ends the segment early.
func (b *tupleBuilder) Cut(rows uint32) error { return b.count.Cut(rows) }

func (b *tupleBuilder) Finish(body index.Sink) ([]byte, string, error) {
	if err := b.count.Done(); err != nil {
		return nil, "", err
	}
	out := newWriter(tupleEncoding, b.count.Want, b.sizes, body)
	out.parts = b.parts
	if err := b.sorter.each(out.add); err != nil {
		return nil, "", err
	}
	return out.seal(func(rest *bytescan.Writer) error { return index.WriteUnordered(rest, body, 0, b.count.Want, nil) })
}

func (b *tupleBuilder) Close() error {
	b.tuples = nil
	return b.sorter.close()
}
