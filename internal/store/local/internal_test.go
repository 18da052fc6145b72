package local

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

func TestChangeDuringReadIsStale(t *testing.T) {
	s := New()
	for name, change := range map[string]func(path string) error{
		"rewritten": func(path string) error { return os.WriteFile(path, []byte("9876543210"), 0o666) },
		"truncated": func(path string) error { return os.Truncate(path, 3) },
		"grown":     func(path string) error { return os.Truncate(path, 30) },
	} {
		path := t.TempDir() + "/o"
		require.NoError(t, os.WriteFile(path, []byte("0123456789"), 0o666))
		f, info, err := s.open(path)
		require.NoError(t, err)
		time.Sleep(20 * time.Millisecond) // longer than a tick of the kernel's clock
		require.NoError(t, change(path))
		_, err = s.readSpans(t.Context(), f, store.Read{Key: path, Spans: []store.Span{{Off: 1, Len: 8}}}, info, new(store.Counter))
		require.Equal(t, fault.Stale, fault.ClassOf(err), "%s: %v", name, err)
		require.True(t, fault.Retryable(err))
		require.NoError(t, f.Close())
	}
}

func TestReplacedDuringReadIsTheOldObject(t *testing.T) {
	s := New()
	path := t.TempDir() + "/o"
	require.NoError(t, os.WriteFile(path, []byte("0123456789"), 0o666))
	f, info, err := s.open(path)
	require.NoError(t, err)
	defer f.Close()
	time.Sleep(20 * time.Millisecond) // longer than a tick of the kernel's clock
	_, err = s.PutIf(t.Context(), path, info.Tag, []byte("9876543210"))
	require.NoError(t, err)
	data, err := s.readSpans(t.Context(), f, store.Read{Key: path}, info, new(store.Counter))
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(data[0]))
}

// TestNamedTemp covers file systems that have no files without a name.
func TestNamedTemp(t *testing.T) {
	dir := t.TempDir()
	f, err := newNamed(dir)
	require.NoError(t, err)
	_, err = f.WriteString("content")
	require.NoError(t, err)
	infos, err := New().List(t.Context(), dir+"/", "", 10)
	require.NoError(t, err)
	require.Empty(t, infos, "an unfinished write is not listed")
	require.NoError(t, f.publish(dir+"/o"))
	f.discard()
	second, err := newNamed(dir)
	require.NoError(t, err)
	require.ErrorIs(t, second.publish(dir+"/o"), unix.EEXIST)
	second.discard()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	b, err := os.ReadFile(dir + "/o")
	require.NoError(t, err)
	require.Equal(t, "content", string(b))
}

func TestPoolRunsAllNestedAndBounded(t *testing.T) {
	p := newPool(4)
	var now, peak, ran atomic.Int64
	p.each(20, func(int) {
		p.each(20, func(int) {
			peak.Store(max(peak.Load(), now.Add(1)))
			time.Sleep(100 * time.Microsecond)
			now.Add(-1)
			ran.Add(1)
		})
	})
	require.EqualValues(t, 400, ran.Load())
	require.LessOrEqual(t, peak.Load(), int64(4))
	require.Greater(t, peak.Load(), int64(1))
	p.each(0, func(int) { t.Error("nothing to run") })
}
