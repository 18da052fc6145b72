package parquetio_test

import (
	"bytes"
	"context"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/rowset"
)

// pick reads rows of all columns through the page index.
func pick(t *testing.T, o object, rows ...uint32) [][]any {
	t.Helper()
	f, err := o.open("case")
	if err != nil {
		t.Fatal(err)
	}
	var out [][]any
	err = o.scan(t, f, allPaths(f), rowset.FromRows(uint32(f.Rows()), rows), true, func(b *column.Batch) error {
		out = append(out, rowsOf(b)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestO25MisalignedPages: page skipping must not pair values of different rows.
func TestO25MisalignedPages(t *testing.T) {
	f := newRawFile(t, 5)
	f.column(requiredLong("predicate"), []rawPage{longPage(0, 0), longPage(100, 100), longPage(0)}, nil)
	f.column(requiredLong("payload"), []rawPage{longPage(0, 10, 20), longPage(30, 40)}, nil)
	want := [][]any{{uint32(0), int64(0), int64(0)}, {uint32(1), int64(0), int64(10)}, {uint32(4), int64(0), int64(40)}}
	if got := pick(t, f.finish(), 0, 1, 4); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestO26DictionaryOffsetMissing: the region before the first indexed page is fetched though no field says that it is a dictionary.
func TestO26DictionaryOffsetMissing(t *testing.T) {
	indexes := func(width byte, packed byte) rawPage {
		return rawPage{rows: 2, values: 2, encoding: format.RLEDictionary, body: []byte{width, 3, packed}}
	}
	f := newRawFile(t, 4)
	dict := rawPage{dictionary: true, values: 2, body: longs(7, 9)}
	f.column(requiredLong("x"), []rawPage{dict, indexes(1, 0b01), indexes(1, 0b10)}, func(c *format.ColumnChunk, _ *rawIndex) {
		c.MetaData.DataPageOffset, c.MetaData.DictionaryPageOffset = c.MetaData.DictionaryPageOffset, 0
	})
	want := [][]any{{uint32(3), int64(9)}}
	if got := pick(t, f.finish(), 3); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestO24ContradictoryPageIndex: a page of nulls only that has none makes the chunk's column index unusable.
func TestO24ContradictoryPageIndex(t *testing.T) {
	bound := func(v int64) []byte { return longs(v) }
	spoil := func(nullPage bool) object {
		f := newRawFile(t, 4)
		f.column(requiredLong("x"), []rawPage{longPage(50, 51), longPage(60, 61)}, func(c *format.ColumnChunk, x *rawIndex) {
			c.MetaData.Statistics = format.Statistics{MinValue: bound(50), MaxValue: bound(61)}
			x.bounds = &format.ColumnIndex{
				NullPages: []bool{nullPage, false}, MinValues: [][]byte{bound(50), bound(60)}, MaxValues: [][]byte{bound(51), bound(61)}, NullCounts: []int64{0, 0},
			}
		})
		return f.finish()
	}
	for _, nullPage := range []bool{false, true} {
		o := spoil(nullPage)
		b := bound1(t, o)
		pages := b.Statistics(0).Pages[0]
		if nullPage && pages != nil {
			t.Errorf("a contradictory index was believed: %+v", pages)
		}
		if !nullPage && (len(pages) != 2 || pages[1].Min.Int64() != 60 || pages[0].Nulls != 0) {
			t.Errorf("a good index was not believed: %+v", pages)
		}
	}
}

// bound1 binds all columns of a file and loads its page index.
func bound1(t *testing.T, o object) *parquetio.Binding {
	t.Helper()
	f, err := o.open("case")
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Bind(allPaths(f), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.LoadPageIndex(nil, o.fetch(t, b.PageIndexSpans(nil))); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestWrongPageIndex: offsets that contradict themselves leave whole chunks, row numbers that contradict the pages are noticed while
// decoding.
func TestWrongPageIndex(t *testing.T) {
	build := func(change func(*rawIndex)) object {
		f := newRawFile(t, 6)
		f.column(requiredLong("x"), []rawPage{longPage(1, 2), longPage(3, 4), longPage(5, 6)}, func(_ *format.ColumnChunk, x *rawIndex) { change(x) })
		return f.finish()
	}
	for name, change := range map[string]func(*rawIndex){
		"offset inside a page": func(x *rawIndex) { x.offsets.PageLocations[1].Offset += 3 },
		"rows go back":         func(x *rawIndex) { x.offsets.PageLocations[2].FirstRowIndex = 0 },
		"page missing":         func(x *rawIndex) { x.offsets.PageLocations = x.offsets.PageLocations[:2] },
		"first row wrong":      func(x *rawIndex) { x.offsets.PageLocations[1].FirstRowIndex = 1 },
		"no pages":             func(x *rawIndex) { x.offsets.PageLocations = nil },
	} {
		want := [][]any{{uint32(3), int64(4)}}
		if got := pick(t, build(change), 3); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	o := build(func(x *rawIndex) { x.offsets.PageLocations[1].FirstRowIndex = 1 })
	b := bound1(t, o)
	rows := rowset.FromRows(6, []uint32{3})
	err := b.Decode(context.Background(), o.fetch(t, b.Spans(rows)), rows, 0, func(*column.Batch) error { return nil })
	if !parquetio.PageIndexWrong(err) {
		t.Errorf("wrong row numbers went unnoticed: %v", err)
	}
}

// TestSpansAreSmall: one row of many pages fetches one page of each column and the dictionary.
func TestSpansAreSmall(t *testing.T) {
	f := newRawFile(t, 8)
	f.column(requiredLong("x"), []rawPage{longPage(1, 2), longPage(3, 4), longPage(5, 6), longPage(7, 8)}, nil)
	o := f.finish()
	b := bound1(t, o)
	rows := rowset.FromRows(8, []uint32{2, 7})
	spans := b.Spans(rows)
	if len(spans) != 2 || !bytes.Contains(o[spans[0].Off:spans[0].End()], longs(3, 4)) || spans[0].Len > 60 {
		t.Errorf("spans %+v", spans)
	}
	if got := b.PageStarts(0); !reflect.DeepEqual(got, []uint32{0, 2, 4, 6}) {
		t.Errorf("pages start at %v", got)
	}
}
