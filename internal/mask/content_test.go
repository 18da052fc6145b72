package mask

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index/indextest"
)

// TestContentIsWhatRowsName: however paths are encoded and rows are ordered, a position counts for the file that its row names, and
// one that no file can have is left out.
func TestContentIsWhatRowsName(t *testing.T) {
	rng := indextest.Rand(t)
	for range 200 {
		files, span := 1+rng.IntN(5), []int64{200, 100_000, 1 << 33}[rng.IntN(3)]
		c, want, nulls := newContent(), map[string]map[uint32]bool{}, int64(0)
		for range 1 + rng.IntN(4) {
			rows := 1 + rng.IntN(600)
			paths, positions := column.NewBuilder(column.Of(column.String)), column.NewBuilder(column.Of(column.Long))
			stay := []int{1, 10, 400}[rng.IntN(3)]
			withNulls := rng.IntN(3) == 0
			var name string
			null := false
			for i := range rows {
				if i == 0 || rng.IntN(stay) == 0 {
					name, null = fmt.Sprintf("/t/%d", rng.IntN(files)), withNulls && rng.IntN(3) == 0
				}
				p := rng.Int64N(span)
				positions.Append(column.IntValue(column.Long, p))
				if null {
					paths.AppendNull()
					nulls++
					continue
				}
				paths.Append(column.StringValue(name))
				if want[name] == nil {
					want[name] = map[uint32]bool{}
				}
				if p < math.MaxUint32 {
					want[name][uint32(p)] = true
				}
			}
			path := paths.Finish()
			if rng.IntN(2) == 0 {
				path = encoded(path)
			}
			require.NoError(t, c.add(&column.Batch{Rows: rows, Cols: []*column.Vector{path, positions.Finish()}}))
		}
		require.Equal(t, nulls, c.nulls)
		require.Len(t, c.paths, len(want))
		for k, name := range c.paths {
			require.EqualValues(t, len(want[name]), c.rows[k].GetCardinality(), "%s", name)
			for p := range want[name] {
				require.True(t, c.rows[k].Contains(p), "%s at %d", name, p)
			}
		}
	}
}

// encoded is values over a dictionary of the distinct ones.
func encoded(v *column.Vector) *column.Vector {
	dict, known := column.NewBuilder(v.Type), map[column.Value]uint32{}
	out := &column.Vector{Type: v.Type, Len: v.Len, Valid: v.Valid, Idx: make([]uint32, v.Len)}
	for i := range v.Len {
		x, ok := v.Value(i)
		if !ok {
			continue
		}
		if _, is := known[x]; !is {
			known[x] = uint32(len(known))
			dict.Append(x)
		}
		out.Idx[i] = known[x]
	}
	if len(known) == 0 {
		return v
	}
	out.Dict = dict.Finish()
	return out
}
