package skomer_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
)

// contents is the bytes of every file below a folder, by path, once the heads of tracked tables are written. What other processes are
// about to replace is left out.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	settle(dir)
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".tmp") { // a head may be on its way
			var b []byte
			b, err = os.ReadFile(path)
			out[path] = string(b)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}))
	return out
}

// TestO49OrphanCleaners: nothing of ours lies below the table or is listed in its metadata, so no cleaner of the table can take it
// for an orphan; and a Puffin file that only the table's "statistics" list is the table's own, which no step of ours touches.
func TestO49OrphanCleaners(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
	require.NoError(t, err)
	snapshot, err := w.Append(ctx, plain(t, filepath.Join(dir, "table", "data", "a.parquet"), longs(10, 20, 30, 40)))
	require.NoError(t, err)
	puffin := filepath.Join(dir, "table", "metadata", "only-in-statistics.stats")
	require.NoError(t, os.WriteFile(puffin, []byte("PFA1"), 0o600))
	listStatistics(t, filepath.Join(dir, "table"), snapshot, puffin)
	before := contents(t, w.Location())

	for _, inside := range []string{w.Location(), filepath.Join(w.Location(), "metadata")} {
		refused := open(t, w.Location(), inside)
		require.True(t, fault.Is(refused.Mount(ctx), fault.Refused), inside)
	}
	table := open(t, w.Location(), filepath.Join(dir, "overlays"))
	require.NoError(t, table.Mount(ctx))
	for _, expr := range []string{"ordered(v)", "bloom(v)"} {
		_, err = table.AddIndex(ctx, expr)
		require.NoError(t, err)
	}
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	n, _ := count(t, table, skomer.Query{Where: "v = 20"})
	require.Equal(t, 1, n)
	require.NotEmpty(t, contents(t, filepath.Join(dir, "overlays")))
	require.Equal(t, before, contents(t, w.Location()))
}

// listStatistics adds a statistics file to the newest metadata of a table, as an engine's ANALYZE does.
func listStatistics(t *testing.T, dir string, snapshot int64, path string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "metadata", "*.metadata.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	newest := files[len(files)-1]
	text, err := os.ReadFile(newest)
	require.NoError(t, err)
	listed, err := json.Marshal([]map[string]any{{
		"snapshot-id": snapshot, "statistics-path": path, "file-size-in-bytes": 4, "file-footer-size-in-bytes": 4, "blob-metadata": []any{},
	}})
	require.NoError(t, err)
	head, ok := strings.CutSuffix(strings.TrimSpace(string(text)), "}")
	require.True(t, ok)
	require.NotContains(t, head, `"statistics"`)
	require.NoError(t, os.WriteFile(newest, []byte(head+`,"statistics":`+string(listed)+"}"), 0o600))
}
