package render

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// primitives is one value of every primitive type and how JSON shows it.
var primitives = []struct {
	t    column.Type
	v    column.Value
	json string
}{
	{column.Of(column.Bool), column.BoolValue(true), `true`},
	{column.Of(column.Int), column.IntValue(column.Int, -7), `-7`},
	{column.Of(column.Long), column.IntValue(column.Long, math.MinInt64), `-9223372036854775808`},
	{column.Of(column.Float), column.FloatValue(0.1), `0.1`},
	{column.Of(column.Double), column.DoubleValue(math.Inf(-1)), `"-Inf"`},
	{column.DecimalOf(9, 2), column.DecimalValue(-1, math.MaxUint64-4, 2), `"-0.05"`},
	{column.DecimalOf(38, 0), column.DecimalValue(1, 0, 0), `"18446744073709551616"`},
	{column.Of(column.Date), column.IntValue(column.Date, -1), `"1969-12-31"`},
	{column.Of(column.Time), column.IntValue(column.Time, 1_500_000), `"00:00:01.5"`},
	{column.Of(column.Timestamp), column.IntValue(column.Timestamp, 978307260000000), `"2001-01-01T00:01:00"`},
	{column.Of(column.TimestampTZ), column.IntValue(column.TimestampTZ, -1), `"1969-12-31T23:59:59.999999+00:00"`},
	{column.Of(column.TimestampNS), column.IntValue(column.TimestampNS, 1), `"1970-01-01T00:00:00.000000001"`},
	{column.Of(column.TimestampNZ), column.IntValue(column.TimestampNZ, 0), `"1970-01-01T00:00:00+00:00"`},
	{column.Of(column.String), column.StringValue("a\"b\nü\x1b"), `"a\"b\nü\u001b"`},
	{column.Of(column.UUID), column.BytesValue(column.UUID, []byte("0123456789abcdef")), `"30313233-3435-3637-3839-616263646566"`},
	{column.FixedOf(2), column.BytesValue(column.Fixed, []byte{0, 255}), `"00ff"`},
	{column.Of(column.Binary), column.BytesValue(column.Binary, nil), `""`},
}

// sample is two rows of every primitive type and of nested ones: the value, then null.
func sample() ([]column.Field, *column.Batch) {
	var fields []column.Field
	batch := &column.Batch{Rows: 2}
	add := func(t column.Type, v *column.Vector) {
		fields = append(fields, column.Field{ID: len(fields) + 1, Name: "c" + string(rune('a'+len(fields))), Type: t})
		batch.Cols = append(batch.Cols, v)
	}
	for _, p := range primitives {
		b := column.NewBuilder(p.t)
		b.Append(p.v)
		b.AppendNull()
		add(p.t, b.Finish())
	}
	ints := column.NewBuilder(column.Of(column.Int))
	texts := column.NewBuilder(column.Of(column.String))
	for i, s := range []string{"x", "y"} {
		ints.Append(column.IntValue(column.Int, int64(i)))
		texts.Append(column.StringValue(s))
	}
	kid := func(id int, name string, k column.Kind) column.Field {
		return column.Field{ID: id, Name: name, Type: column.Of(k)}
	}
	i, s := ints.Finish(), texts.Finish()
	second := []uint64{1}
	list := column.Type{Kind: column.List, Fields: []column.Field{kid(90, "element", column.Int)}}
	add(list, &column.Vector{Type: list, Len: 2, Valid: second, Off: []uint32{0, 2, 2}, Kids: []*column.Vector{i}})
	object := column.Type{Kind: column.Map, Fields: []column.Field{kid(91, "key", column.String), kid(92, "value", column.Int)}}
	add(object, &column.Vector{Type: object, Len: 2, Valid: second, Off: []uint32{0, 2, 2}, Kids: []*column.Vector{s, i}})
	pairs := column.Type{Kind: column.Map, Fields: []column.Field{kid(93, "key", column.Int), kid(94, "value", column.String)}}
	add(pairs, &column.Vector{Type: pairs, Len: 2, Valid: second, Off: []uint32{0, 1, 1}, Kids: []*column.Vector{i, s}})
	group := column.Type{Kind: column.Struct, Fields: []column.Field{kid(95, "n", column.Int), kid(96, "s", column.String)}}
	add(group, &column.Vector{Type: group, Len: 2, Valid: second, Kids: []*column.Vector{i, s}})
	none := column.Of(column.Unknown)
	add(none, &column.Vector{Type: none, Len: 2})
	word := column.StringValue("again")
	add(column.Of(column.String), column.Constant(column.Of(column.String), &word, 2))
	return fields, batch
}

