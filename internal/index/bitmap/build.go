package bitmap

import (
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// NewBuilder starts a bitmap index. It holds the written row sets, 2 to 3 bytes a run of rows, up to half the budget (1 to 128 MiB),
// and up to 512 KiB of runs of the chunk being filled.
func (k Kind) NewBuilder(spec index.Spec, budget index.Budget) (index.Builder, error) {
	e, err := index.OneColumnOrElement(name, spec.Columns)
	if err != nil {
		return nil, err
	}
	values, err := valueCap(spec.Params)
	if err != nil {
		return nil, err
	}
	return &builder{
		layout: layout{sizes: k.orDefault(), enc: e, ofList: index.OfList(spec.Columns[0]), rows: spec.Rows}, elements: index.NewElements(e, spec.Columns[0]), count: index.RowCount{Want: spec.Rows},
		distinct: index.NewDistinct(e, values, byteCap(values)), limit: int(min(max(budget.Bytes()/2, minBuild), maxBuild)),
	}, nil
}

// Numbers of runs that hold no value.
const (
	ofNulls = -1 - iota
	ofNaNs
)

type builder struct {
	layout
	elements *index.Elements // of lists; else only its keys are used
	count    index.RowCount
	distinct *index.Distinct
	tooMany  bool

	nulls, nans index.RowsWriter
	values      []*index.RowsWriter // by number
	size, limit int                 // bytes of values' finished chunks
	run         rowset.Range        // rows of the same kind that are not yet written
	of          int
}

func (b *builder) Add(cols []*column.Vector) error {
	v, at, k := cols[0], b.count.Got, b.elements.Keys
	if err := b.count.Add(v.Len); err != nil {
		return err
	}
	if b.ofList {
		return b.addLists(v, at)
	}
	if err := k.Load(v); err != nil {
		return err
	}
	for i := range v.Len {
		of := 0
		switch {
		case k.Null(i):
			of = ofNulls
		case k.NaN(i):
			of = ofNaNs
		case !b.tooMany:
			number, ok := b.distinct.Number(k, i)
			if of = number; !ok {
				b.giveUp()
			}
		}
		row := at + uint32(i)
		if of != b.of || row != b.run.End {
			b.flush()
			b.of, b.run = of, rowset.Range{Start: row}
		}
		b.run.End = row + 1
	}
	return nil
}

// flush writes the run.
func (b *builder) flush() {
	switch {
	case b.run.Len() == 0:
	case b.of == ofNulls:
		b.nulls.Add(b.run)
	case b.of == ofNaNs:
		b.nans.Add(b.run)
	case !b.tooMany:
		b.hold(b.of, b.run)
	}
	b.run = rowset.Range{}
}

// hold adds rows to the set of a value.
func (b *builder) hold(value int, rows rowset.Range) {
	if value == len(b.values) {
		b.values = append(b.values, &index.RowsWriter{})
	}
	w := b.values[value]
	if w.Ends(rows.Start) {
		return // a list that holds the value twice
	}
	before := w.Size()
	w.Add(rows)
	if b.size += w.Size() - before; b.size > b.limit {
		b.giveUp()
	}
}

// addLists takes lists, the first of which is row at.
func (b *builder) addLists(v *column.Vector, at uint32) error {
	if err := b.elements.Load(v); err != nil {
		return err
	}
	k := b.elements.Keys
	for i := range v.Len {
		row := rowset.Range{Start: at + uint32(i), End: at + uint32(i) + 1}
		from, to, unknown := b.elements.Row(i)
		for ; from < to; from++ {
			switch {
			case k.Null(from):
				unknown = true
			case k.NaN(from) || b.tooMany:
			default:
				if number, ok := b.distinct.Number(k, from); ok {
					b.hold(number, row)
				} else {
					b.giveUp()
				}
			}
		}
		if unknown {
			b.nulls.Add(row)
		}
	}
	return nil
}

// giveUp forgets every value: what is left is "too many".
func (b *builder) giveUp() {
	b.tooMany, b.values = true, nil
	b.distinct.Reset()
}

func (b *builder) Finish(body index.Sink) ([]byte, string, error) {
	if err := b.count.Done(); err != nil {
		return nil, "", err
	}
	b.flush()
	sets, err := b.writeValues(body)
	if err != nil {
		return nil, "", err
	}
	rest := &bytescan.Writer{}
	if err := index.WriteUnordered(rest, body, b.nulls.Count(), b.rows, &b.nulls); err != nil {
		return nil, "", err
	}
	if b.hasNaNs() {
		if err := index.WriteUnordered(rest, body, b.nans.Count(), b.rows, &b.nans); err != nil {
			return nil, "", err
		}
	}
	return b.seal(body, rest, b.nulls.Count()+b.nans.Count(), sets, b.tooMany)
}

// writeValues writes the row sets in key order.
func (b *builder) writeValues(body index.Sink) ([]valueRows, error) {
	for _, w := range b.values {
		if w.Size() > maxRowSet-2*maxChunk {
			b.giveUp()
			return nil, nil
		}
	}
	out := make([]valueRows, 0, len(b.values))
	for _, number := range b.distinct.Ascending() {
		w := b.values[number]
		v, err := b.write(body, b.distinct.Key(number), w.Count(), w.Bytes)
		if err != nil {
			return nil, err
		}
		b.values[number] = nil
		out = append(out, v)
	}
	return out, nil
}

func (b *builder) Close() error {
	b.values, b.distinct, b.elements = nil, nil, nil
	return nil
}
