package parquetio_test

import (
	"context"
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/rowset"
)

// listPage is a page of a bare repeated long: per row its values, none of them empty. more goes on with the row of the page before.
func listPage(more bool, rows ...[]int64) rawPage {
	p := rawPage{}
	var reps, values []byte
	for _, row := range rows {
		for i, v := range row {
			again := i > 0 || more && p.values == 0
			reps = append(reps, 2, map[bool]byte{true: 1}[again]) // a run of one level
			if !again {
				p.rows++
			}
			p.values++
			values = binary.LittleEndian.AppendUint64(values, uint64(v))
		}
	}
	defs := binary.AppendUvarint(nil, uint64(p.values)<<1)
	defs = append(defs, 1)
	for _, levels := range [][]byte{reps, defs} {
		p.body = binary.LittleEndian.AppendUint32(p.body, uint32(len(levels)))
		p.body = append(p.body, levels...)
	}
	p.body = append(p.body, values...)
	return p
}

func repeatedLong(name string) format.SchemaElement {
	return format.SchemaElement{Name: name, Type: thrift.New(format.Int64), RepetitionType: thrift.New(format.Repeated)}
}

// TestPagesFillTheirPlaces: what lies at the place that a page index names must be a page of that length, kind and number of rows; else the
// chunk is read whole, and the answer is the same.
func TestPagesFillTheirPlaces(t *testing.T) {
	flat := func(change func(*rawIndex)) object {
		f := newRawFile(t, 6)
		f.column(requiredLong("x"), []rawPage{longPage(1, 2), longPage(3, 4), longPage(5, 6)}, func(_ *format.ColumnChunk, x *rawIndex) { change(x) })
		return f.finish()
	}
	dictionary := rawPage{dictionary: true, values: 6, body: longs(1, 2, 3, 4, 5, 6)}
	coded := func(a, b byte) rawPage { // two indexes of three bits
		return rawPage{rows: 2, values: 2, encoding: format.RLEDictionary, body: []byte{3, 3, a | b<<3, 0, 0}}
	}
	packed := func(change func(*rawIndex)) object {
		f := newRawFile(t, 6)
		f.column(requiredLong("x"), []rawPage{dictionary, coded(0, 1), coded(2, 3), coded(4, 5)}, func(_ *format.ColumnChunk, x *rawIndex) { change(x) })
		return f.finish()
	}
	lists := func(change func(*rawIndex)) object {
		f := newRawFile(t, 6)
		f.column(repeatedLong("x"), []rawPage{
			listPage(false, []int64{1}, []int64{2, 2}), listPage(false, []int64{3}, []int64{4}), listPage(false, []int64{5, 5}, []int64{6}),
		}, func(_ *format.ColumnChunk, x *rawIndex) { change(x) })
		return f.finish()
	}
	move := func(x *rawIndex, page int, by int32) { // the seam before a page
		at := x.offsets.PageLocations
		at[page-1].CompressedPageSize += by
		at[page].CompressedPageSize -= by
		at[page].Offset += int64(by)
	}
	row3 := [][]any{{uint32(3), int64(4)}}
	list3 := [][]any{{uint32(3), []any{int64(4)}}}
	for _, c := range []struct {
		name string
		file object
		want [][]any
		good bool
	}{
		{"as it is", flat(func(*rawIndex) {}), row3, true},
		{"page starts later", flat(func(x *rawIndex) { move(x, 1, 3) }), row3, false},
		{"page starts earlier", flat(func(x *rawIndex) { move(x, 1, -3) }), row3, false},
		{"page ends later", flat(func(x *rawIndex) { move(x, 2, 5) }), row3, false},
		{"page ends earlier", flat(func(x *rawIndex) { move(x, 2, -5) }), row3, false},
		{"two pages as one", flat(func(x *rawIndex) {
			at := x.offsets.PageLocations
			at[1].CompressedPageSize += at[2].CompressedPageSize
			x.offsets.PageLocations = at[:2]
		}), row3, false},
		{"a dictionary", packed(func(*rawIndex) {}), row3, true},
		{"dictionary as a page of rows", packed(func(x *rawIndex) {
			first := x.offsets.PageLocations[0]
			size := int32(first.Offset - 4)
			at := append([]format.PageLocation{{Offset: 4, CompressedPageSize: size}}, x.offsets.PageLocations...)
			at[1].FirstRowIndex, at[2].FirstRowIndex, at[3].FirstRowIndex = 1, 2, 4
			x.offsets.PageLocations = at
		}), [][]any{{uint32(0), int64(1)}}, false},
		{"page of rows as a part of the dictionary", packed(func(x *rawIndex) {
			x.offsets.PageLocations = x.offsets.PageLocations[1:]
			x.offsets.PageLocations[0].FirstRowIndex = 0
		}), row3, false},
		{"lists", lists(func(*rawIndex) {}), list3, true},
		{"more rows in a page of lists than stated", lists(func(x *rawIndex) { x.offsets.PageLocations[2].FirstRowIndex = 3 }), [][]any{{uint32(2), []any{int64(3)}}}, false},
		{"fewer rows in a page of lists than stated", lists(func(x *rawIndex) { x.offsets.PageLocations[2].FirstRowIndex = 5 }), list3, false},
	} {
		row := c.want[0][0].(uint32)
		if got := pick(t, c.file, row); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		b := bound1(t, c.file)
		rows := rowset.FromRows(6, []uint32{row})
		err := b.Decode(context.Background(), c.file.fetch(t, b.Spans(rows)), rows, 0, func(*column.Batch) error { return nil })
		if wrong := parquetio.PageIndexWrong(err); wrong == c.good || c.good && err != nil {
			t.Errorf("%s: decoding by the page index says %v", c.name, err)
		}
	}
}

// TestRowsOverPages: a row of a list may go on in the next page, which begins none.
func TestRowsOverPages(t *testing.T) {
	f := newRawFile(t, 4)
	f.column(repeatedLong("x"), []rawPage{
		listPage(false, []int64{1}, []int64{2, 2}), listPage(true, []int64{2, 2}), listPage(false, []int64{3}), listPage(false, []int64{4}),
	}, nil)
	o := f.finish()
	want := [][]any{{uint32(1), []any{int64(2), int64(2), int64(2), int64(2)}}}
	if got := pick(t, o, 1); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
