package column_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
)

func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay with SKOMER_SEED=%d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 2))
}

var primitives = []column.Type{
	column.Of(column.Bool), column.Of(column.Int), column.Of(column.Long), column.Of(column.Float), column.Of(column.Double),
	column.DecimalOf(9, 2), column.DecimalOf(38, 0), column.Of(column.Date), column.Of(column.Time), column.Of(column.Timestamp),
	column.Of(column.TimestampTZ), column.Of(column.TimestampNS), column.Of(column.TimestampNZ), column.Of(column.String), column.Of(column.UUID),
	column.FixedOf(5), column.FixedOf(0), column.Of(column.Binary), column.Of(column.Variant), column.Of(column.Geometry), column.Of(column.Geography),
}

func randomInt(r *rand.Rand) int64 {
	switch r.IntN(4) {
	case 0:
		return []int64{0, 1, -1, math.MaxInt64, math.MinInt64, math.MaxInt32, math.MinInt32}[r.IntN(7)]
	case 1:
		return int64(r.IntN(7)) - 3
	default:
		return int64(r.Uint64())
	}
}

func randomFloat(r *rand.Rand) float64 {
	switch r.IntN(3) {
	case 0:
		return []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 1, -1}[r.IntN(9)]
	case 1:
		return float64(r.IntN(7)) - 3
	default:
		return math.Float64frombits(r.Uint64())
	}
}

func randomValue(r *rand.Rand, t column.Type) column.Value {
	switch t.Kind {
	case column.Bool:
		return column.BoolValue(r.IntN(2) == 1)
	case column.Int, column.Date:
		return column.IntValue(t.Kind, int64(int32(randomInt(r))))
	case column.Float:
		return column.FloatValue(float32(randomFloat(r)))
	case column.Double:
		return column.DoubleValue(randomFloat(r))
	case column.Decimal:
		return column.DecimalValue(randomInt(r), uint64(randomInt(r)), t.Scale)
	case column.Long, column.Time, column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		return column.IntValue(t.Kind, randomInt(r))
	}
	n := r.IntN(4)
	if t.Size() > 0 || t.Kind == column.Fixed {
		n = t.Size()
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = []byte{0, 1, 'a', 0x7f, 0x80, 0xff}[r.IntN(6)]
	}
	return column.BytesValue(t.Kind, b)
}

func TestKeysKeepTheOrder(t *testing.T) {
	r := seeded(t)
	for _, typ := range primitives {
		for range 3000 {
			a, b := randomValue(r, typ), randomValue(r, typ)
			ka, kb := column.AppendKey(nil, a), column.AppendKey(nil, b)
			require.Equal(t, column.Compare(a, b), bytes.Compare(ka, kb), "%s: %+v and %+v", typ, a, b)
			require.Equal(t, -column.Compare(b, a), column.Compare(a, b), "%s: %+v and %+v", typ, a, b)
			back, ok := column.KeyValue(typ, ka)
			require.True(t, ok, "%s: %+v", typ, a)
			require.Zero(t, column.Compare(a, back), "%s: %+v came back as %+v", typ, a, back)
			require.Equal(t, a.Kind, back.Kind)
			require.Equal(t, ka, column.AppendKey(nil, back))
		}
	}
}

func TestKeyValueRefusesOtherLengths(t *testing.T) {
	for _, typ := range primitives {
		if typ.Kind.VarLen() {
			continue
		}
		want := len(column.AppendKey(nil, randomValue(seeded(t), typ)))
		for n := range 20 {
			if _, ok := column.KeyValue(typ, make([]byte, n)); ok != (n == want) {
				t.Errorf("%s: a key of %d bytes is taken: %v", typ, n, ok)
			}
		}
	}
	_, ok := column.KeyValue(column.Of(column.Bool), []byte{2})
	require.False(t, ok)
}

