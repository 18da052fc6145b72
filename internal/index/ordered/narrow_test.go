package ordered

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
)

// TestNumbersMatchAsBytesDo: reading keys of eight bytes as numbers finds what comparing their bytes finds, and believes no damaged block
// that the other way refuses. It refuses more: varints that are longer than they need be.
func TestNumbersMatchAsBytesDo(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	rng := rand.New(rand.NewPCG(seed, 9))
	for range 20_000 {
		keys := randomNumbers(rng, 1+rng.IntN(40))
		in := randomIntervals(rng, keys)
		b := keyBytes(keys)
		if rng.IntN(3) == 0 {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
		if rng.IntN(5) == 0 {
			b = b[:rng.IntN(len(b)+1)]
		}
		p := &probe{reader: &reader{enc: index.Encoding{Kind: column.Long}, rows: 1000}}
		p.intervals = in
		slow := bytescan.NewReader("block", b)
		want := p.matchKeys(slow, len(keys))
		numbers, ok := numbersOf(in)
		if !ok {
			t.Fatalf("seed %d: %v are not numbers", seed, in)
		}
		fast := bytescan.NewReader("block", b)
		got := matchNarrow(fast, b, len(keys), numbers)
		if slow.Err() != nil && fast.Err() == nil {
			t.Fatalf("seed %d: %x is believed: %v", seed, b, slow.Err())
		}
		if fast.Err() != nil && slow.Err() == nil && !slices.ContainsFunc(b, func(c byte) bool { return c >= 0x80 }) {
			t.Fatalf("seed %d: %x is refused: %v", seed, b, fast.Err())
		}
		if fast.Err() == nil && (!slices.Equal(want, got) || slow.Offset() != fast.Offset()) {
			t.Fatalf("seed %d: of %x in %v %v match up to byte %d, not %v up to %d", seed, keys, in, want, slow.Offset(), got, fast.Offset())
		}
	}
}

func randomNumbers(rng *rand.Rand, n int) []uint64 {
	var out []uint64
	for range n {
		switch rng.IntN(4) {
		case 0:
			out = append(out, rng.Uint64())
		case 1:
			out = append(out, rng.Uint64N(300))
		case 2:
			out = append(out, ^rng.Uint64N(300))
		default:
			out = append(out, 1<<63+rng.Uint64N(1<<20))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// randomIntervals is ascending and disjoint, with ends on, beside and far from keys.
func randomIntervals(rng *rand.Rand, keys []uint64) (out []index.Interval) {
	ends := randomNumbers(rng, rng.IntN(6))
	for _, k := range keys {
		if rng.IntN(4) == 0 {
			ends = append(ends, k+rng.Uint64N(3)-1)
		}
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	key := func(x uint64) []byte { return binary.BigEndian.AppendUint64(nil, x) }
	if len(ends) > 0 && rng.IntN(4) == 0 {
		out, ends = append(out, index.Interval{Hi: key(ends[0]), HiOpen: rng.IntN(2) == 0}), ends[1:]
	}
	for len(ends) > 1 {
		if rng.IntN(2) == 0 {
			out, ends = append(out, index.Interval{Lo: key(ends[0]), Hi: key(ends[0])}), ends[1:]
			continue
		}
		out = append(out, index.Interval{Lo: key(ends[0]), Hi: key(ends[1]), LoOpen: rng.IntN(2) == 0, HiOpen: rng.IntN(2) == 0})
		ends = ends[2:]
	}
	if len(ends) > 0 && rng.IntN(2) == 0 {
		out = append(out, index.Interval{Lo: key(ends[0]), LoOpen: rng.IntN(2) == 0, NoHi: true})
	}
	return out
}

// keyBytes is keys as a block holds them.
func keyBytes(keys []uint64) (b []byte) {
	var last, key [8]byte
	for i, k := range keys {
		binary.BigEndian.PutUint64(key[:], k)
		shared := 0
		if i > 0 {
			shared = commonPrefix(last[:], key[:])
		}
		b = append(append(b, byte(shared)), key[shared:]...)
		last = key
	}
	return append(b, "rows"...)
}
