package skomer_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

const erasedSecret = "zzz-nobody-may-know"

// secretTable is a table of three files, with a position delete of the row that has the secret.
func secretTable(t *testing.T, dir, secret string) {
	t.Helper()
	schema := &column.Schema{Fields: []column.Field{{ID: 1, Name: "v", Type: column.Of(column.String)}}}
	w, err := lakewrite.Create(t.Context(), local.New(), dir, lakewrite.Spec{Schema: schema, FormatVersion: 2})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	write := func(name string, schema *column.Schema, rows ...tabletest.Row) lakewrite.File {
		return smallFile(t, filepath.Join(dir, "data", name), schema, rows)
	}
	for i, last := range []string{"b", secret, "c"} {
		_, err := w.Append(t.Context(), write(fmt.Sprint(i, ".parquet"), schema, tabletest.Row{{Val: column.StringValue("a")}}, tabletest.Row{{Val: column.StringValue(last)}}))
		require.NoError(t, err)
	}
	deletes := write("d.parquet", &column.Schema{Fields: []column.Field{
		{ID: 2147483546, Name: "file_path", Type: column.Of(column.String), Required: true}, {ID: 2147483545, Name: "pos", Type: column.Of(column.Long), Required: true},
	}}, tabletest.Row{{Val: column.StringValue(filepath.Join(dir, "data", "1.parquet"))}, {Val: column.IntValue(column.Long, 1)}})
	deletes.Content = lakewrite.PositionDeletes
	_, err = w.Append(t.Context(), deletes)
	require.NoError(t, err)
}

// TestAPausedProcessDoesNotBringBackWhatWasErased: a real process that syncs is stopped just before or just after one of its writes;
// values are erased meanwhile; then it goes on. An erasure that calls itself complete stays so, and one that does not says what it waits
// for, and is when it is run again.
func TestAPausedProcessDoesNotBringBackWhatWasErased(t *testing.T) {
	rng, _ := seeded(t)
	for range rounds(t, 4) {
		nth, after := 1+rng.Int64N(16), rng.IntN(2) == 0
		t.Run(fmt.Sprintf("write %d, after it %v", nth, after), func(t *testing.T) { eraseBesidePaused(t, rng, nth, after) })
	}
}

func eraseBesidePaused(t *testing.T, rng *rand.Rand, nth int64, after bool) {
	dir := t.TempDir()
	l := &life{t: t, rng: rng, tally: newTally(), setting: lifeSetting{Table: filepath.Join(dir, "table"), Overlay: filepath.Join(dir, "over")}}
	secretTable(t, l.setting.Table, erasedSecret)
	client, err := skomer.New(skomer.Config{OverlayRoot: dir, MaxStaleness: time.Nanosecond, MinPlannedScanBytes: -1})
	require.NoError(t, err)
	table, err := client.Open(t.Context(), l.setting.Table, skomer.TableOptions{Overlay: l.setting.Overlay})
	require.NoError(t, err)
	require.NoError(t, table.Mount(t.Context()))
	for _, expr := range []string{"valueset(v)", "bloom(v)", "zonemap(v)", "sketch(v)"} {
		_, err = table.AddIndex(t.Context(), expr)
		require.NoError(t, err)
	}
	held := func() int {
		table.Close() // its head is written
		return below(t, l.setting.Overlay, erasedSecret)
	}
	w := l.start()
	t.Cleanup(w.end)
	require.NoError(t, w.send(lifeCommand{Op: "sync", Stop: "pause", Nth: nth, After: after}))
	stopped := untilStopped(w)
	if !stopped {
		require.NotZero(t, held(), "a sync that went through keeps what deletes hide")
	}
	options := skomer.EraseOptions{Where: "v = '" + erasedSecret + "'", Deadline: 50 * time.Millisecond}
	first, err := table.Erase(t.Context(), options)
	require.NoError(t, err)
	if first.Complete {
		require.Zero(t, held(), "while it sleeps")
	}
	if stopped {
		require.NoError(t, w.cmd.Process.Signal(syscall.SIGCONT))
		<-w.results
	}
	if !first.Complete {
		require.True(t, stopped)
		require.NotEmpty(t, first.Left)
		again, err := table.Erase(t.Context(), options)
		require.NoError(t, err)
		require.True(t, again.Complete, "%+v", again.Left)
	}
	t.Logf("stopped %v, complete at once %v", stopped, first.Complete)
	require.Zero(t, held(), "when it has gone on")
	_, err = table.Sync(t.Context(), skomer.SyncOptions{})
	require.NoError(t, err)
	require.Zero(t, held(), "after a sync")
	require.Equal(t, int64(3), matching(t, table, "v = 'a'"))
	require.Zero(t, matching(t, table, options.Where))
	table.Close()
}

// untilStopped waits until a process is stopped; false: it ended what it did.
func untilStopped(w *lifeWorker) bool {
	for !w.stopped() {
		select {
		case <-w.results:
			return false
		case <-time.After(time.Millisecond):
		}
	}
	return true
}
