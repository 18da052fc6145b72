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
	dir, level, err := out.finish()
	if err != nil {
		return nil, "", err
	}
	dataBytes := out.dataBytes
	rest := &bytescan.Writer{}
	if err := writeRowSet(rest, body, b.nulls.Set()); err != nil {
		return nil, "", err
	}
	if b.enc.Kind.Floating() {
		if err := writeRowSet(rest, body, b.nans.Set()); err != nil {
			return nil, "", err
		}
	}
	if len(dir) > 0 {
		rest.Blob(out.last)
		rest.Uvarint(uint64(dataBytes))
		rest.U8(level)
		dir.append(rest)
	}
	root := &bytescan.Writer{}
	root.U8(version)
	b.enc.Append(root)
	root.Uvarint(uint64(b.count.Want))
	root.Uvarint(uint64(body.Offset()))
	root.Bytes(rest.Buf)
	if len(root.Buf) > maxRoot || separatorBytes(dir) > maxSeparators {
		return nil, "the directory of its long keys would be larger than the index is worth", nil
	}
	return root.Buf, "", nil
}

// writeRowSet writes the description of a set to w and, where it is neither empty nor full nor too large, its bytes to the body.
func writeRowSet(w *bytescan.Writer, body index.Sink, s *rowset.Set) error {
	n := s.Count()
	w.Uvarint(uint64(n))
	if n == 0 || n == int64(s.Size()) {
		return nil
	}
	b := &bytescan.Writer{}
	index.AppendRows(b, s)
	if len(b.Buf) > maxRowSet {
		b.Buf = nil
	}
	u, err := index.WriteUnit(body, b.Buf)
	u.Append(w)
	return err
}

func (b *builder) Close() error {
	b.nulls, b.nans, b.keys = nil, nil, nil
	return b.sorter.close()
}