func TestKeyGolden(t *testing.T) {
	for want, v := range map[string]column.Value{
		"\x01":                                                             column.BoolValue(true),
		"\x80\x00\x00\x00\x00\x00\x00\x07":                                 column.IntValue(column.Int, 7),
		"\x7f\xff\xff\xff\xff\xff\xff\xff":                                 column.IntValue(column.Long, -1),
		"\x80\x00\x00\x00\x00\x00\x00\x00":                                 column.FloatValue(float32(math.Copysign(0, -1))),
		"\xbf\xf8\x00\x00\x00\x00\x00\x00":                                 column.DoubleValue(1.5),
		"\x40\x07\xff\xff\xff\xff\xff\xff":                                 column.FloatValue(-1.5),
		"\xff\xf8\x00\x00\x00\x00\x00\x00":                                 column.DoubleValue(math.NaN()),
		"\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x85": column.DecimalValue(-1, ^uint64(122), 2),
		"ab": column.StringValue("ab"),
	} {
		require.Equal(t, []byte(want), column.AppendKey(nil, v), "%+v", v)
	}
}

// TestO14PromotedKeys: a column has one key before and after int → long and float → double.
func TestO14PromotedKeys(t *testing.T) {
	r := seeded(t)
	for range 2000 {
		n := int64(int32(randomInt(r)))
		require.Equal(t, column.AppendKey(nil, column.IntValue(column.Int, n)), column.AppendKey(nil, column.IntValue(column.Long, n)))
		f := float32(randomFloat(r))
		require.Equal(t, column.AppendKey(nil, column.FloatValue(f)), column.AppendKey(nil, column.DoubleValue(float64(f))))
	}
}

func TestBuilderRoundTrip(t *testing.T) {
	r := seeded(t)
	for _, typ := range append([]column.Type{column.Of(column.Unknown)}, primitives...) {
		for _, n := range []int{0, 1, 7, 8, 9, 63, 64, 65, 200} {
			b := column.NewBuilder(typ)
			want := make([]*column.Value, n)
			nulls := 0
			share := []float64{0, 0.3, 1}[r.IntN(3)]
			for i := range want {
				if typ.Kind == column.Unknown || r.Float64() < share {
					b.AppendNull()
					nulls++
					continue
				}
				v := randomValue(r, typ)
				want[i] = &v
				b.Append(v)
			}
			v := b.Finish()
			require.Equal(t, n, v.Len)
			require.Equal(t, nulls, v.Nulls(), "%s", typ)
			if nulls == 0 {
				require.Nil(t, v.Valid)
			}
			requireValues(t, want, v)
			// The same through a dictionary in reverse.
			d := &column.Vector{Type: typ, Len: n, Dict: v, Idx: make([]uint32, n)}
			reversed := make([]*column.Value, n)
			for i := range n {
				d.Idx[i] = uint32(n - 1 - i)
				reversed[i] = want[n-1-i]
			}
			requireValues(t, reversed, d)
		}
	}
}

func requireValues(t *testing.T, want []*column.Value, v *column.Vector) {
	t.Helper()
	for i, x := range want {
		got, ok := v.Value(i)
		require.Equal(t, x != nil, ok, "%s %d", v.Type, i)
		if x != nil {
			require.Equal(t, *x, got, "%s %d", v.Type, i)
		}
	}
}

func TestConstant(t *testing.T) {
	r := seeded(t)
	for _, typ := range primitives {
		x := randomValue(r, typ)
		for _, n := range []int{0, 1, 64, 65} {
			v, null := column.Constant(typ, &x, n), column.Constant(typ, nil, n)
			require.Equal(t, n, null.Nulls())
			require.Equal(t, 0, v.Nulls())
			for i := range n {
				got, ok := v.Value(i)
				require.True(t, ok)
				require.Equal(t, x, got)
				_, ok = null.Value(i)
				require.False(t, ok)
			}
		}
	}
}

