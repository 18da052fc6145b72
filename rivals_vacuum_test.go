package skomer_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
)

// cleaned is a table with an overlay, and runs iceberg-go's orphan cleaner over a folder.
type cleaned struct {
	*testing.T
	w        *lakewrite.Table
	table    *skomer.Table
	overlays string
}

func newCleaned(t *testing.T, where func(table string) string) *cleaned {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
	require.NoError(t, err)
	for i, name := range []string{"a", "b"} {
		_, err = w.Append(ctx, plain(t, filepath.Join(dir, "table", "data", name+".parquet"), longs(int64(10+i), 20, 30, 40)))
		require.NoError(t, err)
	}
	c := &cleaned{T: t, w: w, overlays: where(w.Location())}
	c.table = open(t, w.Location(), c.overlays)
	c.index()
	return c
}

func (c *cleaned) index() {
	c.Helper()
	ctx := context.Background()
	require.NoError(c, c.table.Mount(ctx))
	_, err := c.table.AddIndex(ctx, "ordered(v)")
	require.NoError(c, err)
	_, err = c.table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(c, err)
	c.table.Close() // the head is written
}

// clean deletes what the cleaner takes for orphans of the table below a folder, and says what that was.
func (c *cleaned) clean(below string) []string {
	c.Helper()
	ctx := context.Background()
	files, err := filepath.Glob(filepath.Join(c.w.Location(), "metadata", "*.metadata.json"))
	require.NoError(c, err)
	t, err := table.NewFromLocation(ctx, table.Identifier{"t"}, files[len(files)-1], iceio.LoadFSFunc(nil, files[0]), nil)
	require.NoError(c, err)
	time.Sleep(10 * time.Millisecond)
	r, err := t.DeleteOrphanFiles(ctx, table.WithFilesOlderThan(0), table.WithLocation(below))
	require.NoError(c, err)
	return r.DeletedFiles
}

func (c *cleaned) answers(what string) {
	c.Helper()
	n, _ := count(c.T, c.table, skomer.Query{Where: "v = 20"})
	require.Equal(c, 2, n, what)
}

// TestU30: iceberg-go's DeleteOrphanFiles over a table removes what the table does not name, and nothing of an overlay, also where the
// overlay's place begins with the table's name.
func TestU30OrphanRemovalLeavesOverlaysAlone(t *testing.T) {
	for name, where := range map[string]func(string) string{
		"elsewhere":           func(string) string { return filepath.Join(t.TempDir(), "overlays") },
		"beside the table":    func(table string) string { return filepath.Join(filepath.Dir(table), "overlays") },
		"by the table's name": func(table string) string { return table + "-index" },
	} {
		c := newCleaned(t, where)
		stray := filepath.Join(c.w.Location(), "data", "stray.parquet")
		require.NoError(t, os.WriteFile(stray, []byte("x"), 0o600))
		before := contents(t, c.overlays)
		require.NotEmpty(t, before)
		deleted := c.clean(c.w.Location())
		for _, path := range deleted {
			require.True(t, strings.HasPrefix(path, c.w.Location()+"/"), path)
		}
		require.NoFileExists(t, stray)
		require.True(t, maps.Equal(before, contents(t, c.overlays)), name)
		c.answers(name)
	}
}

// TestU29: a cleaner that is let loose on the folder above deletes an overlay that lies there, live bundles and all. No answer
// changes, and the overlay is built again.
func TestU29AnswersSurviveAnyCleaner(t *testing.T) {
	c := newCleaned(t, func(table string) string { return filepath.Join(filepath.Dir(table), "overlays") })
	deleted := c.clean(filepath.Dir(c.w.Location()))
	require.Greater(t, len(deleted), 4)
	require.Empty(t, contents(t, c.overlays))
	c.answers("from memory")
	c.table = open(t, c.w.Location(), c.overlays)
	c.answers("as a new process sees it")
	c.index()
	c.answers("built again")
	require.NotEmpty(t, contents(t, c.overlays))
}
