package skomer_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// openSelecting opens a table that is read through filters however few files it has.
func openSelecting(t *testing.T, table, overlays string) *skomer.Table {
	t.Helper()
	c, err := skomer.New(skomer.Config{
		OverlayRoot: overlays, MaxStaleness: time.Nanosecond, MinPlannedFiles: -1, MinPlannedScanBytes: -1, CacheBytes: 32 << 20,
	}.WithSelectFrom(1))
	require.NoError(t, err)
	out, err := c.Open(context.Background(), table, skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(out.Close)
	return out
}

// TestSelectionsOfManyFiles: queries that read of the manifests only what their filter needs answer as the oracle does, on tables that
// change and with facts of the manifests kept, damaged and lost.
func TestSelectionsOfManyFiles(t *testing.T) {
	ctx := context.Background()
	rng, _ := seeded(t)
	for range rounds(t, 4) {
		dir, overlays := t.TempDir(), t.TempDir()
		table := tabletest.Create(t, rng, dir)
		table.Append(t, 12, 30)
		opened := openSelecting(t, dir, overlays)
		require.NoError(t, opened.Mount(ctx))
		for step := range 5 {
			if rng.IntN(3) == 0 && len(table.Files) > 4 {
				table.Remove(t)
			} else {
				table.Append(t, 1+rng.IntN(6), 30)
			}
			if step != 2 {
				_, err := opened.Sync(ctx, skomer.SyncOptions{})
				require.NoError(t, err)
			}
			packs, err := filepath.Glob(filepath.Join(opened.Overlay(), "data", "*.facts"))
			require.NoError(t, err)
			require.NotEmpty(t, packs)
			if step == 1 {
				_, err := opened.Sync(ctx, skomer.SyncOptions{})
				require.NoError(t, err)
				again, err := filepath.Glob(filepath.Join(opened.Overlay(), "data", "*.facts"))
				require.NoError(t, err)
				require.Equal(t, packs, again, "manifests whose facts are kept are not packed again")
			}
			if step == 3 {
				b, err := os.ReadFile(packs[0])
				require.NoError(t, err)
				b[rng.IntN(len(b))] ^= 8
				require.NoError(t, os.WriteFile(packs[0], b, 0o600))
			}
			if step == 4 {
				require.NoError(t, os.Remove(packs[0]))
			}
			fresh := openSelecting(t, dir, overlays)
			for range 8 {
				e := table.Expr(2)
				for _, asked := range []*skomer.Table{opened, fresh} {
					got, stats := positions(t, asked, skomer.Query{Where: e.SQL()})
					want := table.Answer(e)
					if describe(got) != describe(want) {
						t.Fatalf("%s\ngot  %s\nwant %s\n%s", e.SQL(), describe(got), describe(want), difference(table, got, want))
					}
					require.Equal(t, len(table.Files), stats.FilesTotal)
				}
			}
		}
	}
}
