package skomer_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
)

// TestFilesStatedAsURIs: a table that states its files as file: URIs, as PyIceberg writes them, is queried, indexed, swept, repaired,
// scrubbed and looked at by doctor like one of plain paths.
func TestFilesStatedAsURIs(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	var paths []string
	for i := range 14 { // enough for a sweep to list them
		path := filepath.Join(s.dir, "table", "data", fmt.Sprintf("f%04d.parquet", i))
		f := plain(t, path, longs(int64(4*i), int64(4*i+1), int64(4*i+2), int64(4*i+3)))
		f.Path = []string{"file://", "file:", "file://localhost"}[i%3] + f.Path
		_, err := s.Append(ctx, f)
		require.NoError(t, err)
		paths = append(paths, path)
	}
	table := s.mount(t, "bloom(v)", "ordered(v)")
	ask := func(where string, want int) {
		n, _ := count(t, table, skomer.Query{Where: where, Strict: true})
		require.Equal(t, want, n, where)
	}
	ask("v = 5", 1)
	synced(t, table, skomer.SyncOptions{})
	requireCovered(t, table)
	ask("v IN (5, 17)", 2)
	overwriteAlike(t, paths[1], 104, 105, 106, 107)
	r := synced(t, table, skomer.SyncOptions{Sweep: true})
	require.Equal(t, 14, r.Swept.Files)
	require.Equal(t, 1, r.Swept.Changed)
	requireCovered(t, table)
	ask("v = 5", 0)
	ask("v = 105", 1)
	scrubbed, err := table.Scrub(ctx, skomer.ScrubOptions{})
	require.NoError(t, err)
	require.Empty(t, scrubbed.Findings)
	c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays()})
	require.NoError(t, err)
	health := c.Doctor(ctx, s.Location(), skomer.TableOptions{})
	require.True(t, health.Healthy(), "%+v", health.Checks)
}
