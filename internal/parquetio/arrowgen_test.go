package parquetio_test

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// flatTypes are the primitive Arrow types that a table is drawn from.
var flatTypes = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32,
	arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32,
	arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String,
	arrow.BinaryTypes.Binary, &arrow.FixedSizeBinaryType{ByteWidth: 7}, &arrow.Decimal128Type{Precision: 9, Scale: 2},
	&arrow.Decimal128Type{Precision: 18, Scale: 0}, &arrow.Decimal128Type{Precision: 38, Scale: 6}, arrow.FixedWidthTypes.Date32,
	arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns,
	&arrow.TimestampType{Unit: arrow.Millisecond}, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	&arrow.TimestampType{Unit: arrow.Nanosecond}, arrow.FixedWidthTypes.Float16,
}

type generator struct{ *rand.Rand }

func (g generator) typ(depth int) arrow.DataType {
	if depth == 0 || g.IntN(3) > 0 {
		return flatTypes[g.IntN(len(flatTypes))]
	}
	switch g.IntN(3) {
	case 0:
		return arrow.ListOfField(arrow.Field{Name: "element", Type: g.typ(depth - 1), Nullable: g.IntN(3) > 0})
	case 1:
		var fields []arrow.Field
		for i := range 1 + g.IntN(3) {
			fields = append(fields, arrow.Field{Name: fmt.Sprintf("f%d", i), Type: g.typ(depth - 1), Nullable: g.IntN(3) > 0})
		}
		return arrow.StructOf(fields...)
	default:
		return arrow.MapOf(arrow.BinaryTypes.String, g.typ(depth-1))
	}
}

// pool is a small set of interesting integers, so that dictionaries form.
func (g generator) integer(bits int) int64 {
	switch g.IntN(8) {
	case 0:
		return 0
	case 1:
		return -1 << (bits - 1)
	case 2:
		return 1<<(bits-1) - 1
	case 3:
		return g.Int64() >> (64 - bits)
	default:
		return int64(g.IntN(20)) - 10
	}
}

func (g generator) float() float64 {
	return []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1.5, -2.25, float64(float32(g.NormFloat64()))}[g.IntN(8)]
}

func (g generator) word() string {
	words := []string{"", "a", "aé", "az", "🚀", "longer than the sixteen bytes of a truncated bound", "\x00", "zz"}
	if g.IntN(3) == 0 {
		return fmt.Sprint(g.IntN(1e6))
	}
	return words[g.IntN(len(words))]
}

// fill appends one value to b and returns it as render would.
func (g generator) fill(b array.Builder, nullable bool, nulls float64) any {
	if nullable && g.Float64() < nulls {
		b.AppendNull()
		return nil
	}
	switch b := b.(type) {
	case *array.ListBuilder:
		b.Append(true)
		f := b.Type().(*arrow.ListType).ElemField()
		out := []any{}
		for range g.IntN(4) {
			out = append(out, g.fill(b.ValueBuilder(), f.Nullable, nulls))
		}
		return out
	case *array.StructBuilder:
		b.Append(true)
		out := []any{}
		for i, f := range b.Type().(*arrow.StructType).Fields() {
			out = append(out, g.fill(b.FieldBuilder(i), f.Nullable, nulls))
		}
		return out
	case *array.MapBuilder:
		b.Append(true)
		out := []pair{}
		for i := range g.IntN(4) {
			key := fmt.Sprint("k", i)
			b.KeyBuilder().(*array.StringBuilder).Append(key)
			out = append(out, pair{key, g.fill(b.ItemBuilder(), true, nulls)})
		}
		return out
	}
	return g.fillFlat(b)
}

func (g generator) fillFlat(b array.Builder) any {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		v := g.IntN(2) == 0
		b.Append(v)
		return v
	case *array.Int8Builder:
		v := g.integer(8)
		b.Append(int8(v))
		return v
	case *array.Int16Builder:
		v := g.integer(16)
		b.Append(int16(v))
		return v
	case *array.Int32Builder:
		v := g.integer(32)
		b.Append(int32(v))
		return v
	case *array.Int64Builder:
		v := g.integer(64)
		b.Append(v)
		return v
	case *array.Uint8Builder:
		v := uint8(g.integer(8))
		b.Append(v)
		return int64(v)
	case *array.Uint16Builder:
		v := uint16(g.integer(16))
		b.Append(v)
		return int64(v)
	case *array.Uint32Builder:
		v := uint32(g.integer(32))
		b.Append(v)
		return int64(v)
	case *array.Uint64Builder:
		v := uint64(g.integer(64))
		b.Append(v)
		return new(big.Int).SetUint64(v)
	case *array.Float16Builder:
		v := float16.New(float32(g.float()))
		b.Append(v)
		return v.Float32()
	case *array.Float32Builder:
		v := float32(g.float())
		b.Append(v)
		return v
	case *array.Float64Builder:
		v := g.float()
		b.Append(v)
		return v
	case *array.StringBuilder:
		v := g.word()
		b.Append(v)
		return v
	case *array.BinaryBuilder:
		v := g.word() + "\xff"
		b.Append([]byte(v))
		return v
	case *array.FixedSizeBinaryBuilder:
		v := fmt.Sprintf("%07d", g.IntN(100))
		b.Append([]byte(v))
		return v
	case *array.Decimal128Builder:
		return g.fillDecimal(b)
	}
	return g.fillTime(b)
}

