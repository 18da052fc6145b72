package render

import (
	"fmt"
	"io"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// records writes batches through one of Arrow's writers.
type records struct {
	schema *arrow.Schema
	write  func(arrow.RecordBatch) error
	close  func() error
}

func newArrow(w io.Writer, fields []column.Field) (*records, error) {
	schema, err := arrowSchema(fields)
	if err != nil {
		return nil, err
	}
	to := ipc.NewWriter(w, ipc.WithSchema(schema))
	return &records{schema: schema, write: to.Write, close: to.Close}, nil
}

func newParquet(w io.Writer, fields []column.Field) (*records, error) {
	schema, err := arrowSchema(fields)
	if err != nil {
		return nil, err
	}
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCreatedBy("skomer"))
	to, err := pqarrow.NewFileWriter(schema, unclosed{w}, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, fmt.Errorf("parquet output: %w", err)
	}
	return &records{schema: schema, write: to.WriteBuffered, close: to.Close}, nil
}

// unclosed hides Close: the caller owns the writer.
type unclosed struct{ io.Writer }

func (r *records) Write(b *column.Batch) error {
	arrays := make([]arrow.Array, len(b.Cols))
	for i, col := range b.Cols {
		data := arrowData(col, r.schema.Field(i).Type)
		arrays[i] = array.MakeFromData(data)
		data.Release()
		defer arrays[i].Release()
	}
	rec := array.NewRecordBatch(r.schema, arrays, int64(b.Rows))
	defer rec.Release()
	return r.write(rec)
}

func (r *records) Close() error { return r.close() }

func arrowSchema(fields []column.Field) (*arrow.Schema, error) {
	out, err := arrowFields(fields)
	if err != nil {
		return nil, err
	}
	return arrow.NewSchema(out, nil), nil
}

func arrowFields(fields []column.Field) ([]arrow.Field, error) {
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		t, err := arrowType(f.Type)
		if err != nil {
			return nil, fault.About(f.Name, err)
		}
		out[i] = arrow.Field{Name: f.Name, Type: t, Nullable: !f.Required}
		if f.ID > 0 {
			out[i].Metadata = arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{strconv.Itoa(f.ID)})
		}
	}
	return out, nil
}

var arrowPrimitive = map[column.Kind]arrow.DataType{
	column.Unknown:     arrow.Null,
	column.Bool:        arrow.FixedWidthTypes.Boolean,
	column.Int:         arrow.PrimitiveTypes.Int32,
	column.Long:        arrow.PrimitiveTypes.Int64,
	column.Float:       arrow.PrimitiveTypes.Float32,
	column.Double:      arrow.PrimitiveTypes.Float64,
	column.Date:        arrow.FixedWidthTypes.Date32,
	column.Time:        arrow.FixedWidthTypes.Time64us,
	column.Timestamp:   &arrow.TimestampType{Unit: arrow.Microsecond},
	column.TimestampTZ: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
	column.TimestampNS: &arrow.TimestampType{Unit: arrow.Nanosecond},
	column.TimestampNZ: &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"},
	column.String:      arrow.BinaryTypes.String,
	column.Binary:      arrow.BinaryTypes.Binary,
	column.Variant:     arrow.BinaryTypes.Binary,
	column.Geometry:    arrow.BinaryTypes.Binary,
	column.Geography:   arrow.BinaryTypes.Binary,
}

func arrowType(t column.Type) (arrow.DataType, error) {
	if p, ok := arrowPrimitive[t.Kind]; ok {
		return p, nil
	}
	switch t.Kind {
	case column.Decimal:
		return &arrow.Decimal128Type{Precision: int32(t.Width), Scale: int32(t.Scale)}, nil
	case column.UUID:
		return extensions.NewUUIDType(), nil
	case column.Fixed:
		return &arrow.FixedSizeBinaryType{ByteWidth: t.Width}, nil
	}
	kids, err := arrowFields(t.Fields)
	if err != nil {
		return nil, err
	}
	switch t.Kind {
	case column.Struct:
		return arrow.StructOf(kids...), nil
	case column.List:
		return arrow.ListOfField(kids[0]), nil
	case column.Map:
		kids[0].Nullable = false // Iceberg's map keys are never null
		return arrow.MapOfFields(kids[0], kids[1]), nil
	default:
		return nil, fault.New(fault.Unsupported, "", "type %s has no Arrow form here", t)
	}
}

// arrowData views a vector as Arrow's array data, without copying except where it has a dictionary.
func arrowData(v *column.Vector, t arrow.DataType) *array.Data {
	v = flat(v)
	nulls := v.Nulls()
	buffers := []*memory.Buffer{nil}
	if nulls > 0 {
		buffers[0] = memory.NewBufferBytes(column.BytesOf(v.Valid))
	}
	var kids []arrow.ArrayData
	switch {
	case v.Type.Kind == column.Unknown:
		nulls = v.Len
	case v.Type.Kind.VarLen():
		buffers = append(buffers, memory.NewBufferBytes(column.BytesOf(v.Off)), memory.NewBufferBytes(v.Bytes))
	case v.Type.Kind == column.Struct:
		for i, f := range t.(*arrow.StructType).Fields() {
			kids = append(kids, arrowData(v.Kids[i], f.Type))
		}
	case v.Type.Kind == column.List:
		buffers = append(buffers, memory.NewBufferBytes(column.BytesOf(v.Off)))
		kids = append(kids, arrowData(v.Kids[0], t.(*arrow.ListType).Elem()))
	case v.Type.Kind == column.Map:
		entry := t.(*arrow.MapType).Elem().(*arrow.StructType)
		key, value := arrowData(v.Kids[0], entry.Field(0).Type), arrowData(v.Kids[1], entry.Field(1).Type)
		buffers = append(buffers, memory.NewBufferBytes(column.BytesOf(v.Off)))
		kids = append(kids, array.NewData(entry, v.Kids[0].Len, []*memory.Buffer{nil}, []arrow.ArrayData{key, value}, 0, 0))
	default:
		buffers = append(buffers, memory.NewBufferBytes(v.Fixed))
	}
	return array.NewData(t, v.Len, buffers, kids, nulls, 0)
}

// flat is the vector with its own dictionary written out.
func flat(v *column.Vector) *column.Vector {
	if v.Dict == nil {
		return v
	}
	b := column.NewBuilder(v.Type)
	for i := range v.Len {
		if x, ok := v.Value(i); ok {
			b.Append(x)
		} else {
			b.AppendNull()
		}
	}
	return b.Finish()
}
