package bundle

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
)

// TestBodiesOverBlocksHaveTheirOwnChecksums writes bodies of many blocks and of a few bytes, in pieces of any size.
func TestBodiesOverBlocksHaveTheirOwnChecksums(t *testing.T) {
	r := seeded(t)
	var raw bytes.Buffer
	w := NewWriter(&raw, info)
	var bodies [][]byte
	for range 40 {
		size := r.IntN(100)
		if r.IntN(4) == 0 {
			size = r.IntN(3 * blockSize)
		}
		if r.IntN(8) == 0 {
			size = blockSize
		}
		body := randomBytes(r, size)
		sink, err := w.Begin(record("i", 1))
		require.NoError(t, err)
		for rest := body; len(rest) > 0; {
			n := 1 + r.IntN(len(rest))
			_, err := sink.Write(rest[:n])
			require.NoError(t, err)
			rest = rest[n:]
			require.EqualValues(t, len(body)-len(rest), sink.Offset())
		}
		if r.IntN(5) == 0 {
			require.NoError(t, w.Abandon())
			continue
		}
		require.NoError(t, w.End([]byte("root")))
		bodies = append(bodies, body)
	}
	placed, err := w.Close()
	require.NoError(t, err)
	require.Len(t, placed, len(bodies))
	for i, p := range placed {
		require.Equal(t, bodies[i], raw.Bytes()[p.Body.Off:p.Body.Off+p.Body.Len])
		require.Equal(t, sha256.Sum256(bodies[i]), p.BodySHA256)
		require.Equal(t, bytescan.CRC32C(bodies[i]), p.Body.CRC)
	}
}

// failing takes so many bytes.
type failing struct {
	left  int
	short bool // fails without an error
}

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if len(p) <= f.left {
		f.left -= len(p)
		return len(p), nil
	}
	n := f.left
	if f.left = 0; f.short {
		return n, nil
	}
	return n, errFull
}

// TestAFullDiskFailsTheBundle fails writes anywhere: the last bytes reach the file when the bundle is closed.
func TestAFullDiskFailsTheBundle(t *testing.T) {
	body := make([]byte, 3*blockSize/2)
	for _, room := range []int{0, 10, blockSize - 1, blockSize, blockSize + 1, len(body) + 200} {
		for _, short := range []bool{false, true} {
			w := NewWriter(&failing{room, short}, info)
			sink, err := w.Begin(record("i", 1))
			require.NoError(t, err)
			_, _ = sink.Write(body)
			_ = w.End([]byte("root"))
			_, err = w.Close()
			if short {
				require.ErrorIs(t, err, io.ErrShortWrite, "%d bytes", room)
			} else {
				require.ErrorIs(t, err, errFull, "%d bytes", room)
			}
		}
	}
}

// TestOneFailedWriteFailsTheBundle fails a single write, whichever: those behind it, which are taken, do not make the file whole.
func TestOneFailedWriteFailsTheBundle(t *testing.T) {
	for bad := range 4 {
		n := 0
		w := NewWriter(writeFunc(func(p []byte) (int, error) {
			if n++; n == bad+1 {
				return 0, errFull
			}
			return len(p), nil
		}), info)
		for range 3 {
			sink, err := w.Begin(record("i", 1))
			if err == nil {
				_, _ = sink.Write(make([]byte, blockSize))
				_ = w.End([]byte("root"))
			}
		}
		_, err := w.Close()
		require.ErrorIs(t, err, errFull, "write %d", bad)
		_, err = w.Close()
		require.ErrorIs(t, err, errFull, "write %d", bad)
	}
}

type writeFunc func([]byte) (int, error)

func (f writeFunc) Write(p []byte) (int, error) { return f(p) }

// TestBlocksAreSharedOnlyWhenWritten has other bundles overwrite all memory that they can get while a block is being written.
func TestBlocksAreSharedOnlyWhenWritten(t *testing.T) {
	body := randomBytes(seeded(t), 5*blockSize/2)
	var raw []byte
	w := NewWriter(writeFunc(func(p []byte) (int, error) {
		var others [3]*[blockSize]byte
		for i := range others {
			others[i] = blockPool.Get().(*[blockSize]byte)
			clear(others[i][:])
		}
		raw = append(raw, p...)
		for _, b := range others {
			blockPool.Put(b)
		}
		return len(p), nil
	}), info)
	sink, err := w.Begin(record("i", 1))
	require.NoError(t, err)
	_, err = sink.Write(body)
	require.NoError(t, err)
	require.NoError(t, w.End([]byte("root")))
	placed, err := w.Close()
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, raw[placed[0].Body.Off:][:len(body)]))
	require.Equal(t, sha256.Sum256(body), placed[0].BodySHA256)
}

// slow takes a while for each write.
type slow struct{ begun, ended atomic.Int32 }

func (s *slow) Write(p []byte) (int, error) {
	s.begun.Add(1)
	time.Sleep(10 * time.Millisecond)
	s.ended.Add(1)
	return len(p), nil
}

// TestNothingIsWrittenBehindAFailedClose closes a bundle with an artifact that has not ended, while a block of it is being written.
func TestNothingIsWrittenBehindAFailedClose(t *testing.T) {
	out := &slow{}
	w := NewWriter(out, info)
	sink, err := w.Begin(record("i", 1))
	require.NoError(t, err)
	_, err = sink.Write(make([]byte, blockSize))
	require.NoError(t, err)
	_, err = w.Close()
	require.Error(t, err)
	require.EqualValues(t, 1, out.ended.Load())
	require.EqualValues(t, 1, out.begun.Load())
}
