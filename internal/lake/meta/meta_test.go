package meta

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
)

// random is a generator whose seed is printed and can be given again by SKOMER_SEED.
func random(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	t.Logf("SKOMER_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

const minimal = `{"format-version": 2, "location": "s3://b/t", "schemas": [{"type":"struct","schema-id":3,"fields":[{"id":1,"name":"a","required":true,"type":"int"}]}],
 "current-schema-id": 3, "partition-specs": [{"spec-id":0,"fields":[]}]`

func TestMinimal(t *testing.T) {
	m, err := Parse("x", []byte(minimal+"}"))
	require.NoError(t, err)
	require.Equal(t, int64(None), m.Current)
	require.Empty(t, m.Refs)
	require.Equal(t, "a", m.Schema().Fields[0].Name)
}

func TestRefused(t *testing.T) {
	for text, c := range map[string]struct {
		class fault.Class
		words string
	}{
		`{`:                                      {fault.Corrupt, "line 1, column 1"},
		"{\n\"format-version\": 2,\n ?":          {fault.Corrupt, "line 3, column 2"},
		"{\n \"format-version\": \"2\"}":         {fault.Corrupt, "line 2, column 22"},
		`[]`:                                     {fault.Corrupt, "bad metadata JSON"},
		`{}`:                                     {fault.Corrupt, "no format-version"},
		`{"format-version": 4, "location": "x"}`: {fault.Unsupported, "format version 4"},
		`{"format-version": 0, "location": "x"}`: {fault.Corrupt, "format-version"},
		`{"format-version": 2}`:                  {fault.Corrupt, "no location"},
		`{"format-version": 1, "location": "x", "view-uuid": "u"}`:                             {fault.Unsupported, "a view"},
		minimal + `, "current-snapshot-id": 5}`:                                                {fault.Corrupt, "current snapshot 5"},
		minimal + `, "snapshots": [{"snapshot-id": 7}]}`:                                       {fault.Corrupt, "snapshot 7 names neither"},
		minimal + `, "current-snapshot-id": 5, "refs": {"main": {"snapshot-id": 6}}}`:          {fault.Corrupt, "branch main is at 6"},
		minimal + `, "refs": {"main": {"snapshot-id": 6}}}`:                                    {fault.Corrupt, "current snapshot 6"},
		minimal + `, "snapshots": [{}]}`:                                                       {fault.Corrupt, "snapshot 0 of the list has no id"},
		minimal + `, "properties": {"schema.name-mapping.default":"{"}}`:                       {fault.Corrupt, "schema.name-mapping.default"},
		strings.Replace(minimal, `"int"`, `"money"`, 1) + "}":                                  {fault.Unsupported, `column a has the unknown type "money"`},
		strings.Replace(minimal, `"int"`, `"decimal(39, 2)"`, 1) + "}":                         {fault.Unsupported, "decimal(39, 2)"},
		strings.Replace(minimal, `"int"`, `"fixed[99999999]"`, 1) + "}":                        {fault.Unsupported, "fixed[99999999]"},
		strings.Replace(minimal, `"int"`, `5`, 1) + "}":                                        {fault.Corrupt, "column a: bad type"},
		strings.Replace(minimal, `"int"`, `{"type":"bag"}`, 1) + "}":                           {fault.Unsupported, `"bag"`},
		strings.Replace(minimal, `"id":1,`, ``, 1) + "}":                                       {fault.Corrupt, "column a has no id"},
		strings.Replace(minimal, `"int"}`, `"int"},{"id":1,"name":"b","type":"int"}`, 1) + "}": {fault.Corrupt, "a and b have one field id, 1"},
		strings.Replace(minimal, `"int"`, `"int","initial-default":"x"`, 1) + "}":              {fault.Corrupt, `column a: initial default "x"`},
		strings.Replace(minimal, `"int"`, `"int","initial-default":3000000000`, 1) + "}":       {fault.Corrupt, "initial default"},
		strings.Replace(minimal, `"int"`, deep(100), 1) + "}":                                  {fault.Corrupt, "nested deeper"},
	} {
		_, err := Parse("file.json", []byte(text))
		require.Equal(t, c.class, fault.ClassOf(err), "%.300s: %v", text, err)
		require.ErrorContains(t, err, c.words)
		require.ErrorContains(t, err, "file.json")
	}
}

func deep(n int) string {
	s := `"int"`
	for i := range n {
		s = fmt.Sprintf(`{"type":"list","element-id":%d,"element":%s,"element-required":true}`, i+2, s)
	}
	return s
}

func TestOddSnapshots(t *testing.T) {
	m, err := Parse("x", []byte(minimal+`, "current-snapshot-id": 9876543210123456789, "snapshots": [{"snapshot-id": 9876543210123456789, "timestamp-ms": 5, "manifest-list": "l",
		"parent-snapshot-id": null, "summary": {"operation": "append", "n": 5, "none": null}}], "properties": {"a": true, "b": "c"}, "refs": {"t": {"snapshot-id": 9876543210123456789, "type": "tag"}}}`))
	require.NoError(t, err)
	unsigned := uint64(9876543210123456789)
	require.Equal(t, int64(unsigned), m.Current)
	s := m.Snapshot(m.Current)
	require.Equal(t, int64(None), s.Parent)
	require.Equal(t, None, s.SchemaID)
	require.Equal(t, map[string]string{"operation": "append", "n": "5"}, s.Summary)
	require.Equal(t, map[string]string{"a": "true", "b": "c"}, m.Properties)
	require.Equal(t, map[string]Ref{"t": {m.Current, true}, "main": {m.Current, false}}, m.Refs)
}

func TestV1WithoutLists(t *testing.T) {
	m, err := Parse("x", []byte(`{"format-version": 1, "location": "x", "schema": {"type":"struct","fields":[{"id":1,"name":"a","type":"int"}]},
		"partition-spec": [{"name":"a","transform":"identity","source-id":1},{"name":"b","transform":"bucket[4]","source-id":1}], "current-snapshot-id": -1}`))
	require.NoError(t, err)
	require.Equal(t, &facts.Spec{Fields: []facts.PartitionField{
		{ID: 1000, SourceID: 1, Name: "a", Transform: "identity"}, {ID: 1001, SourceID: 1, Name: "b", Transform: "bucket[4]"},
	}}, m.Specs[0])
	require.Equal(t, "", m.UUID)
	require.Equal(t, int64(None), m.Current)
}

func TestMultiArgumentTransform(t *testing.T) {
	s, err := ParseSpecFields("x", 1, []byte(`[{"field-id":1000,"source-ids":[4,5],"name":"n","transform":"hilbert"}]`))
	require.NoError(t, err)
	require.Equal(t, facts.PartitionField{ID: 1000, SourceID: 4, Name: "n", Transform: "hilbert"}, s.Fields[0])
}

func TestTypes(t *testing.T) {
	for text, want := range map[string]column.Type{
		"decimal(9,2)": column.DecimalOf(9, 2), "decimal( 38 , 38 )": column.DecimalOf(38, 38), "fixed[16]": column.FixedOf(16),
		"timestamptz_ns": column.Of(column.TimestampNZ), "LONG": column.Of(column.Long), "geometry(srid:4326)": column.Of(column.Geometry),
		"geography": column.Of(column.Geography), "variant": column.Of(column.Variant), "unknown": column.Of(column.Unknown),
	} {
		got, ok := ParseType(text)
		require.True(t, ok, text)
		require.Equal(t, want, got)
	}
	for _, bad := range []string{"", "decimal", "decimal(0,0)", "decimal(5,6)", "decimal(-1,0)", "fixed[]", "fixed[-1]", "struct", "list<int>"} {
		_, ok := ParseType(bad)
		require.False(t, ok, bad)
	}
}

func TestDefaults(t *testing.T) {
	day := int64(86400)
	for _, c := range []struct {
		typ  column.Type
		json string
		want column.Value
	}{
		{column.Of(column.Bool), `true`, column.BoolValue(true)},
		{column.Of(column.Long), `-9223372036854775808`, column.IntValue(column.Long, math.MinInt64)},
		{column.Of(column.Float), `0.34234`, column.FloatValue(0.34234)},
		{column.Of(column.Double), `"-Infinity"`, column.DoubleValue(math.Inf(-1))},
		{column.DecimalOf(16, 2), `"12345.00"`, column.DecimalValue(0, 1234500, 2)},
		{column.DecimalOf(9, 2), `"-0.01"`, column.DecimalValue(-1, math.MaxUint64, 2)},
		{column.DecimalOf(38, 0), `"99999999999999999999999999999999999999"`, column.DecimalValue(5421010862427522170, 687399551400673279, 0)},
		{column.Of(column.Date), `"1969-12-31"`, column.IntValue(column.Date, -1)},
		{column.Of(column.Date), `"2003-10-20"`, column.IntValue(column.Date, 12345)},
		{column.Of(column.Time), `"00:00:00.012345"`, column.IntValue(column.Time, 12345)},
		{column.Of(column.Time), `"23:59"`, column.IntValue(column.Time, (day-60)*1e6)},
		{column.Of(column.Timestamp), `"1969-12-31T23:59:59.123456"`, column.IntValue(column.Timestamp, -876544)},
		{column.Of(column.TimestampTZ), `"1970-01-01T01:00:00.012345+01:00"`, column.IntValue(column.TimestampTZ, 12345)},
		{column.Of(column.TimestampNS), `"1970-01-01T00:00:00.000000001"`, column.IntValue(column.TimestampNS, 1)},
		{column.Of(column.UUID), `"f79c3e09-677c-4bbd-a479-3f349cb785e7"`, column.BytesValue(column.UUID, []byte("\xf7\x9c\x3e\x09\x67\x7c\x4b\xbd\xa4\x79\x3f\x34\x9c\xb7\x85\xe7"))},
		{column.FixedOf(5), `"010203ff03"`, column.BytesValue(column.Fixed, []byte{1, 2, 3, 255, 3})},
		{column.Of(column.Binary), `""`, column.BytesValue(column.Binary, nil)},
		{column.Of(column.String), `"HELLO"`, column.StringValue("HELLO")},
		{column.Type{Kind: column.Struct}, `{}`, column.Value{Kind: column.Struct}},
	} {
		got, err := ParseDefault(c.typ, []byte(c.json))
		require.NoError(t, err, c.json)
		require.Equal(t, c.want, *got, "%s %s", c.typ, c.json)
	}
	for typ, bad := range map[column.Kind]string{
		column.Int: `2147483648`, column.Bool: `1`, column.Date: `"2003-13-20"`, column.UUID: `"zz"`, column.List: `[]`, column.Long: `1.5`, column.Timestamp: `"now"`, column.Decimal: `"1e9"`,
	} {
		_, err := ParseDefault(column.Type{Kind: typ, Width: 9}, []byte(bad))
		require.Error(t, err, "%s %s", typ, bad)
	}
	for _, null := range []string{"", "null", "  "} {
		got, err := ParseDefault(column.Of(column.Int), []byte(null))
		require.NoError(t, err)
		require.Nil(t, got)
	}
}

// TestSchemasComeBack: a random schema with random defaults equals itself after JSON.
func TestSchemasComeBack(t *testing.T) {
	r := random(t)
	for range 500 {
		id := 0
		want := &column.Schema{ID: r.IntN(9), Fields: randomFields(r, &id, 0)}
		got, err := ParseSchema("x", SchemaJSON(want))
		require.NoError(t, err, "%s", SchemaJSON(want))
		require.Equal(t, want, got)
	}
}

func randomFields(r *rand.Rand, id *int, depth int) []column.Field {
	fields := make([]column.Field, 1+r.IntN(4))
	for i := range fields {
		*id++
		f := column.Field{ID: *id, Name: fmt.Sprintf("f%d é\"", *id), Required: r.IntN(2) == 0}
		f.Type = randomType(r, id, depth)
		if !f.Type.Kind.Nested() && r.IntN(2) == 0 {
			f.Initial = randomValue(r, f.Type)
		}
		fields[i] = f
	}
	return fields
}

func randomType(r *rand.Rand, id *int, depth int) column.Type {
	kinds := []column.Kind{
		column.Bool, column.Int, column.Long, column.Float, column.Double, column.Decimal, column.Date, column.Time, column.Timestamp, column.TimestampTZ,
		column.TimestampNS, column.TimestampNZ, column.String, column.UUID, column.Fixed, column.Binary, column.Struct, column.List, column.Map,
	}
	k := kinds[r.IntN(len(kinds))]
	if k.Nested() && depth > 3 {
		k = column.Long
	}
	kid := func(name string, required bool) column.Field {
		*id++
		f := column.Field{ID: *id, Name: name, Required: required}
		f.Type = randomType(r, id, depth+1)
		return f
	}
	switch k {
	case column.Decimal:
		p := 1 + r.IntN(38)
		return column.DecimalOf(p, r.IntN(p+1))
	case column.Fixed:
		return column.FixedOf(r.IntN(20))
	case column.Struct:
		return column.Type{Kind: k, Fields: randomFields(r, id, depth+1)}
	case column.List:
		return column.Type{Kind: k, Fields: []column.Field{kid("element", r.IntN(2) == 0)}}
	case column.Map:
		return column.Type{Kind: k, Fields: []column.Field{kid("key", true), kid("value", r.IntN(2) == 0)}}
	}
	return column.Of(k)
}

func randomValue(r *rand.Rand, t column.Type) *column.Value {
	v := column.Value{Kind: t.Kind}
	bytes := make([]byte, t.Size())
	for i := range bytes {
		bytes[i] = byte(r.Uint32())
	}
	switch t.Kind {
	case column.Bool:
		v = column.BoolValue(r.IntN(2) == 0)
	case column.Int:
		v = column.IntValue(t.Kind, int64(int32(r.Uint32())))
	case column.Date:
		v = column.IntValue(t.Kind, r.Int64N(2_000_000)-700_000)
	case column.Time:
		v = column.IntValue(t.Kind, r.Int64N(86_400_000_000))
	case column.Timestamp, column.TimestampTZ:
		v = column.IntValue(t.Kind, r.Int64N(200_000_000_000_000_000)-60_000_000_000_000_000)
	case column.Long, column.TimestampNS, column.TimestampNZ:
		v = column.IntValue(t.Kind, int64(r.Uint64()))
	case column.Float:
		v = column.FloatValue(float32(r.NormFloat64()))
	case column.Double:
		v = column.DoubleValue(r.NormFloat64() * 1e200)
	case column.Decimal:
		v = column.DecimalValue(r.Int64()>>(1+r.IntN(60)), r.Uint64(), t.Scale)
	case column.UUID, column.Fixed:
		v = column.BytesValue(t.Kind, bytes)
	case column.Binary:
		v = column.BytesValue(t.Kind, []byte{byte(r.Uint32()), 0, 255})
	default:
		v = column.StringValue("é\x00\"" + fmt.Sprint(r.Int()))
	}
	return &v
}

func TestNameMappingComesBack(t *testing.T) {
	want := []facts.MappedField{{ID: 1, Names: []string{"a", "A"}}, {ID: 2, Names: []string{"s"}, Fields: []facts.MappedField{{ID: 3, Names: []string{"x"}}, {Names: []string{"no id"}}}}}
	prop, err := json.Marshal(NameMappingJSON(want))
	require.NoError(t, err)
	m, err := Parse("x", []byte(minimal+`, "properties": {"schema.name-mapping.default": `+string(prop)+`}}`))
	require.NoError(t, err)
	require.Equal(t, want, m.NameMapping)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal + "}"))
	f.Add([]byte(minimal + `, "current-snapshot-id": 1, "snapshots": [{"snapshot-id": 1, "manifest-list": "x"}], "refs": {"a": {"snapshot-id": 1, "type": "tag"}}, "snapshot-log": [{"snapshot-id":1,"timestamp-ms":2}]}`))
	f.Add([]byte(strings.Replace(minimal, `"int"`, deep(10), 1) + "}"))
	f.Add([]byte(strings.Replace(minimal, `"int"`, `{"type":"struct","fields":[{"id":7,"name":"x","type":"date","initial-default":"2020-01-01"}]}`, 1) + "}"))
	f.Add([]byte(`{"format-version": 1, "location": "x", "schema": {"type":"struct","fields":[]}, "partition-spec": [{"source-id":1,"name":"a","transform":"day"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse("fuzz", b)
		if err != nil {
			if c := fault.ClassOf(err); c != fault.Corrupt && c != fault.Unsupported {
				t.Fatalf("class %v: %v", c, err)
			}
			if strings.Contains(err.Error(), "parser failed") {
				t.Fatalf("panic: %v", err)
			}
			return
		}
		if m.Schema() == nil || (m.Current != None && m.Snapshot(m.Current) == nil) {
			t.Fatal("accepted without a schema or with a lost snapshot")
		}
		for _, s := range m.Schemas {
			again, err := ParseSchema("fuzz", SchemaJSON(s))
			if err != nil || len(again.Fields) != len(s.Fields) {
				t.Fatalf("schema does not come back: %v", err)
			}
		}
	})
}
