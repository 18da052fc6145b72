package verify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate/sqltext"
)

func seed(t *testing.T) uint64 {
	t.Helper()
	n := rand.Uint64()
	if text := os.Getenv("SKOMER_SEED"); text != "" {
		var err error
		n, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("SKOMER_SEED=%d go test ./internal/cli/verify -run '^%s$'", n, t.Name())
	return n
}

// TestEveryFilterBinds draws filters over columns of every type that a filter can name, fields of structs, elements and maps.
func TestEveryFilterBinds(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 0))
	types := []struct {
		typ column.Type
		v   column.Value
	}{
		{column.Of(column.Bool), column.BoolValue(true)},
		{column.Of(column.Int), column.IntValue(column.Int, -3)},
		{column.Of(column.Long), column.IntValue(column.Long, -1<<63)},
		{column.Of(column.Float), column.FloatValue(1e30)},
		{column.Of(column.Double), column.DoubleValue(-1e-300)},
		{column.Of(column.Double), column.DoubleValue(math.NaN())},
		{column.Of(column.Double), column.DoubleValue(math.Inf(-1))},
		{column.Of(column.Float), column.FloatValue(float32(math.Inf(1)))},
		{column.DecimalOf(20, 3), column.DecimalValue(-1, 5, 3)},
		{column.Of(column.Date), column.IntValue(column.Date, -719_000)},
		{column.Of(column.Time), column.IntValue(column.Time, 1)},
		{column.Of(column.Timestamp), column.IntValue(column.Timestamp, -1)},
		{column.Of(column.TimestampTZ), column.IntValue(column.TimestampTZ, 1)},
		{column.Of(column.TimestampNS), column.IntValue(column.TimestampNS, 1)},
		{column.Of(column.TimestampNZ), column.IntValue(column.TimestampNZ, 1)},
		{column.Of(column.String), column.StringValue(`it's 100%_\ "quoted"`)},
		{column.Of(column.UUID), column.BytesValue(column.UUID, make([]byte, 16))},
		{column.FixedOf(2), column.BytesValue(column.Fixed, []byte{0, 255})},
		{column.Of(column.Binary), column.BytesValue(column.Binary, []byte{1})},
	}
	schema := &column.Schema{}
	text, number := column.Of(column.String), column.Of(column.Int)
	field := func(id int, name string, t column.Type) column.Field {
		return column.Field{ID: id, Name: name, Type: t}
	}
	list := func(id int, t column.Type) column.Type {
		return column.Type{Kind: column.List, Fields: []column.Field{field(id, "element", t)}}
	}
	pair := column.Type{Kind: column.Struct, Fields: []column.Field{field(1001, "or", text), field(1002, `n "n"`, number)}}
	inMap := column.Type{Kind: column.Struct, Fields: []column.Field{field(1005, "a.b", text)}}
	for _, x := range types {
		schema.Fields = append(schema.Fields, field(len(schema.Fields)+1, fmt.Sprintf(`%d "%s"`, len(schema.Fields), x.typ), x.typ))
	}
	schema.Fields = append(schema.Fields, field(900, "my pair", pair), field(901, "deep", list(1006, list(1007, text))),
		field(902, "list", list(1010, column.Type{Kind: column.Struct, Fields: []column.Field{field(1011, "or", text), field(1012, "n", number)}})),
		field(903, "map", column.Type{Kind: column.Map, Fields: []column.Field{field(1013, "key", number), field(1014, "value", inMap)}}),
		field(904, "plain", list(1015, number)))
	d := drawer{rng: rng, schema: schema, terms: termsOf(schema)}
	require.Len(t, d.terms, len(types)+2+2+2+1, "the list in a list is not asked")
	for i, one := range d.terms {
		v := column.StringValue("x'%")
		switch {
		case i < len(types):
			v = types[i].v
		case one.kind == column.Int:
			v = column.IntValue(column.Int, 7)
		}
		if rng.IntN(8) > 0 {
			one.values = []skomer.Value{v}
		}
	}
	for range 4000 {
		filter := d.filter(2)
		_, err := sqltext.Parse(filter, schema)
		require.NoError(t, err, "%s", filter)
	}
}

// TestOnlyWritableValuesAreDrawn: what no filter can say is not kept.
func TestOnlyWritableValuesAreDrawn(t *testing.T) {
	s := &sample{kind: column.String}
	for _, v := range []string{"\xff", "a\xc3", strings.Repeat("x", longest+1), "ſ"} {
		s.add(column.StringValue(v), rand.New(rand.NewPCG(1, 1)))
	}
	require.Equal(t, []skomer.Value{column.StringValue("ſ")}, s.values)
	b := &sample{kind: column.Binary}
	b.add(column.BytesValue(column.Binary, []byte{0xff}), rand.New(rand.NewPCG(1, 1)))
	require.Len(t, b.values, 1)
}

// TestHashIgnoresBatches checks that the same rows have the same hash however they are cut and whether a dictionary is
// used, and that a moved null, value or boundary between values changes it.
func TestHashIgnoresBatches(t *testing.T) {
	text := func(values ...string) *column.Vector {
		b := column.NewBuilder(column.Of(column.String))
		for _, v := range values {
			if v == "null" {
				b.AppendNull()
			} else {
				b.Append(column.StringValue(v))
			}
		}
		return b.Finish()
	}
	sum := func(vectors ...*column.Vector) [32]byte {
		h := newRowHash()
		for _, v := range vectors {
			require.NoError(t, h.add(&skomer.Batch{Rows: v.Len, Cols: []*column.Vector{v}}))
		}
		return h.sum()
	}
	word := column.StringValue("a")
	want := sum(text("a", "a", "null", "bc"))
	require.Equal(t, want, sum(text("a"), text("a", "null"), text("bc")))
	require.Equal(t, want, sum(column.Constant(column.Of(column.String), &word, 2), text("null", "bc")))
	require.NotEqual(t, want, sum(text("a", "a", "bc", "null")))
	require.NotEqual(t, want, sum(text("a", "ab", "null", "c")))
	require.NotEqual(t, want, sum(text("a", "a", "", "bc")))
}
