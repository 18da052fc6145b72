package parquetio_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/rowset"
)

// layout is that of a file of which everything can be fetched.
func (o object) layout(t testing.TB, f *parquetio.File) (parquetio.Layout, bool) {
	t.Helper()
	var held parquetio.Held
	spans := f.LayoutSpans()
	for i, data := range o.fetch(t, spans) {
		held.Add(spans[i].Off, data)
	}
	return f.Layout(&held)
}

// laid is a file by a layout.
func (o object) laid(l parquetio.Layout, rows int64) (*parquetio.File, error) {
	s, err := parquetio.ParseShape(l.Shape)
	if err != nil {
		return nil, err
	}
	return s.File("laid", "tag", int64(len(o)), rows, l.Places)
}

// rowsBy reads rows of all columns that the footer knows by a file.
func (o object) rowsBy(t testing.TB, f *parquetio.File, paths []column.Path, rows *rowset.Set) (out []string, err error) {
	t.Helper()
	b, err := f.Bind(paths, nil)
	if err != nil {
		return nil, err
	}
	err = b.Decode(context.Background(), o.fetch(t, b.Spans(rows)), rows, 0, func(b *column.Batch) error {
		for _, row := range rowsOf(b) {
			out = append(out, text(row))
		}
		return nil
	})
	return out, err
}

