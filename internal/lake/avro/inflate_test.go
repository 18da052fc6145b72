package avro

import (
	"bytes"
	"compress/flate"
	"io"
	"math/bits"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// randomSeed is the seed of a random test, that of SKOMER_SEED if it is set.
func randomSeed(t *testing.T) uint64 {
	seed := rand.Uint64()
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("SKOMER_SEED=%d", seed)
	return seed
}

func deflated(t testing.TB, level int, b []byte) []byte {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, level)
	require.NoError(t, err)
	_, err = w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// TestInflate: what the standard library packs comes back, at every level and of every texture.
func TestInflate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var z inflater
	for round := range 90 {
		b := make([]byte, r.IntN(1<<(round%18)+1))
		spread := 1 + r.IntN(256)
		for i := range b {
			if b[i] = byte(r.IntN(spread)); i > 40 && r.IntN(3) > 0 {
				b[i] = b[i-1-r.IntN(40)]
			}
		}
		for _, level := range []int{flate.HuffmanOnly, flate.NoCompression, flate.BestSpeed, flate.DefaultCompression, flate.BestCompression} {
			got, err := z.inflate([]byte{}, deflated(t, level, b), 1<<30)
			require.NoError(t, err)
			require.True(t, bytes.Equal(b, got), "level %d, %d bytes", level, len(b))
		}
	}
}

// TestInflateStopsAtItsLimit: at most a stored block or a match more than one byte past it is written.
func TestInflateStopsAtItsLimit(t *testing.T) {
	var z inflater
	for _, level := range []int{flate.NoCompression, flate.DefaultCompression} {
		got, err := z.inflate(nil, deflated(t, level, make([]byte, 10<<20)), 1000)
		require.NoError(t, err)
		require.Greater(t, len(got), 1000)
		require.Less(t, len(got), 1000+1<<16)
	}
}

// TestInflateTakesNoMemoryPastItsLimit: the output does not grow past what the limit leaves, but for rounding.
func TestInflateTakesNoMemoryPastItsLimit(t *testing.T) {
	raw := deflated(t, flate.BestCompression, make([]byte, 64<<20))
	for _, limit := range []int64{1 << 20, 8 << 20, 10_000_000, 33_000_000} {
		var z inflater
		got, err := z.inflate(make([]byte, 0, 4*len(raw)), raw, limit)
		require.NoError(t, err)
		require.Greater(t, int64(len(got)), limit)
		require.LessOrEqual(t, int64(cap(got)), limit+limit/3)
	}
}

// TestBlocksOfEveryKind: blocks that are stored, of fixed codes and of their own follow each other in any order.
func TestBlocksOfEveryKind(t *testing.T) {
	r := rand.New(rand.NewPCG(randomSeed(t), 2))
	var z inflater
	for range 200 {
		var packed, want bytes.Buffer
		for range 1 + r.IntN(8) {
			b := make([]byte, r.IntN([]int{2, 10, 3000}[r.IntN(3)]))
			for i := range b {
				b[i] = byte(r.IntN(1 + r.IntN(256)))
			}
			want.Write(b)
			w, err := flate.NewWriter(&packed, []int{flate.HuffmanOnly, flate.NoCompression, flate.BestSpeed, flate.BestCompression}[r.IntN(4)])
			require.NoError(t, err)
			_, err = w.Write(b)
			require.NoError(t, err)
			require.NoError(t, w.Flush()) // ends at a byte, so that another writer may go on
		}
		packed.Write([]byte{3, 0})
		got, err := z.inflate(nil, packed.Bytes(), 1<<20)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want.Bytes(), got))
	}
}

// TestFixedCodesAreMadeOnce: a block of fixed codes may take ten bits, and making their tables as long as decoding thousands of bytes.
func TestFixedCodesAreMadeOnce(t *testing.T) {
	z, empty := inflater{}, []byte{3, 0}
	_, err := z.inflate(nil, empty, 1)
	require.NoError(t, err)
	z.lit = litTable{} // no code any more, unless they are made again
	_, err = z.inflate(nil, empty, 1)
	require.Error(t, err)
	_, err = z.inflate(nil, deflated(t, flate.HuffmanOnly, bytes.Repeat([]byte("a block with codes of its own"), 100)), 1<<20)
	require.NoError(t, err)
	_, err = z.inflate(nil, empty, 1)
	require.NoError(t, err)
}