func (g generator) fillDecimal(b *array.Decimal128Builder) any {
	precision := b.Type().(*arrow.Decimal128Type).Precision
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	v := new(big.Int).Mul(big.NewInt(g.Int64()), big.NewInt(g.Int64()))
	if g.IntN(2) == 0 {
		v = big.NewInt(int64(g.IntN(2000)) - 1000)
	}
	v.Rem(v, limit)
	b.Append(decimal128.FromBigInt(v))
	return v
}

func (g generator) fillTime(b array.Builder) any {
	switch b := b.(type) {
	case *array.Date32Builder:
		v := g.integer(20)
		b.Append(arrow.Date32(v))
		return v
	case *array.Time32Builder:
		v := int64(g.IntN(86_400_000))
		b.Append(arrow.Time32(v))
		return v * 1000
	case *array.Time64Builder:
		if b.Type().(*arrow.Time64Type).Unit == arrow.Nanosecond {
			v := int64(g.IntN(86_400_000_000_000))
			b.Append(arrow.Time64(v))
			return v / 1000
		}
		v := int64(g.IntN(86_400_000_000))
		b.Append(arrow.Time64(v))
		return v
	case *array.TimestampBuilder:
		v := g.integer(50)
		b.Append(arrow.Timestamp(v))
		if b.Type().(*arrow.TimestampType).Unit == arrow.Millisecond {
			return v * 1000
		}
		return v
	}
	panic(fmt.Sprintf("no values for %s", b.Type()))
}

// table is a random file with its rows, column by column.
type table struct {
	data   object
	values [][]any // by column, then row
	note   string
}

func (g generator) table(t testing.TB) table {
	var fields []arrow.Field
	for i := range 1 + g.IntN(5) {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: g.typ(2), Nullable: g.IntN(3) > 0})
	}
	schema := arrow.NewSchema(fields, nil)
	rows := g.IntN(400)
	if g.IntN(4) == 0 {
		rows = 2000 + g.IntN(6000)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	out := table{values: make([][]any, len(fields))}
	for c, f := range fields {
		nulls := []float64{0, 0.1, 0.5, 1}[g.IntN(4)]
		for range rows {
			out.values[c] = append(out.values[c], g.fill(b.Field(c), f.Nullable, nulls))
		}
	}
	rec := b.NewRecordBatch()
	props, note := g.properties(schema)
	out.note = fmt.Sprintf("%v, %d rows, %s", schema, rows, note)
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &buf, props, pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(rec); err != nil { // this writer trips over some of its own settings
		t.Logf("%s: %v", out.note, err)
		return g.table(t)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out.data = buf.Bytes()
	return out
}

func (g generator) properties(schema *arrow.Schema) (*parquet.WriterProperties, string) {
	codecs := []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Brotli, compress.Codecs.Zstd, compress.Codecs.Lz4Raw}
	codec := codecs[g.IntN(len(codecs))]
	version := []parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2}[g.IntN(2)]
	dict := g.IntN(2) == 0
	pageIndex := g.IntN(3) > 0
	props := []parquet.WriterProperty{
		parquet.WithCompression(codec), parquet.WithDataPageVersion(version), parquet.WithDictionaryDefault(dict),
		parquet.WithDataPageSize(int64(64 << g.IntN(8))), parquet.WithBatchSize(int64(1 + g.IntN(100))), parquet.WithMaxRowGroupLength(int64(1 + g.IntN(3000))),
		parquet.WithPageIndexEnabled(pageIndex), parquet.WithDictionaryPageSizeLimit(int64(16 << g.IntN(10))),
	}
	encodings := ""
	if !dict {
		for _, f := range schema.Fields() {
			if e, ok := g.encoding(f.Type); ok {
				props = append(props, parquet.WithEncodingFor(f.Name, e))
				encodings += fmt.Sprintf(" %s %s", f.Name, e)
			}
		}
	}
	return parquet.NewWriterProperties(props...), fmt.Sprintf("%s V%d dictionary %v page index %v%s", codec, version+1, dict, pageIndex, encodings)
}

func (g generator) encoding(t arrow.DataType) (parquet.Encoding, bool) {
	if g.IntN(3) == 0 {
		return 0, false
	}
	switch t.ID() {
	case arrow.INT32, arrow.INT64, arrow.TIMESTAMP:
		return []parquet.Encoding{parquet.Encodings.DeltaBinaryPacked, parquet.Encodings.ByteStreamSplit}[g.IntN(2)], true
	case arrow.FLOAT32, arrow.FLOAT64:
		return parquet.Encodings.ByteStreamSplit, true
	case arrow.STRING, arrow.BINARY:
		return []parquet.Encoding{parquet.Encodings.DeltaByteArray, parquet.Encodings.DeltaLengthByteArray}[g.IntN(2)], true
	}
	return 0, false // not RLE booleans: this writer repeats a page's values in the next one
}
