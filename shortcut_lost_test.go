package skomer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
)

// TestSyncGoesOnWithoutLostParts: of an overlay with several lists of artifacts any one list is gone, or the roll of files that they are about is
// gone or empty. A process that knows nothing syncs all the same: where its shortcut ends at what is lost, it looks at every file.
func TestSyncGoesOnWithoutLostParts(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	process := func() *skomer.Table {
		c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays(), MaxStaleness: time.Nanosecond}.WithWholeUpTo(-1))
		require.NoError(t, err)
		table, err := c.Open(ctx, s.Location(), skomer.TableOptions{})
		require.NoError(t, err)
		return tracked(t, table)
	}
	n := int64(0)
	grow := func(by int) {
		var files []lakewrite.File
		for range by {
			files = append(files, plain(t, filepath.Join(s.dir, "table", "data", fmt.Sprintf("f%05d.parquet", n)), longs(n, -1)))
			n++
		}
		_, err := s.Append(ctx, files...)
		require.NoError(t, err)
	}
	table := process()
	require.NoError(t, table.Mount(ctx))
	_, err := table.AddIndex(ctx, "zonemap(v)")
	require.NoError(t, err)
	for _, by := range []int{600, 300, 150} {
		grow(by)
		synced(t, process(), skomer.SyncOptions{Whole: true})
	}
	grow(1)
	require.Empty(t, synced(t, process(), skomer.SyncOptions{}).Whole)
	grow(1)
	lists, err := filepath.Glob(filepath.Join(s.overlays(), "*", "chunks", "*"))
	require.NoError(t, err)
	rolls, err := filepath.Glob(filepath.Join(s.overlays(), "*", "derived", "*.roll"))
	require.NoError(t, err)
	require.NotEmpty(t, rolls)
	whole := map[string]int{}
	before := filepath.Join(s.dir, "before")
	settle(s.overlays())
	require.NoError(t, os.CopyFS(before, os.DirFS(s.overlays())))
	for _, path := range append(lists, rolls...) {
		for _, how := range []string{"gone", "empty"} {
			if how == "empty" && !slices.Contains(rolls, path) {
				continue
			}
			settle(s.overlays())
			require.NoError(t, os.RemoveAll(s.overlays()))
			require.NoError(t, os.CopyFS(s.overlays(), os.DirFS(before)))
			require.NoError(t, os.Remove(path))
			if how == "empty" {
				require.NoError(t, os.WriteFile(path, nil, 0o600))
			}
			why := synced(t, process(), skomer.SyncOptions{}).Whole
			whole[why]++
			got, _ := count(t, process(), skomer.Query{Where: "v = -1"})
			require.Equal(t, int(n), got)
			if why == "" { // what is lost will be noticed by the next look at every file
				continue
			}
			st, err := process().Status(ctx)
			require.NoError(t, err)
			for _, x := range st.Indexes {
				require.Equal(t, x.Total, x.Covered, "%s is %s", path, how)
			}
		}
	}
	t.Logf("ways: %v", whole)
	require.Positive(t, whole["a part of the overlay cannot be read"])
}
