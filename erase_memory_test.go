package skomer_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
)

// TestEraseLeavesNothingInMemory looks for an erased value in every object on the heap: what queries kept of indexes holds it before, and
// nothing after the erasure.
func TestEraseLeavesNothingInMemory(t *testing.T) {
	const secret = "zzz-in-no-memory" // of no other test of this process
	dir := t.TempDir()
	secretTable(t, filepath.Join(dir, "table"), secret)
	client, err := skomer.New(skomer.Config{OverlayRoot: filepath.Join(dir, "over"), MaxStaleness: time.Hour, MinPlannedFiles: -1, MinPlannedScanBytes: -1, MinSelectivity: -1})
	require.NoError(t, err)
	table, err := client.Open(t.Context(), filepath.Join(dir, "table"), skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	require.NoError(t, table.Mount(t.Context()))
	for _, expr := range []string{"ordered(v)", "bitmap(v)", "valueset(v)", "zonemap(v)", "sketch(v)"} {
		_, err = table.AddIndex(t.Context(), expr)
		require.NoError(t, err)
	}
	_, err = table.Sync(t.Context(), skomer.SyncOptions{})
	require.NoError(t, err)
	asked := func() {
		for _, where := range []string{"v = 'b'", "v > 'yy'", "v IN ('c', 'zz')", "v <> 'a'"} {
			matching(t, table, where)
		}
	}
	asked()
	require.NotZero(t, onHeap(t, secret), "or nothing can be forgotten")
	eraseSecret(t, table, secret)
	require.Zero(t, onHeap(t, secret))
}

// eraseSecret erases and keeps nothing of the filter that names the value.
func eraseSecret(t *testing.T, table *skomer.Table, secret string) {
	t.Helper()
	r, err := table.Erase(t.Context(), skomer.EraseOptions{Where: "v = '" + secret + "'"})
	require.NoError(t, err)
	require.True(t, r.Complete)
}

// onHeap counts a text in what the heap holds.
func onHeap(t *testing.T, text string) int {
	t.Helper()
	for range 3 { // pools give up what they hold after two
		runtime.GC()
	}
	path := filepath.Join(t.TempDir(), "heap")
	f, err := os.Create(path)
	require.NoError(t, err)
	debug.WriteHeapDump(f.Fd())
	require.NoError(t, f.Close())
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	defer clear(raw) // the next dump is of the heap that this lies on
	return bytes.Count(raw, []byte(text))
}
