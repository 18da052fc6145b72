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
	e, err := index.OneColumn(name, spec.Columns)
	if err != nil {
		return nil, err
	}
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
