package parquetio_test

import (
	"encoding/binary"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// rawFile builds files page by page, also ones that no writer would write.
type rawFile struct {
	t       testing.TB
	buf     []byte
	schema  []format.SchemaElement
	columns []format.ColumnChunk
	indexes []rawIndex
	rows    int64
	note    string // key-value metadata
}

type rawIndex struct {
	offsets format.OffsetIndex
	bounds  *format.ColumnIndex
}

func newRawFile(t testing.TB, rows int64) *rawFile {
	f := &rawFile{t: t, buf: []byte("PAR1"), rows: rows}
	f.schema = []format.SchemaElement{{Name: "root"}}
	return f
}

func (f *rawFile) thrift(v any) []byte {
	b, err := thrift.Marshal(&thrift.CompactProtocol{}, v)
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

// rawPage is one V1 data page, or a dictionary.
type rawPage struct {
	rows, values int
	encoding     format.Encoding
	body         []byte
	dictionary   bool
}

// page appends a page and returns its offset and size.
func (f *rawFile) page(p rawPage) (int64, int32) {
	h := format.PageHeader{UncompressedPageSize: int32(len(p.body)), CompressedPageSize: int32(len(p.body))}
	if p.dictionary {
		h.Type = format.DictionaryPage
		h.DictionaryPageHeader = thrift.New(format.DictionaryPageHeader{NumValues: int32(p.values)})
	} else {
		h.DataPageHeader = thrift.New(format.DataPageHeader{
			NumValues: int32(p.values), Encoding: p.encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
		})
	}
	off := int64(len(f.buf))
	f.buf = append(append(f.buf, f.thrift(&h)...), p.body...)
	return off, int32(int64(len(f.buf)) - off)
}

// column appends a required or optional flat column of pages, with an offset index. change may spoil the chunk.
func (f *rawFile) column(e format.SchemaElement, pages []rawPage, change func(*format.ColumnChunk, *rawIndex)) {
	c := format.ColumnChunk{MetaData: format.ColumnMetaData{
		Type: e.Type.V, PathInSchema: thrift.Slice[string]{e.Name}, Encoding: thrift.Slice[format.Encoding]{format.Plain},
	}}
	var x rawIndex
	start, row := int64(len(f.buf)), int64(0)
	for _, p := range pages {
		off, size := f.page(p)
		if p.dictionary {
			c.MetaData.DictionaryPageOffset = off
			continue
		}
		if c.MetaData.DataPageOffset == 0 {
			c.MetaData.DataPageOffset = off
		}
		x.offsets.PageLocations = append(x.offsets.PageLocations, format.PageLocation{Offset: off, CompressedPageSize: size, FirstRowIndex: row})
		row += int64(p.rows)
		c.MetaData.NumValues += int64(p.values)
	}
	c.MetaData.TotalCompressedSize = int64(len(f.buf)) - start
	c.MetaData.TotalUncompressedSize = c.MetaData.TotalCompressedSize
	if change != nil {
		change(&c, &x)
	}
	f.schema = append(f.schema, e)
	f.columns = append(f.columns, c)
	f.indexes = append(f.indexes, x)
}

func (f *rawFile) finish() object {
	for i := range f.columns {
		if b := f.indexes[i].bounds; b != nil {
			f.columns[i].ColumnIndexOffset = int64(len(f.buf))
			f.buf = append(f.buf, f.thrift(b)...)
			f.columns[i].ColumnIndexLength = int32(int64(len(f.buf)) - f.columns[i].ColumnIndexOffset)
		}
		f.columns[i].OffsetIndexOffset = int64(len(f.buf))
		f.buf = append(f.buf, f.thrift(&f.indexes[i].offsets)...)
		f.columns[i].OffsetIndexLength = int32(int64(len(f.buf)) - f.columns[i].OffsetIndexOffset)
	}
	f.schema[0].NumChildren = thrift.New(int32(len(f.columns)))
	meta := format.FileMetaData{
		Version: 1, Schema: f.schema, NumRows: f.rows, CreatedBy: "raw version 1.0.0",
		RowGroups: thrift.Slice[format.RowGroup]{{Columns: f.columns, NumRows: f.rows}},
	}
	if f.note != "" {
		meta.KeyValueMetadata = thrift.Slice[format.KeyValue]{{Key: "note", Value: f.note}}
	}
	for range f.columns {
		meta.ColumnOrders = append(meta.ColumnOrders, format.ColumnOrder{Value: &format.TypeDefinedOrder{}})
	}
	b := f.thrift(&meta)
	f.buf = append(f.buf, b...)
	f.buf = binary.LittleEndian.AppendUint32(f.buf, uint32(len(b)))
	return append(f.buf, "PAR1"...)
}

func longs(v ...int64) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}

func longPage(v ...int64) rawPage { return rawPage{rows: len(v), values: len(v), body: longs(v...)} }

func requiredLong(name string) format.SchemaElement {
	return format.SchemaElement{Name: name, Type: thrift.New(format.Int64), RepetitionType: thrift.New(format.Required)}
}