func TestViews(t *testing.T) {
	b := column.NewBuilder(column.Of(column.Int))
	for i := range 3 {
		b.Append(column.IntValue(column.Int, int64(-i)))
	}
	v := b.Finish()
	require.Equal(t, []int32{0, -1, -2}, v.Int32s())
	require.Equal(t, v.Fixed, column.BytesOf(v.Int32s()))
	require.Nil(t, (&column.Vector{Type: column.Of(column.Long)}).Int64s())
	require.Nil(t, column.BytesOf([]int64(nil)))
}

func TestSchemaNames(t *testing.T) {
	inner := column.Field{ID: 3, Name: "Zip", Type: column.Of(column.String)}
	s := &column.Schema{Fields: []column.Field{
		{ID: 1, Name: "a", Type: column.Of(column.Int)},
		{ID: 2, Name: "addr", Type: column.Type{Kind: column.Struct, Fields: []column.Field{inner}}},
		{ID: 4, Name: "A", Type: column.Of(column.Int)},
		{ID: 5, Name: "tags", Type: column.Type{Kind: column.List, Fields: []column.Field{{ID: 6, Name: "element", Type: column.Of(column.String)}}}},
	}}
	for name, id := range map[string]int{"a": 1, "A": 4, "addr.Zip": 3, "ADDR.zip": 3, "tags.element": 6} {
		p, ambiguous := s.ByName(name)
		require.Empty(t, ambiguous)
		require.Equal(t, id, p.Leaf().ID)
		require.Equal(t, p, s.ByID(id))
	}
	require.True(t, s.ByID(6).Repeated())
	require.False(t, s.ByID(5).Repeated())
	require.Nil(t, s.ByID(99))
	s.Fields[0].Name = "á"
	s.Fields = append(s.Fields, column.Field{ID: 7, Name: "Á"})
	p, ambiguous := s.ByName("b")
	require.Nil(t, p)
	require.Empty(t, ambiguous)
	s.Fields[0].Name, s.Fields[2].Name = "aa", "AA"
	p, ambiguous = s.ByName("aA")
	require.Nil(t, p)
	require.Equal(t, []string{"aa", "AA"}, ambiguous)
}

func TestCloneAndFlatten(t *testing.T) {
	r := seeded(t)
	for _, typ := range primitives {
		for range 20 {
			dict := column.NewBuilder(typ)
			values := make([]column.Value, 1+r.IntN(6))
			for i := range values {
				values[i] = randomValue(r, typ)
				dict.Append(values[i])
			}
			v := &column.Vector{Type: typ, Len: r.IntN(130), Dict: dict.Finish()}
			want := make([]*column.Value, v.Len)
			v.Valid = make([]uint64, (v.Len+63)/64)
			for i := range want {
				x := r.IntN(len(values))
				v.Idx = append(v.Idx, uint32(x))
				if r.IntN(3) > 0 {
					v.Valid[i>>6] |= 1 << (i & 63)
					want[i] = &values[x]
				}
			}
			flat, clone := v.Flatten(), v.Clone()
			require.Nil(t, flat.Dict)
			requireValues(t, want, flat)
			requireValues(t, want, flat.Clone())
			batch := (&column.Batch{Rows: v.Len, Cols: []*column.Vector{v}, Start: 7}).Clone()
			require.EqualValues(t, 7, batch.Position(0))
			for i := range v.Idx { // the copies stay as they are
				v.Idx[i], v.Valid[i>>6] = 0, 0
			}
			clear(v.Dict.Fixed)
			clear(v.Dict.Bytes)
			requireValues(t, want, clone)
			requireValues(t, want, batch.Cols[0])
		}
	}
}

func TestPosition(t *testing.T) {
	b := &column.Batch{Rows: 2, Start: 5}
	require.EqualValues(t, 6, b.Position(1))
	b.Pos = []uint32{3, 9}
	require.EqualValues(t, 9, b.Position(1))
}