// wantJSON is the first row of sample in field order.
func wantJSON() []string {
	var want []string
	for _, p := range primitives {
		want = append(want, p.json)
	}
	return append(want, `[0,1]`, `{"x":0,"y":1}`, `[{"key":0,"value":"x"}]`, `{"n":0,"s":"x"}`, `null`, `"again"`)
}

func write(t *testing.T, format string) *bytes.Buffer {
	t.Helper()
	fields, batch := sample()
	var out bytes.Buffer
	sink, err := New(format, &out, fields)
	require.NoError(t, err)
	require.NoError(t, sink.Write(batch))
	require.NoError(t, sink.Close())
	return &out
}

func TestJSONLines(t *testing.T) {
	fields, _ := sample()
	lines := strings.Split(strings.TrimSuffix(write(t, "json").String(), "\n"), "\n")
	require.Len(t, lines, 2)
	want := "{"
	for i, v := range wantJSON() {
		if i > 0 {
			want += ","
		}
		want += `"` + fields[i].Name + `":` + v
	}
	require.Equal(t, want+"}", lines[0])
	var second map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &second))
	for i, f := range fields[:len(fields)-1] {
		require.Nil(t, second[f.Name], "field %d", i)
	}
}

func TestCSVLeavesNullsEmpty(t *testing.T) {
	text := write(t, "csv").String()
	require.True(t, strings.HasPrefix(text, "ca,cb,cc,"))
	require.True(t, strings.HasSuffix(text, "\n"+strings.Repeat(",", len(wantJSON())-1)+"again\n"), text)
	require.Contains(t, text, `"{""x"":0,""y"":1}"`)
}

func TestTableKeepsControlsOffTheTerminal(t *testing.T) {
	text := write(t, "table").String()
	require.NotContains(t, text, "\x1b")
	require.Contains(t, text, `a"b\x0aü\x1b`)
	require.Contains(t, text, "NULL")
}

func TestTableGoesOnInAlignedBlocks(t *testing.T) {
	b := column.NewBuilder(column.Of(column.Long))
	for i := range tableRows + 1 {
		b.Append(column.IntValue(column.Long, int64(tableRows-i)))
	}
	v := b.Finish()
	var out bytes.Buffer
	sink := newTable(&out, []column.Field{{Name: "n", Type: v.Type}})
	require.NoError(t, sink.Write(&column.Batch{Rows: v.Len, Cols: []*column.Vector{v}}))
	require.NoError(t, sink.Close())
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	require.Len(t, lines, tableRows+3)
	require.Equal(t, "   0", lines[len(lines)-1], "the last block is as wide as the first")
}

func TestArrowStreamHoldsTheSameValues(t *testing.T) {
	r, err := ipc.NewReader(write(t, "arrow"))
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next())
	rec := r.RecordBatch()
	for i, want := range wantJSON() {
		text, err := array.NewSlice(rec.Column(i), 0, 1).MarshalJSON()
		require.NoError(t, err)
		if rec.Schema().Field(i).Type.Name() != "map" && i > 12 && i != 15 && i != 16 {
			require.JSONEq(t, "["+want+"]", string(text), "column %d", i)
		}
		if i < len(primitives) {
			require.True(t, rec.Column(i).IsNull(1), "column %d", i)
		}
		id, ok := rec.Schema().Field(i).Metadata.GetValue("PARQUET:field_id")
		require.True(t, ok)
		require.NotEmpty(t, id)
	}
}

func TestParquetFileHoldsTheSameRows(t *testing.T) {
	raw := write(t, "parquet").Bytes()
	pf, err := file.NewParquetReader(bytes.NewReader(raw))
	require.NoError(t, err)
	require.EqualValues(t, 2, pf.NumRows())
	reader, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	require.NoError(t, err)
	got, err := reader.ReadTable(t.Context())
	require.NoError(t, err)
	defer got.Release()
	require.EqualValues(t, len(wantJSON()), got.NumCols())
	require.Equal(t, int32(1), pf.MetaData().Schema.Root().Field(0).FieldID())
}

func TestEmptyAnswersStillHaveAShape(t *testing.T) {
	fields, _ := sample()
	for _, format := range Formats() {
		var out bytes.Buffer
		sink, err := New(format, &out, fields)
		require.NoError(t, err)
		require.NoError(t, sink.Close())
		if format == "json" {
			require.Empty(t, out.String())
		} else {
			require.NotEmpty(t, out.String(), format)
		}
	}
	_, err := New("xml", nil, fields)
	require.True(t, fault.Is(err, fault.Invalid))
}
