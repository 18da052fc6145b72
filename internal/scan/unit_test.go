package scan

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRunsOfBitsAreTheirPlaces: appendRuns and appendSet tell the same rows, runs as long as they can be.
func TestRunsOfBitsAreTheirPlaces(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 2))
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
		from := rng.Uint32N(size)
		to := from + rng.Uint32N(size-from+1)
		runs, n := appendRuns(nil, words, from, to)
		var rows []uint32
		for i, r := range runs {
			require.Less(t, r.From, r.To, "seed %d", seed)
			require.True(t, i == 0 || r.From > runs[i-1].To, "seed %d: %v touch", seed, runs)
			for x := r.From; x < r.To; x++ {
				rows = append(rows, x)
			}
		}
		require.Len(t, rows, n)
		require.Equal(t, appendSet(nil, words, from, to), rows, "seed %d: %x from %d to %d", seed, words, from, to)
	}
}
