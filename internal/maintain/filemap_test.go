package maintain

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/overlay"
)

// TestFewRunsAreLeft: whatever runs there are, merging leaves one a level, and every run goes into one merge at most.
func TestFewRunsAreLeft(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		keys := make([]uint64, r.IntN(70)+1)
		for i := range keys {
			keys[i] = uint64(r.Int64N(1 << r.IntN(40)))
		}
		seen := map[int]bool{}
		left := slices.Clone(keys)
		for _, set := range merges(keys) {
			require.Greater(t, len(set), 1, "seed %d", seed)
			for n, i := range set {
				require.False(t, seen[i], "seed %d", seed)
				seen[i] = true
				if n > 0 {
					left[set[0]] += left[i]
				}
			}
		}
		var runs []uint64
		for i, n := range left {
			if !seen[i] || slices.ContainsFunc(merges(keys), func(set []int) bool { return set[0] == i }) {
				runs = append(runs, n)
			}
		}
		require.LessOrEqual(t, len(runs), levels, "seed %d: %v of %v", seed, runs, keys)
		require.Empty(t, merges(runs), "seed %d", seed)
	}
}

// TestASmallRunDoesNotMoveALargeOne: one more file beside many is not merged with them.
func TestASmallRunDoesNotMoveALargeOne(t *testing.T) {
	require.Empty(t, merges([]uint64{1 << 30, 50_000}))
	require.Equal(t, [][]int{{1, 2}}, merges([]uint64{1 << 30, 50_000, 60_000}))
	require.Equal(t, [][]int{{0, 1}}, merges([]uint64{100, 100}))
}

// TestTheFirstIndexOwnsTheMap: of a column's indexes one feeds its file map; composite ones and other kinds feed none.
func TestTheFirstIndexOwnsTheMap(t *testing.T) {
	d := func(id, kind string, fields ...int) overlay.Definition {
		return overlay.Definition{ID: id, Kind: kind, FieldIDs: fields}
	}
	all := []overlay.Definition{
		d("a", "zonemap", 1), d("b", "ordered", 1), d("c", "bloom", 1), d("d", "ordered", 2, 1), d("e", "bloom", 2), d("f", "sketch", 3), d("g", "bitmap", 3),
	}
	var ids []string
	for _, x := range Mapped(all) {
		ids = append(ids, x.ID)
	}
	require.Equal(t, []string{"b", "e", "g"}, ids)
}
