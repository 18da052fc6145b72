package bitmap

import (
	"fmt"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// layout is what the bytes of an artifact depend on beside its values and rows.
type layout struct {
	sizes  sizes
	enc    index.Encoding
	ofList bool
	rows   uint32
	pieces bool            // there are row sets in pieces
	set    bytescan.Writer // scratch
}

// hasNaNs reports whether NaN rows are kept.
func (l *layout) hasNaNs() bool { return l.enc.Kind.Floating() && !l.ofList }

// valueRows is the key and the row set of a value.
type valueRows struct {
	key   string
	count int64
	unit  index.Unit // unless every row holds the value
}

// maxChunk bounds the bytes of a chunk of a row set.
const maxChunk = 8<<10 + 8

// write writes the row set of a value, which set gives.
func (l *layout) write(body index.Sink, key string, count int64, set func(scratch *bytescan.Writer) []byte) (v valueRows, err error) {
	v = valueRows{key: key, count: count, unit: index.Unit{Span: index.Span{Off: body.Offset()}}}
	if v.count < int64(l.rows) {
		l.set.Buf = l.set.Buf[:0]
		v.unit, err = index.WriteUnit(body, set(&l.set))
	}
	return v, err
}

// seal ends the body and returns the root: rest describes the null and NaN rows, without how many they are.
func (l *layout) seal(body index.Sink, rest *bytescan.Writer, without int64, values []valueRows, tooMany bool) ([]byte, string, error) {
	if l.ofList || without < int64(l.rows) {
		if err := l.writeDictionary(rest, body, values, tooMany); err != nil {
			return nil, "", err
		}
	}
	root := l.root(body.Offset(), rest.Buf)
	if len(root) > maxRoot {
		return nil, fmt.Sprintf("the root takes %d bytes, above the limit of %d: its values are too long", len(root), maxRoot), nil
	}
	return root, "", nil
}

func (l *layout) root(bodySize int64, rest []byte) []byte {
	v := uint8(whole)
	if l.pieces {
		v = version
	}
	w := index.StartRoot(v, l.enc)
	index.AppendShape(w, l.ofList)
	w.Uvarint(uint64(l.rows))
	w.Uvarint(uint64(bodySize))
	w.Bytes(rest)
	return w.Buf
}

// writeDictionary writes it to the root or, where it does not fit, to pages of the body.
func (l *layout) writeDictionary(w *bytescan.Writer, body index.Sink, values []valueRows, tooMany bool) error {
	if tooMany {
		w.Uvarint(0)
		return nil
	}
	if w.Uvarint(uint64(len(values)) + 1); len(values) == 0 {
		return nil
	}
	whole := l.page(values)
	if len(l.root(body.Offset(), w.Buf))+1+len(whole) <= l.sizes.inline {
		w.U8(formInline)
		w.Bytes(whole)
		return nil
	}
	w.U8(formPages)
	list, pages := &bytescan.Writer{}, 0
	for size, from, to := 0, 0, 1; to <= len(values); to++ {
		size += len(values[to-1].key) + 12
		if size < l.sizes.page && to < len(values) {
			continue
		}
		u, err := index.WriteUnit(body, l.page(values[from:to]))
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

func (l *layout) page(values []valueRows) []byte {
	w, keys := &bytescan.Writer{}, index.NewKeyWriter(l.enc)
	for _, v := range values {
		keys.Append(w, v.key)
	}
	w.Uvarint(uint64(values[0].unit.Off))
	for _, v := range values {
		w.Uvarint(uint64(v.count))
		if v.count < int64(l.rows) {
			w.Uvarint(uint64(v.unit.Len))
			w.U32(v.unit.CRC)
		}
	}
	return w.Buf
}
