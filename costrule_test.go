package skomer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// TestStoppedProbesChangeNoAnswer: indexes of columns of which no sketch tells anything are asked, and stopped where their first bytes tell
// that most of them would be read; explain says so, and the answer is the oracle's.
func TestStoppedProbesChangeNoAnswer(t *testing.T) {
	ctx := context.Background()
	rng, _ := seeded(t)
	const files, rows = 2, 50_000
	schema := &column.Schema{Fields: []column.Field{
		{ID: 1, Name: "k", Type: column.Of(column.Long)}, {ID: 2, Name: "v", Type: column.Of(column.Long)},
	}}
	dir := filepath.Join(t.TempDir(), "table")
	w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: schema})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	var keys, few []int64
	var added []lakewrite.File
	for f := range files {
		var data []tabletest.Row
		for range rows {
			k, v := rng.Int64N(1_000_000), rng.Int64N(20)
			keys, few = append(keys, k), append(few, v)
			data = append(data, tabletest.Row{{Val: column.IntValue(column.Long, k)}, {Val: column.IntValue(column.Long, v)}})
		}
		path := filepath.Join(dir, "data", fmt.Sprintf("%d.parquet", f))
		require.NoError(t, tabletest.WriteParquet(path, schema, data, tabletest.Layout{RowsPerGroup: rows, PageBytes: 65536, PageVersion: 1, PageIndex: true, Codec: tabletest.Uncompressed}))
		info, err := os.Stat(path)
		require.NoError(t, err)
		added = append(added, lakewrite.File{Path: path, Format: facts.Parquet, Records: rows, Size: info.Size()})
	}
	_, err = w.Append(ctx, added...)
	require.NoError(t, err)
	table := open(t, dir, filepath.Join(t.TempDir(), "overlays"))
	require.NoError(t, table.Mount(ctx))
	for _, expr := range []string{"ordered(k)", "bitmap(v)"} {
		_, err := table.AddIndex(ctx, expr)
		require.NoError(t, err)
	}
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)

	stopped, used := 0, 0
	for range 24 {
		a, b := rng.Int64N(1_000_000), rng.Int64N(20)
		where, passes := fmt.Sprintf("k < %d AND v <> %d", a, b), func(k, v int64) bool { return k < a && v != b }
		switch rng.IntN(3) {
		case 0:
			where, passes = fmt.Sprintf("v < %d", b), func(_, v int64) bool { return v < b }
		case 1:
			where, passes = fmt.Sprintf("k >= %d OR v = %d", a, b), func(k, v int64) bool { return k >= a || v == b }
		}
		want := map[string][]int{}
		for i := range keys {
			if passes(keys[i], few[i]) {
				path := added[i/rows].Path
				want[path] = append(want[path], i%rows)
			}
		}
		got := map[string][]int{}
		r, err := table.Query(ctx, skomer.Query{Where: where, Select: []string{"_file", "_pos"}, Limit: -1})
		require.NoError(t, err)
		require.NoError(t, r.Each(ctx, func(b *skomer.Batch) error {
			for i := range b.Rows {
				file, _ := b.Cols[0].Value(i)
				pos, _ := b.Cols[1].Value(i)
				got[file.S] = append(got[file.S], int(pos.Int64()))
			}
			return nil
		}))
		require.Equal(t, want, got, where)
		e, err := table.Explain(ctx, skomer.Query{Where: where}, false)
		require.NoError(t, err)
		for _, x := range e.Indexes {
			if x.Use == "stopped" {
				require.True(t, strings.Contains(x.Reason, "one by one"), x.Reason)
				stopped++
			}
			if x.Use == "used" {
				used++
			}
		}
	}
	require.Positive(t, stopped)
	require.Positive(t, used)
}
