package bitmap

import (
	"fmt"

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
		sizes: k.orDefault(), enc: e, ofList: index.OfList(spec.Columns[0]), elements: index.NewElements(e), count: index.RowCount{Want: spec.Rows},
		distinct: index.NewDistinct(e, values, byteCap(values)), limit: int(min(max(budget.Bytes()/2, minBuild), maxBuild)),
	}, nil
}

// Numbers of runs that hold no value.
const (
	ofNulls = -1 - iota
	ofNaNs
)

type builder struct {
	sizes    sizes
	enc      index.Encoding
	ofList   bool
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
	if err := writeWithoutOrder(rest, body, &b.nulls, b.count.Want); err != nil {
		return nil, "", err
	}
	if b.enc.Kind.Floating() && !b.ofList {
		if err := writeWithoutOrder(rest, body, &b.nans, b.count.Want); err != nil {
			return nil, "", err
		}
	}
	if b.ofList || uint64(b.nulls.Count())+uint64(b.nans.Count()) < uint64(b.count.Want) {
		if err := b.writeDictionary(rest, body, sets); err != nil {
			return nil, "", err
		}
	}
	root := b.root(body.Offset(), rest.Buf)
	if len(root) > maxRoot {
		return nil, fmt.Sprintf("the root takes %d bytes, above the limit of %d: its values are too long", len(root), maxRoot), nil
	}
	return root, "", nil
}

func (b *builder) root(bodySize int64, rest []byte) []byte {
	w := &bytescan.Writer{}
	w.U8(version)
	b.enc.Append(w)
	if b.ofList {
		w.U8(shapeLists)
	} else {
		w.U8(shapeValues)
	}
	w.Uvarint(uint64(b.count.Want))
	w.Uvarint(uint64(bodySize))
	w.Bytes(rest)
	return w.Buf
}

// valueRows is the key and the row set of a value.
type valueRows struct {
	key   string
	count int64
	unit  index.Unit // unless every row holds the value
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
		v := valueRows{key: b.distinct.Key(number), count: w.Count()}
		if v.count < int64(b.count.Want) {
			set := &bytescan.Writer{}
			w.Append(set)
			var err error
			if v.unit, err = index.WriteUnit(body, set.Buf); err != nil {
				return nil, err
			}
		}
		b.values[number] = nil
		out = append(out, v)
	}
	return out, nil
}

// maxChunk bounds the bytes of a chunk of a row set.
const maxChunk = 8<<10 + 8

// writeWithoutOrder writes the description of a set to w and, where it is neither empty nor full nor too large, its bytes to the body.
func writeWithoutOrder(w *bytescan.Writer, body index.Sink, rows *index.RowsWriter, of uint32) error {
	n := rows.Count()
	w.Uvarint(uint64(n))
	if n == 0 || n == int64(of) {
		return nil
	}
	set := &bytescan.Writer{}
	rows.Append(set)
	if len(set.Buf) > maxRowSet {
		set.Buf = nil
	}
	u, err := index.WriteUnit(body, set.Buf)
	u.Append(w)
	return err
}

// writeDictionary writes it to the root or, where it does not fit, to pages of the body.
func (b *builder) writeDictionary(w *bytescan.Writer, body index.Sink, values []valueRows) error {
	if b.tooMany {
		w.Uvarint(0)
		return nil
	}
	if w.Uvarint(uint64(len(values)) + 1); len(values) == 0 {
		return nil
	}
	whole := b.page(values)
	if len(b.root(body.Offset(), w.Buf))+1+len(whole) <= b.sizes.inline {
		w.U8(formInline)
		w.Bytes(whole)
		return nil
	}
	w.U8(formPages)
	list, pages := &bytescan.Writer{}, 0
	for size, from, to := 0, 0, 1; to <= len(values); to++ {
		size += len(values[to-1].key) + 12
		if size < b.sizes.page && to < len(values) {
			continue
		}
		u, err := index.WriteUnit(body, b.page(values[from:to]))
		if err != nil {
			return err
		}
		list.Uvarint(uint64(to - from))
		list.String(values[from].key)
		u.Append(list)
		size, from, pages = 0, to, pages+1
	}
	w.Uvarint(uint64(pages))
	w.Bytes(list.Buf)
	return nil
}

func (b *builder) page(values []valueRows) []byte {
	w, keys := &bytescan.Writer{}, index.NewKeyWriter(b.enc)
	for _, v := range values {
		keys.Append(w, v.key)
	}
	w.Uvarint(uint64(values[0].unit.Off))
	for _, v := range values {
		w.Uvarint(uint64(v.count))
		if v.count < int64(b.count.Want) {
			w.Uvarint(uint64(v.unit.Len))
			w.U32(v.unit.CRC)
		}
	}
	return w.Buf
}

func (b *builder) Close() error {
	b.values, b.distinct, b.elements = nil, nil, nil
	return nil
}
