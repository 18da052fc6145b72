package interop_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/interop"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// TestInteropThetaIsRead: Java's Iceberg and DataSketches open the theta blobs of a table's statistics file, and find in them the hashes
// that they make of the same values themselves, in exact and in estimation mode.
func TestInteropThetaIsRead(t *testing.T) {
	for _, n := range []int{1000, 20000} {
		file := statisticsFile(t, n)
		lines := interop.Lines(t, "java", append(interop.Java(t, "Theta"), file, fmt.Sprint(n))...)
		require.Len(t, lines, 2)
		for i, line := range lines {
			var field, ndv, estimate int
			var same bool
			_, err := fmt.Sscan(line, &field, &ndv, &estimate, &same)
			require.NoError(t, err, line)
			require.Equal(t, i+1, field)
			require.Equal(t, ndv, estimate)
			require.InEpsilon(t, n, ndv, 0.1, "%d distinct values", n)
			require.True(t, same, line)
		}
	}
}

// statisticsFile is that of a table of the longs below n and the texts "v0", "v1", … in two files that share a half.
func statisticsFile(t *testing.T, n int) string {
	t.Helper()
	ctx := context.Background()
	dir, overlay := filepath.Join(t.TempDir(), "table"), t.TempDir()
	schema := &column.Schema{Fields: []column.Field{{ID: 1, Name: "l", Type: column.Of(column.Long)}, {ID: 2, Name: "s", Type: column.Of(column.String)}}}
	w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: schema})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	for f, part := range [][2]int{{0, n * 3 / 4}, {n / 4, n}} {
		var rows []tabletest.Row
		for i := part[0]; i < part[1]; i++ {
			rows = append(rows, tabletest.Row{{Val: column.IntValue(column.Long, int64(i))}, {Val: column.StringValue(fmt.Sprint("v", i))}})
		}
		path := filepath.Join(dir, "data", fmt.Sprint(f, ".parquet"))
		require.NoError(t, tabletest.WriteParquet(path, schema, rows, tabletest.Layout{RowsPerGroup: 5000, PageBytes: 1 << 16, PageVersion: 1, Codec: tabletest.Uncompressed}))
		info, err := os.Stat(path)
		require.NoError(t, err)
		_, err = w.Append(ctx, lakewrite.File{Path: path, Format: facts.Parquet, Records: int64(len(rows)), Size: info.Size()})
		require.NoError(t, err)
	}
	client, err := skomer.New(skomer.Config{})
	require.NoError(t, err)
	table, err := client.Open(ctx, dir, skomer.TableOptions{Overlay: overlay})
	require.NoError(t, err)
	defer table.Close()
	require.NoError(t, table.Mount(ctx))
	for _, expr := range []string{"sketch(l)", "sketch(s)"} {
		_, err := table.AddIndex(ctx, expr)
		require.NoError(t, err)
	}
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	out := ""
	require.NoError(t, filepath.WalkDir(filepath.Join(overlay, "stats"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".puffin") {
			out = path
		}
		return err
	}))
	require.NotEmpty(t, out)
	return out
}
