package avro

import (
	"bytes"
	"compress/flate"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

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

// FuzzInflate: of any bytes, this and the standard library decode the same or both refuse.
func FuzzInflate(f *testing.F) {
	for level := flate.HuffmanOnly; level <= flate.BestCompression; level += 3 {
		f.Add(deflated(f, level, []byte("a text, a text, and another text of many letters")))
	}
	f.Add([]byte{3, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 1<<16 {
			return
		}
		const limit = 1 << 20
		want, wantErr := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(raw)), limit+1))
		var z inflater
		got, err := z.inflate(nil, raw, limit)
		if len(want) > limit {
			require.True(t, err != nil || len(got) > limit)
			return
		}
		require.Equal(t, wantErr == nil, err == nil, "%v, %v", wantErr, err)
		if err == nil {
			require.True(t, bytes.Equal(want, got))
		}
	})
}
