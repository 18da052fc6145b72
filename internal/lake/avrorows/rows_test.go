package avrorows_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/avrorows"
	"github.com/skomerdb/skomer/internal/realdata"
)

// write makes an Avro file with another library.
func write(t testing.TB, schema string, records ...any) []byte {
	t.Helper()
	s, err := avro.Parse(schema)
	require.NoError(t, err)
	var out bytes.Buffer
	w, err := ocf.NewWriter(&out, s, ocf.WithSchema(schema))
	require.NoError(t, err)
	for _, r := range records {
		require.NoError(t, w.Encode(r))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func one(t *testing.T, b []byte, f column.Field, names []facts.MappedField) (*column.Vector, error) {
	t.Helper()
	file, err := avrorows.Open("x.avro", b, names)
	require.NoError(t, err)
	var got *column.Vector
	err = file.Each([]column.Path{{f}}, 100, func(b *column.Batch) error {
		got = b.Cols[0]
		return nil
	})
	return got, err
}

type object = map[string]any

// TestNested: maps in both forms, lists of structs, and structs with fields that the file lacks.
func TestNested(t *testing.T) {
	five := column.IntValue(column.Int, 5)
	pair := func(value column.Type) column.Type {
		return column.Type{Kind: column.Map, Fields: []column.Field{
			{ID: 2, Name: "key", Type: column.Of(column.String), Required: true}, {ID: 3, Name: "value", Type: value},
		}}
	}
	for name, schema := range map[string]string{
		"array of pairs": `{"type":"record","name":"r","fields":[{"name":"m","field-id":1,"type":["null",{"type":"array","logicalType":"map","items":
			{"type":"record","name":"k2_v3","fields":[{"name":"key","field-id":2,"type":"string"},{"name":"value","field-id":3,"type":["null","int"]}]}}]}]}`,
		"map": `{"type":"record","name":"r","fields":[{"name":"m","field-id":1,"type":["null",{"type":"map","values":["null","int"]}]}]}`,
	} {
		var value any = object{"a": 7}
		if name != "map" {
			value = []any{object{"key": "a", "value": 7}}
		}
		v, err := one(t, write(t, schema, object{"m": value}, object{"m": nil}), column.Field{ID: 1, Name: "m", Type: pair(column.Of(column.Long))}, nil)
		require.NoError(t, err, name)
		require.Equal(t, []uint32{0, 1, 1}, v.Off, name)
		require.False(t, v.Null(0))
		require.True(t, v.Null(1))
		key, _ := v.Kids[0].Value(0)
		got, _ := v.Kids[1].Value(0)
		require.Equal(t, "a", key.S)
		require.Equal(t, column.IntValue(column.Long, 7), got, "promoted")
	}

	list := column.Field{ID: 1, Name: "l", Type: column.Type{Kind: column.List, Fields: []column.Field{{ID: 2, Name: "element", Type: column.Type{
		Kind: column.Struct, Fields: []column.Field{{ID: 9, Name: "late", Type: column.Of(column.Int), Initial: &five}, {ID: 3, Name: "a", Type: column.Of(column.Int)}},
	}}}}}
	schema := `{"type":"record","name":"r","fields":[{"name":"l","field-id":1,"type":{"type":"array","element-id":2,"items":["null",
		{"type":"record","name":"e","fields":[{"name":"gone","field-id":4,"type":"string"},{"name":"old name","field-id":3,"type":"int"}]}]}}]}`
	schema = string(bytes.ReplaceAll([]byte(schema), []byte("old name"), []byte("old")))
	v, err := one(t, write(t, schema, object{"l": []any{object{"gone": "x", "old": 1}, nil}}), list, nil)
	require.NoError(t, err)
	e := v.Kids[0]
	require.Equal(t, []uint32{0, 2}, v.Off)
	require.True(t, e.Null(1))
	late, ok := e.Kids[0].Value(0)
	require.True(t, ok)
	require.Equal(t, five, late)
	a, _ := e.Kids[1].Value(0)
	require.Equal(t, int64(1), a.Int64())
	require.True(t, e.Kids[0].Null(1), "a null struct has no defaults")
}

// TestNames: files without ids go by the name mapping alone, without one by name.
func TestNames(t *testing.T) {
	b := write(t, `{"type":"record","name":"r","fields":[{"name":"x","type":"int"}]}`, object{"x": 3})
	f := column.Field{ID: 1, Name: "x", Type: column.Of(column.Int)}
	for _, c := range []struct {
		names []facts.MappedField
		found bool
	}{
		{nil, true},
		{[]facts.MappedField{}, false},
		{[]facts.MappedField{{ID: 1, Names: []string{"y", "x"}}}, true},
		{[]facts.MappedField{{ID: 2, Names: []string{"x"}}}, false},
	} {
		v, err := one(t, b, f, c.names)
		require.NoError(t, err)
		require.Equal(t, c.found, !v.Null(0), "%v", c.names)
	}
}

// TestTypes: what a type cannot be read as is refused by the column's name, not guessed.
func TestTypes(t *testing.T) {
	for _, c := range []struct {
		avro  string
		value any
		typ   column.Type
		want  *column.Value
	}{
		{`"long"`, int64(1) << 40, column.Of(column.Int), nil},
		{`"string"`, "x", column.Of(column.Long), nil},
		{`"double"`, 1.5, column.Of(column.Float), nil},
		{`"int"`, 1, column.Type{Kind: column.Struct, Fields: []column.Field{f(2)}}, nil},
		{`"int"`, 1, column.Of(column.Long), value(column.IntValue(column.Long, 1))},
		{`"float"`, float32(1.5), column.Of(column.Double), value(column.DoubleValue(1.5))},
		{`{"type":"bytes","logicalType":"x"}`, []byte{1}, column.Of(column.Binary), value(column.BytesValue(column.Binary, []byte{1}))},
	} {
		b := write(t, `{"type":"record","name":"r","fields":[{"name":"c","field-id":1,"type":`+c.avro+`}]}`, object{"c": c.value})
		v, err := one(t, b, column.Field{ID: 1, Name: "c", Type: c.typ}, nil)
		if c.want == nil {
			require.True(t, fault.Is(err, fault.Unsupported), "%s as %s: %v", c.avro, c.typ, err)
			require.ErrorContains(t, err, "column c")
			continue
		}
		require.NoError(t, err)
		got, ok := v.Value(0)
		require.True(t, ok)
		require.Equal(t, *c.want, got)
	}
}

func f(id int) column.Field { return column.Field{ID: id, Name: "f", Type: column.Of(column.Int)} }

func value(v column.Value) *column.Value { return &v }

// TestRealAvro: the data files of a real table, one of which lacks a column with a default.
func TestRealAvro(t *testing.T) {
	minus := column.IntValue(column.Int, -1)
	i, j := column.Field{ID: 1, Name: "i", Type: column.Of(column.Int)}, column.Field{ID: 2, Name: "j", Type: column.Of(column.Int), Initial: &minus}
	sum := int64(0)
	for _, path := range realdata.Glob(t, "impala/iceberg/iceberg_v3/iceberg_v3_default_value_avro/data/*.avro") {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		file, err := avrorows.Open(path, b, nil)
		require.NoError(t, err)
		n, err := file.Rows()
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		require.NoError(t, file.Each([]column.Path{{i}, {j}}, 10, func(b *column.Batch) error {
			x, _ := b.Cols[0].Value(0)
			y, ok := b.Cols[1].Value(0)
			require.True(t, ok)
			sum += 10*x.Int64() + y.Int64()
			return nil
		}))
	}
	require.EqualValues(t, 10*1-1+10*2+2, sum)
}

func FuzzEach(fz *testing.F) {
	fz.Add(write(fz, `{"type":"record","name":"r","fields":[{"name":"m","field-id":1,"type":{"type":"map","values":"int"}},
		{"name":"s","field-id":4,"type":{"type":"record","name":"s","fields":[{"name":"a","field-id":5,"type":["null","string"]}]}},
		{"name":"l","field-id":6,"type":{"type":"array","items":"long"}}]}`,
		object{"m": object{"a": 1}, "s": object{"a": "x"}, "l": []any{1, 2}}))
	cols := []column.Path{
		{{ID: 1, Name: "m", Type: column.Type{Kind: column.Map, Fields: []column.Field{{ID: 2, Name: "key", Type: column.Of(column.String)}, f(3)}}}},
		{{ID: 4, Name: "s", Type: column.Type{Kind: column.Struct, Fields: []column.Field{{ID: 5, Name: "a", Type: column.Of(column.String)}}}}},
		{{ID: 6, Name: "l", Type: column.Type{Kind: column.List, Fields: []column.Field{{ID: 7, Name: "element", Type: column.Of(column.Long)}}}}},
		{f(8)},
	}
	fz.Fuzz(func(t *testing.T, b []byte) {
		file, err := avrorows.Open("fuzz", b, nil)
		if err != nil {
			return
		}
		_, _ = file.Rows()
		rows := 0
		_ = file.Each(cols, 16, func(b *column.Batch) error {
			for _, v := range b.Cols {
				if v.Len != b.Rows {
					t.Fatalf("%d values for %d rows", v.Len, b.Rows)
				}
			}
			if rows += b.Rows; rows > 1<<16 {
				return fault.New(fault.Exhausted, "fuzz", "enough")
			}
			return nil
		})
	})
}
