package mask

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index/indextest"
)

// TestKeysOfEveryType: a row is deleted where each of its values is that of a key: null is null, NaN is NaN, -0.0 is not 0.0; whether a
// sieve stands before the keys or not, in dictionaries or not, of one column or two.
func TestKeysOfEveryType(t *testing.T) {
	rng := indextest.Rand(t)
	types := []column.Type{{Kind: column.Fixed, Width: 4}, {Kind: column.Fixed, Width: 8}, {Kind: column.Fixed, Width: 5}, {Kind: column.Decimal, Width: 9, Scale: 2}}
	for _, k := range []column.Kind{
		column.Bool, column.Int, column.Long, column.Float, column.Double, column.Date, column.Time, column.Timestamp, column.TimestampTZ,
		column.TimestampNS, column.TimestampNZ, column.String, column.UUID, column.Binary,
	} {
		types = append(types, column.Of(k))
	}
	for range 600 {
		cols, seen := make([]column.Path, 1+rng.IntN(2)), map[string]bool{}
		few := 1 + rng.IntN(300)
		for c := range cols {
			typ := types[rng.IntN(len(types))]
			cols[c] = column.Path{{ID: 1 + c, Name: fmt.Sprint("c", c), Type: typ}}
		}
		k := newKeySet(cols, 1<<30)
		for range 1 + rng.IntN(3) {
			b, keys := keyBatch(rng, cols, 1+rng.IntN(200), few)
			require.NoError(t, k.add(b))
			for _, key := range keys {
				seen[key] = true
			}
		}
		k.sift()
		b, rows := keyBatch(rng, cols, 500, few)
		var want []uint32
		for i, key := range rows {
			if seen[key] {
				want = append(want, b.Position(i))
			}
		}
		require.Equal(t, want, k.rowsIn(b, nil), "%v", cols)
	}
}

// keyBatch is n random rows of a few values, and what is equal of rows that are.
func keyBatch(rng *rand.Rand, cols []column.Path, n, few int) (*column.Batch, []string) {
	b, keys := &column.Batch{Start: 7, Rows: n}, make([]string, n)
	if rng.IntN(2) == 0 {
		for i := range n {
			b.Pos = append(b.Pos, uint32(3*i))
		}
	}
	for _, c := range cols {
		v, nulls := column.NewBuilder(c.Leaf().Type), rng.IntN(2) == 0
		for i := range n {
			if nulls && rng.IntN(9) == 0 {
				v.AppendNull()
				keys[i] += "null;"
				continue
			}
			x := keyValue(c.Leaf().Type, int64(rng.IntN(few)-few/2))
			v.Append(x)
			if x.IsNaN() {
				keys[i] += "nan;"
			} else {
				keys[i] += fmt.Sprintf("%x %x %q;", x.Lo, x.Hi, x.S)
			}
		}
		col := v.Finish()
		if rng.IntN(3) == 0 {
			col = encoded(col)
		}
		b.Cols = append(b.Cols, col)
	}
	return b, keys
}

// keyValue is value i of a type, among those of floats both zeros and several NaNs.
func keyValue(t column.Type, i int64) column.Value {
	switch t.Kind {
	case column.Bool:
		return column.BoolValue(i&1 == 1)
	case column.Float:
		return column.FloatValue([]float32{float32(i), 0, float32(math.Copysign(0, -1)), float32(math.NaN()), math.Float32frombits(0xffc00001)}[max(0, i%5)])
	case column.Double:
		return column.DoubleValue([]float64{float64(i), 0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0xfff8000000000001)}[max(0, i%5)])
	case column.Decimal:
		return column.DecimalValue(i>>63, uint64(i), t.Scale)
	case column.String, column.Binary:
		return column.BytesValue(t.Kind, fmt.Append(nil, i))
	case column.UUID:
		return column.BytesValue(t.Kind, fmt.Appendf(nil, "%016d", i))
	case column.Fixed:
		return column.BytesValue(t.Kind, fmt.Appendf(nil, "%0*d", t.Width, i))
	default:
		return column.IntValue(t.Kind, i)
	}
}
