package scan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index/indextest"
)

// TestLiveRowsOfBatches: a row of a batch is live where its position is in the set, for batches of neighbouring and of scattered rows.
func TestLiveRowsOfBatches(t *testing.T) {
	rng := indextest.Rand(t)
	for range 20_000 {
		words := make([]uint64, 1+rng.IntN(6))
		for i := range words {
			switch rng.IntN(4) {
			case 0:
				words[i] = ^uint64(0)
			case 1:
				words[i] = rng.Uint64() | rng.Uint64() | rng.Uint64()
			case 2:
				words[i] = rng.Uint64() & rng.Uint64() & rng.Uint64()
			}
		}
		size := uint32(len(words) * 64)
		b := &column.Batch{Start: rng.Uint32N(size)}
		b.Rows = int(rng.Uint32N(size - b.Start + 1))
		if rng.IntN(2) == 0 {
			for p := b.Start; p < b.Start+uint32(b.Rows); p++ {
				if rng.IntN(3) > 0 {
					b.Pos = append(b.Pos, p)
				}
			}
			if b.Rows = len(b.Pos); b.Rows == 0 {
				b.Pos = nil
			}
		}
		got := liveOf(nil, words, b)
		require.Len(t, got, (b.Rows+63)/64)
		for i := range len(got) * 64 {
			want := false
			if i < b.Rows {
				p := b.Position(i)
				want = words[p/64]>>(p%64)&1 == 1
			}
			require.Equal(t, want, got[i/64]>>(i%64)&1 == 1, "row %d of %d from %d of %x", i, b.Rows, b.Start, words)
		}
	}
}
