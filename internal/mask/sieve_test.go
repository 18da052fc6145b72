package mask

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index/indextest"
)

// TestSieveLosesNoKey: a row is deleted where its value is a key, whether a sieve stands before the keys or not, nulls among them.
func TestSieveLosesNoKey(t *testing.T) {
	rng := indextest.Rand(t)
	for range 300 {
		kind := []column.Kind{column.Int, column.Long, column.Date, column.Timestamp}[rng.IntN(4)]
		few := int64(1 + rng.IntN(3000))
		draw := func(n int, nulls bool) (*column.Batch, []*int64) {
			b, values := column.NewBuilder(column.Of(kind)), make([]*int64, n)
			for i := range values {
				if nulls && rng.IntN(20) == 0 {
					b.AppendNull()
					continue
				}
				x := rng.Int64N(few) - few/2
				values[i] = &x
				b.Append(column.IntValue(kind, x))
			}
			return &column.Batch{Start: 1000, Rows: n, Cols: []*column.Vector{b.Finish()}}, values
		}
		keys, key := draw(1+rng.IntN(500), rng.IntN(2) == 0)
		k := newKeySet([]column.Path{{field(1, "id", kind)}}, 1<<20)
		require.NoError(t, k.add(keys))
		k.sift()
		require.NotNil(t, k.sieve.words)
		in, null := map[int64]bool{}, false
		for _, x := range key {
			if x == nil {
				null = true
			} else {
				in[*x] = true
			}
		}
		data, values := draw(1000, rng.IntN(2) == 0)
		var want []uint32
		for i, x := range values {
			if x == nil && null || x != nil && in[*x] {
				want = append(want, uint32(1000+i))
			}
		}
		require.Equal(t, want, k.rowsIn(data, nil))
	}
}