// TestLayoutsReadAsFooters: by its layout a file is bound and read as by its footer and page index, from the same bytes; a damaged layout is an
// error or gives the same rows.
func TestLayoutsReadAsFooters(t *testing.T) {
	made := 0
	seeds(t, 60, func(t *testing.T, g generator) {
		tab := g.table(t)
		f, err := tab.data.open("random")
		if err != nil {
			t.Fatal(err)
		}
		l, ok := tab.data.layout(t, f)
		if !ok {
			return
		}
		made++
		laid, err := tab.data.laid(l, f.Rows())
		if err != nil {
			t.Fatalf("%s: %v", tab.note, err)
		}
		paths := allPaths(f)
		by, err := f.Bind(paths, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := by.LoadPageIndex(nil, tab.data.fetch(t, by.PageIndexSpans(nil))); err != nil {
			t.Fatal(err)
		}
		too, err := laid.Bind(paths, nil)
		if err != nil {
			t.Fatalf("%s: %v", tab.note, err)
		}
		rows := g.selection(len(tab.values[0]))
		if want, got := by.Spans(rows), too.Spans(rows); !reflect.DeepEqual(want, got) {
			t.Fatalf("%s: spans %v by the footer, %v by the layout", tab.note, want, got)
		}
		if want, got := f.RowGroups(), laid.RowGroups(); !reflect.DeepEqual(want, got) {
			t.Fatalf("%s: row groups %v and %v", tab.note, want, got)
		}
		want, err := tab.data.rowsBy(t, f, paths, rows)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tab.data.rowsBy(t, laid, paths, rows)
		if err != nil || !slices.Equal(want, got) {
			t.Fatalf("%s: other rows by the layout: %v", tab.note, err)
		}
		for range 8 {
			bad := parquetio.Layout{Shape: l.Shape, Places: slices.Clone(l.Places)}
			bad.Places[g.IntN(len(bad.Places))] ^= byte(1 << g.IntN(8))
			laid, err := tab.data.laid(bad, f.Rows())
			if err == nil {
				got, err = tab.data.rowsBy(t, laid, paths, rows)
			}
			if err == nil && !slices.Equal(want, got) {
				t.Fatalf("%s: other rows by a damaged layout", tab.note)
			}
			if err != nil && !fault.Is(err, fault.Corrupt) && !fault.Is(err, fault.Unsupported) && !fault.Is(err, fault.Exhausted) {
				t.Fatalf("%s: %v", tab.note, err)
			}
		}
	})
	if os.Getenv("SKOMER_SEED") == "" && made < 20 {
		t.Errorf("only %d files have a layout", made)
	}
}

// TestNoLayout: files that could be read wrongly by places alone, or take too many bytes, have none.
func TestNoLayout(t *testing.T) {
	one := func(change func(*format.ColumnChunk, *rawIndex)) object {
		f := newRawFile(t, 2)
		f.column(requiredLong("x"), []rawPage{longPage(1, 2)}, change)
		return f.finish()
	}
	wide, many := newRawFile(t, 1), newRawFile(t, 5000)
	for range 1500 {
		wide.column(requiredLong("x"), []rawPage{longPage(1)}, nil)
	}
	var pages []rawPage
	for range 5000 {
		pages = append(pages, longPage(1))
	}
	many.column(requiredLong("x"), pages, nil)
	for name, c := range map[string]struct {
		file object
		ok   bool
	}{
		"plain":                  {one(nil), true},
		"column elsewhere":       {one(func(c *format.ColumnChunk, _ *rawIndex) { c.FilePath = "other" }), false},
		"unknown codec":          {one(func(c *format.ColumnChunk, _ *rawIndex) { c.MetaData.Codec = 40 }), false},
		"other type":             {one(func(c *format.ColumnChunk, _ *rawIndex) { c.MetaData.Type = format.Double }), false},
		"chunk past the end":     {one(func(c *format.ColumnChunk, _ *rawIndex) { c.MetaData.TotalCompressedSize += 1 << 20 }), false},
		"unusable offset index":  {one(func(_ *format.ColumnChunk, x *rawIndex) { x.offsets.PageLocations = nil }), false},
		"too many columns":       {wide.finish(), false},
		"too many pages":         {many.finish(), false},
		"pages that do not line": {one(func(_ *format.ColumnChunk, x *rawIndex) { x.offsets.PageLocations[0].Offset++ }), false},
	} {
		f, err := c.file.open(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := c.file.layout(t, f); ok != c.ok {
			t.Errorf("%s: has a layout: %v", name, ok)
		}
	}
	o := one(nil)
	f, err := o.open("plain")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Layout(&parquetio.Held{}); ok {
		t.Error("a layout without the offset index")
	}
	l, _ := o.layout(t, f)
	for _, rows := range []int64{0, 1, 3} {
		if _, err := o.laid(l, rows); !fault.Is(err, fault.Corrupt) {
			t.Errorf("a layout of 2 rows stands for %d: %v", rows, err)
		}
	}
	if _, err := o[:len(o)/8].laid(l, 2); !fault.Is(err, fault.Corrupt) {
		t.Errorf("a layout reaches behind the file: %v", err)
	}
}

// TestNoLayoutOfSchemaInPieces: a footer that states its schema twice is read as one list, and a layout that copied the second would find the
// columns elsewhere.
func TestNoLayoutOfSchemaInPieces(t *testing.T) {
	raw := newRawFile(t, 2)
	raw.column(requiredLong("a"), []rawPage{longPage(1, 2)}, nil)
	raw.column(requiredLong("b"), []rawPage{longPage(3, 4)}, nil)
	o := raw.finish()
	list := []byte{0x3c}
	for i := range raw.schema {
		list = append(list, raw.thrift(&raw.schema[i])...)
	}
	at := bytes.LastIndex(o, list)
	if at < 0 {
		t.Fatal("no schema")
	}
	root, group := raw.schema[0], raw.schema[0]
	group.Name, root.NumChildren, group.RepetitionType = "x", thrift.New(int32(1)), thrift.New(format.Required)
	pieces := append([]byte{0x1c}, raw.thrift(&root)...)
	pieces = append(pieces, 9, 4, 0x3c) // field 2, a list, once more
	for _, e := range []format.SchemaElement{group, raw.schema[1], raw.schema[2]} {
		pieces = append(pieces, raw.thrift(&e)...)
	}
	length := binary.LittleEndian.Uint32(o[len(o)-8:]) + uint32(len(pieces)-len(list))
	o = slices.Concat(o[:at], pieces, o[at+len(list):len(o)-8], binary.LittleEndian.AppendUint32(nil, length), []byte("PAR1"))
	f, err := o.open("pieces")
	if err != nil {
		t.Fatal(err)
	}
	if s := f.Schema(); len(s.Fields) != 1 || s.Fields[0].Name != "x" {
		t.Fatalf("schema %v", s)
	}
	if _, ok := o.layout(t, f); ok {
		t.Error("has a layout")
	}
}

// TestLayoutBytes pins the bytes of places that docs/format/filemap.md draws.
func TestLayoutBytes(t *testing.T) {
	raw := newRawFile(t, 6)
	raw.column(requiredLong("x"), []rawPage{longPage(1, 2), longPage(3, 4), longPage(5, 6)}, nil)
	raw.column(repeatedLong("y"), []rawPage{listPage(false, []int64{1}, []int64{2, 2}), listPage(false, []int64{3}), listPage(false, []int64{4}, []int64{5}, []int64{6})}, nil)
	raw.column(requiredLong("z"), []rawPage{{dictionary: true, values: 1, body: longs(7)}, {rows: 6, values: 6, encoding: format.RLEDictionary, body: []byte{1, 12, 0}}}, nil)
	o := raw.finish()
	f, err := o.open("pinned")
	if err != nil {
		t.Fatal(err)
	}
	l, ok := o.layout(t, f)
	want := []byte{
		1, 6, // a row group of 6 rows
		0, 0, 3, 2, 37, 37, 37, // x: from byte 4, no dictionary, three pages of two rows
		0, 0, 7, 3, 0, 61, 2, 41, 1, 61, 3, // y: seven values in pages of two, one and three rows
		0, 21, 1, 24, // z: a dictionary, one page
	}
	if !ok || !slices.Equal(l.Places, want) {
		t.Errorf("places % d, want % d", l.Places, want)
	}
	if !strings.HasPrefix(string(l.Shape), "\x11raw version 1.0.0") || !strings.Contains(string(l.Shape), "root") || string(l.Shape[len(l.Shape)-3:]) != "\x00\x00\x00" {
		t.Errorf("shape %q", l.Shape)
	}
}

// FuzzLayout: whatever a layout says, it is refused or names places in the file, and reading them ends in rows or a fault.
func FuzzLayout(f *testing.F) {
	raw := newRawFile(f, 6)
	raw.column(requiredLong("x"), []rawPage{longPage(1, 2), longPage(3, 4), longPage(5, 6)}, nil)
	raw.column(repeatedLong("y"), []rawPage{listPage(false, []int64{1}, []int64{2, 2}), listPage(false, []int64{3}, []int64{4}, []int64{5}, []int64{6})}, nil)
	o := raw.finish()
	file, err := o.open("seed")
	if err != nil {
		f.Fatal(err)
	}
	l, ok := o.layout(f, file)
	if !ok {
		f.Fatal("no layout")
	}
	f.Add([]byte(o), l.Shape, l.Places, int64(6))
	if data, err := os.ReadFile(filepath.Join("../../../shared/data", "parquet-testing/data/alltypes_tiny_pages.parquet")); err == nil && len(data) < 1<<20 {
		if file, err := object(data).open("seed"); err == nil {
			if l, ok := object(data).layout(f, file); ok {
				f.Add(data, l.Shape, l.Places, file.Rows())
			}
		}
	}
	f.Fuzz(func(t *testing.T, data, shape, places []byte, rows int64) {
		o := object(data)
		laid, err := o.laid(parquetio.Layout{Shape: shape, Places: places}, rows)
		if err != nil {
			return
		}
		var some *rowset.Set
		if n := laid.Rows(); n > 1<<20 {
			some = rowset.FromRanges(uint32(n), []rowset.Range{{Start: 1, End: 1 << 10}})
		}
		_, _ = o.rowsBy(t, laid, allPaths(laid), some)
	})
}
