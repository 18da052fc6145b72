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

// TestEveryFilterBinds draws filters over columns of every type that a filter can name.
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
	d := drawer{rng: rng}
	for _, x := range types {
		typ, v := x.typ, x.v
		name := fmt.Sprintf(`%d "%s"`, len(schema.Fields), typ)
		schema.Fields = append(schema.Fields, column.Field{ID: len(schema.Fields) + 1, Name: name, Type: typ})
		d.samples = append(d.samples, &sample{name: ident(name), kind: typ.Kind, values: []skomer.Value{v}})
		require.Equal(t, name, plain(ident(name)))
	}
	for range 2000 {
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
