package skomer_test

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
)

// TestWhatIsCappedIsCounted: artifacts that gave up on values are counted, of every kind that can, and those that did not are none.
func TestWhatIsCappedIsCounted(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
	require.NoError(t, err)
	few, many := make([]int64, 1500), make([]int64, 1500)
	for i := range many {
		few[i], many[i] = int64(i%3), int64(i)
	}
	file := func(name string) string { return filepath.Join(dir, "table", "data", name) }
	_, err = w.Append(ctx, plain(t, file("few.parquet"), longs(few...)), plain(t, file("many.parquet"), longs(many...)))
	require.NoError(t, err)
	table := open(t, filepath.Join(dir, "table"), filepath.Join(dir, "overlays"))
	require.NoError(t, table.Mount(ctx))
	want := map[string]int{"bitmap(v) cap=600": 1, "bitmap(v) cap=2000": 0, "bitmap(v)": 0, "ordered(v)": 0, "bloom(v)": 0, "zonemap(v)": 0, "valueset(v) cap=2000": 0}
	for expr := range want {
		_, err := table.AddIndex(ctx, expr)
		require.NoError(t, err, expr)
	}
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	indexes, err := table.Indexes(ctx)
	require.NoError(t, err)
	for _, x := range indexes {
		require.Equal(t, strconv.Itoa(want[x.Expr]), strconv.Itoa(x.Capped), x.Expr)
		require.Equal(t, x.Total, x.Covered, x.Expr)
	}
}
