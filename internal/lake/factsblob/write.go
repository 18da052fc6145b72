package factsblob

import (
	"encoding/binary"
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/avro"
	"github.com/skomerdb/skomer/internal/lake/manifest"
)

// Item is a manifest to be packed, read with all its columns.
type Item struct {
	Origin
	Manifest *manifest.Manifest
}

// Head is where the head of an item lies in its pack.
type Head struct {
	Off, Len int64
	CRC      uint32
}

// Pack makes the object for some manifests, and the places of their heads, parallel to items.
func Pack(items []Item) (object []byte, heads []Head) {
	type piece struct {
		item int
		Section
	}
	var pieces []piece
	for i := range items {
		for _, s := range sectionsOf(items[i].Manifest) {
			pieces = append(pieces, piece{i, s})
		}
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return compareSections(a.Section, b.Section) })
	var w bytescan.Writer
	placed := make([][]Section, len(items))
	for _, p := range pieces {
		p.Off = int64(len(w.Buf))
		write(&w, items[p.item].Manifest, p.Section)
		p.Len = int64(len(w.Buf)) - p.Off
		p.CRC = bytescan.CRC32C(w.Buf[p.Off:])
		placed[p.item] = append(placed[p.item], p.Section)
	}
	for i := range items {
		h := Head{Off: int64(len(w.Buf))}
		writeHead(&w, &items[i], placed[i])
		h.Len = int64(len(w.Buf)) - h.Off
		h.CRC = bytescan.CRC32C(w.Buf[h.Off:])
		heads = append(heads, h)
	}
	return w.Buf, heads
}

func sectionsOf(m *manifest.Manifest) []Section {
	out := []Section{{kind: tuples}, {kind: base}, {kind: paths}, {kind: referenced}}
	for id, c := range m.Columns {
		if c != nil && id >= 0 {
			out = append(out, Section{kind: keys, field: id}, Section{kind: rest, field: id})
		}
	}
	return out
}

func writeHead(w *bytescan.Writer, item *Item, sections []Section) {
	m := item.Manifest
	w.Bytes([]byte(magic))
	w.Bytes([]byte{version, 0, 0, 0})
	w.String(item.Path)
	w.Uvarint(uint64(item.Length))
	w.String(item.Tag)
	w.Uvarint(uint64(m.FormatVersion))
	signed(w, int64(m.SpecID))
	w.Blob(m.SpecJSON)
	w.U8(bitIf(m.Deletes, 1) | bitIf(m.HasDeletes, 2))
	w.Uvarint(uint64(len(m.Partition)))
	for _, f := range m.Partition {
		s := f.Schema.Value()
		w.String(f.Name)
		signed(w, int64(f.ID))
		w.U8(uint8(s.Kind))
		w.String(s.Logical)
		w.Uvarint(uint64(max(s.Scale, 0)))
		w.Uvarint(uint64(s.Size))
	}
	w.Uvarint(uint64(m.N))
	w.Uvarint(uint64(len(sections)))
	for _, s := range sections {
		w.U8(uint8(s.kind))
		w.Uvarint(uint64(s.field))
		w.Uvarint(uint64(s.Off))
		w.Uvarint(uint64(s.Len))
		w.U32(s.CRC)
	}
}

func write(w *bytescan.Writer, m *manifest.Manifest, s Section) {
	switch s.kind {
	case tuples:
		writeInts(w, &m.Tuple)
		w.Uvarint(uint64(len(m.Tuples)))
		for _, t := range m.Tuples {
			writeTuple(w, t)
		}
	case base:
		for _, x := range baseInts(m.Ints()) {
			writeInts(w, x)
		}
		w.Uvarint(uint64(len(m.EqualityIDs)))
		for _, ids := range m.EqualityIDs {
			w.U8(bitIf(ids != nil, 1))
			w.Uvarint(uint64(len(ids)))
			for _, id := range ids {
				signed(w, int64(id))
			}
		}
	case paths:
		w.Bytes(m.Path.Data)
	case referenced:
		w.Bytes(m.Referenced.Data)
	case keys:
		writeKeys(w, &m.Columns[s.field].Keys)
	case rest:
		c := m.Columns[s.field]
		for _, x := range []*facts.Ints{&c.Values, &c.Nulls, &c.NaNs} {
			writeInts(w, x)
		}
		writeBounds(w, &c.Lower)
		writeBounds(w, &c.Upper)
	}
}

func writeTuple(w *bytescan.Writer, t []manifest.Raw) {
	w.U8(bitIf(t != nil, 1))
	for _, v := range t {
		w.U8(bitIf(v.Null, 1) | bitIf(v.Num != 0, 2) | bitIf(v.Bytes != "", 4))
		if v.Num != 0 {
			signed(w, v.Num)
		}
		if v.Bytes != "" {
			w.String(v.Bytes)
		}
	}
}

func writeKeys(w *bytescan.Writer, k *facts.Keys) {
	w.U8(uint8(k.Form))
	w.U8(bitIf(k.Text, keysText) | bitIf(k.NaNs, keysNaNs) | bitIf(k.AllNull, keysAllNull) | bitIf(k.Sure != nil, keysSure))
	writeSet(w, k.Sure)
	w.Bytes(k.Lower)
	w.Bytes(k.Upper)
}

func writeBounds(w *bytescan.Writer, b *facts.Bounds) {
	w.U8(bitIf(b.Stated != nil, 1))
	writeSet(w, b.Stated)
	if b.Off == nil {
		return
	}
	lengths := make([]int64, len(b.Off)-1)
	for i := range lengths {
		lengths[i] = int64(b.Off[i+1] - b.Off[i])
	}
	x := facts.PackInts(lengths)
	writeInts(w, &x)
	w.Bytes(b.Data)
}

func writeSet(w *bytescan.Writer, b facts.Bits) {
	for _, word := range b {
		w.U64(word)
	}
}

func writeInts(w *bytescan.Writer, x *facts.Ints) {
	signed(w, x.Base)
	w.U8(uint8(x.Width))
	w.Bytes(x.Data)
}

func signed(w *bytescan.Writer, v int64) { w.Buf = binary.AppendVarint(w.Buf, v) }

func bitIf(b bool, bit uint8) uint8 {
	if b {
		return bit
	}
	return 0
}

// plainSchema is a partition field's type as a head keeps it.
func plainSchema(s *avro.Schema) bool { return s.Kind < avro.Record || s.Kind == avro.Fixed }