// agree demands that this and the standard library decode raw to the same or both refuse it.
func agree(t *testing.T, z *inflater, raw []byte) {
	const limit = 1 << 20
	want, wantErr := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(raw)), limit+1))
	got, err := z.inflate(nil, raw, limit)
	if len(want) > limit {
		require.True(t, err != nil || len(got) > limit)
		return
	}
	require.Equal(t, wantErr == nil, err == nil, "%v, %v", wantErr, err)
	if err == nil {
		require.True(t, bytes.Equal(want, got))
	}
}

// TestInflateOfDamagedBytes: damage is judged as the standard library judges it, wherever it is.
func TestInflateOfDamagedBytes(t *testing.T) {
	seed := randomSeed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	var z inflater
	for range 1500 {
		b := make([]byte, r.IntN(3000))
		spread, repeat := 1+r.IntN(256), r.IntN(4)
		for i := range b {
			if b[i] = byte(r.IntN(spread)); i > 300 && r.IntN(4) < repeat {
				b[i] = b[i-1-r.IntN(300)]
			}
		}
		raw := deflated(t, []int{flate.HuffmanOnly, flate.BestSpeed, flate.BestCompression}[r.IntN(3)], b)
		for range r.IntN(3) {
			raw[r.IntN(len(raw))] ^= 1 << r.IntN(8)
		}
		agree(t, &z, raw[:len(raw)-r.IntN(2)*r.IntN(len(raw))])
	}
}

// TestInflateOfDeepCodes: tables have room for any code, and every symbol is found in them by its bits.
func TestInflateOfDeepCodes(t *testing.T) {
	r := rand.New(rand.NewPCG(randomSeed(t), 1))
	var z inflater
	for round := range 400 {
		lits, dists := deepCode(r, 288, round%17), deepCode(r, 32, round%5)
		require.NoError(t, build(z.lit[:], litBits, lits, literals[:]))
		require.NoError(t, build(z.dist[:], distBits, dists, distances[:]))
		for symbol, bits := range canonical(lits) {
			require.Equal(t, coded(literals[symbol], uint(lits[symbol])), z.lit.find(bits|r.Uint64()<<lits[symbol]))
		}
		for symbol, bits := range canonical(dists) {
			require.Equal(t, coded(distances[symbol], uint(dists[symbol])), z.dist.find(bits|r.Uint64()<<dists[symbol]))
		}
	}
}

// deepCode is the lengths of a complete code of up to n symbols: one symbol after another is split in two, of some of them the longest.
func deepCode(r *rand.Rand, n, some int) []uint8 {
	lengths := []uint8{1, 1}
	for len(lengths) < n {
		at := r.IntN(len(lengths))
		for range some {
			if k := r.IntN(len(lengths)); lengths[k] > lengths[at] && lengths[k] < maxCode {
				at = k
			}
		}
		if lengths[at] < maxCode {
			lengths[at]++
			lengths = append(lengths, lengths[at])
		}
	}
	r.Shuffle(n, func(i, j int) { lengths[i], lengths[j] = lengths[j], lengths[i] })
	return lengths
}

// canonical is the code of each symbol, its first bit lowest (RFC 1951, 3.2.2).
func canonical(lengths []uint8) map[int]uint64 {
	out, code := map[int]uint64{}, uint64(0)
	for n := 1; n <= maxCode; n++ {
		for symbol, k := range lengths {
			if int(k) == n {
				out[symbol] = bits.Reverse64(code) >> (64 - n)
				code++
			}
		}
		code <<= 1
	}
	return out
}

// FuzzInflate: of any bytes, this and the standard library decode the same or both refuse.
func FuzzInflate(f *testing.F) {
	for level := flate.HuffmanOnly; level <= flate.BestCompression; level += 3 {
		f.Add(deflated(f, level, []byte("a text, a text, and another text of many letters")))
	}
	f.Add([]byte{3, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) <= 1<<16 {
			agree(t, &inflater{}, raw)
		}
	})
}
