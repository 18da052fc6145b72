package skomer_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/puffin"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// counting makes rows with v from..to.
func counting(from, to int64) []tabletest.Row {
	var v []int64
	for x := from; x < to; x++ {
		v = append(v, x)
	}
	return longs(v...)
}

// TestStatisticsFollowTheTable: appended files are added to the sketch of the table, and removed ones forgotten; without a sketch the
// manifests say what they can and nothing else.
func TestStatisticsFollowTheTable(t *testing.T) {
	ctx := context.Background()
	dir, overlays := filepath.Join(t.TempDir(), "table"), filepath.Join(t.TempDir(), "overlays")
	w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: idSchema})
	require.NoError(t, err)
	file := func(name string) string { return filepath.Join(dir, "data", name) }
	rows := counting(0, 1000)
	rows[7][1].Null = true
	_, err = w.Append(ctx, plain(t, file("a.parquet"), rows), plain(t, file("b.parquet"), counting(500, 1500)))
	require.NoError(t, err)
	table := open(t, dir, overlays)

	v := statsOf(t, table, "v")
	require.Nil(t, v.Distinct)
	require.Empty(t, v.Quantile)

	require.NoError(t, table.Mount(ctx))
	for _, expr := range []string{"sketch(v)", "sketch(id)"} {
		_, err = table.AddIndex(ctx, expr)
		require.NoError(t, err)
	}
	sync := func() {
		_, err := table.Sync(ctx, skomer.SyncOptions{})
		require.NoError(t, err)
	}
	sync()
	v = statsOf(t, table, "v")
	require.Equal(t, "sketch", v.Source)
	require.EqualValues(t, 2000, v.Rows)
	require.EqualValues(t, 1, *v.Nulls)
	require.EqualValues(t, 1499, v.Distinct.Estimate, "0 to 6 and 8 to 1499")
	require.Equal(t, "0", v.Quantile[0].Value)
	require.Equal(t, "1499", v.Quantile[6].Value)
	blob := standardBlob(t, overlays, 2)
	require.Equal(t, "1499", blob.Properties["ndv"])

	_, err = w.Append(ctx, plain(t, file("c.parquet"), counting(1500, 1600)))
	require.NoError(t, err)
	sync()
	v = statsOf(t, table, "v")
	require.EqualValues(t, 2100, v.Rows)
	require.EqualValues(t, 1599, v.Distinct.Estimate)

	_, err = w.Remove(ctx, file("b.parquet"))
	require.NoError(t, err)
	sync()
	v = statsOf(t, table, "v")
	require.EqualValues(t, 1100, v.Rows)
	require.EqualValues(t, 999+100, v.Distinct.Estimate)
	require.Equal(t, "1599", v.Quantile[6].Value)
	require.Equal(t, 2, v.Files.Unbounded, "the manifests of this table state no bounds")

	before, err := table.Stats(ctx, "")
	require.NoError(t, err)
	sync()
	after, err := table.Stats(ctx, "")
	require.NoError(t, err)
	require.Equal(t, before.Columns, after.Columns)
}

func statsOf(t *testing.T, table *skomer.Table, column string) skomer.ColumnStats {
	t.Helper()
	s, err := table.Stats(context.Background(), "")
	require.NoError(t, err)
	for _, c := range s.Columns {
		if c.Name == column {
			return c
		}
	}
	t.Fatal("no column " + column)
	return skomer.ColumnStats{}
}

// standardBlob is the theta blob of a field in the one statistics file of an overlay.
func standardBlob(t *testing.T, overlays string, field int32) puffin.Blob {
	t.Helper()
	var out *puffin.Blob
	require.NoError(t, filepath.WalkDir(overlays, func(path string, _ fs.DirEntry, err error) error {
		if !strings.Contains(path, string(filepath.Separator)+"stats"+string(filepath.Separator)) {
			return err
		}
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		footer, _, err := puffin.ParseFooter(path, b, int64(len(b)))
		require.NoError(t, err)
		for i, blob := range footer.Blobs {
			if blob.Type == "apache-datasketches-theta-v1" && blob.Fields[0] == field {
				_, err := strconv.Atoi(blob.Properties["ndv"])
				require.NoError(t, err)
				out = &footer.Blobs[i]
			}
		}
		return nil
	}))
	require.NotNil(t, out)
	return *out
}

// TestEmptyTextsHaveStatistics: the empty text is a bound and a quantile like any other, and texts that are not UTF-8 are shown byte by byte.
func TestEmptyTextsHaveStatistics(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "table")
	w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: adviseSchema})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	var rows []tabletest.Row
	for i, text := range []string{"", "a", "b", "z\xff"} {
		rows = append(rows, tabletest.Row{{Val: column.IntValue(column.Long, int64(i))}, {Val: column.StringValue(text)}, {Null: true}})
	}
	path := filepath.Join(dir, "data", "a.parquet")
	layout := tabletest.Layout{RowsPerGroup: 2, PageBytes: 4096, PageVersion: 1, PageIndex: true, Codec: tabletest.Uncompressed}
	require.NoError(t, tabletest.WriteParquet(path, adviseSchema, rows, layout))
	info, err := os.Stat(path)
	require.NoError(t, err)
	four, none := int64(4), int64(0)
	_, err = w.Append(ctx, lakewrite.File{Path: path, Format: facts.Parquet, Records: 4, Size: info.Size(), Metrics: map[int]lakewrite.Metric{
		2: {Values: &four, Nulls: &none, Lower: []byte{}, Upper: []byte("zz")},
	}})
	require.NoError(t, err)
	table := open(t, dir, filepath.Join(t.TempDir(), "overlays"))
	c := statsOf(t, table, "c")
	require.Equal(t, `""`, *c.Min)
	require.Equal(t, `"zz"`, *c.Max)
	require.Zero(t, c.Files.Unbounded)

	require.NoError(t, table.Mount(ctx))
	_, err = table.AddIndex(ctx, "sketch(c)")
	require.NoError(t, err)
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	c = statsOf(t, table, "c")
	require.Len(t, c.Quantile, 7)
	require.Equal(t, `""`, *c.Min)
	require.Equal(t, `"z\xff"`, *c.Max)
}

// TestCutValuesEndInDots: of values of which a sketch keeps the beginning alone, … follows what is known, and only those.
func TestCutValuesEndInDots(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "table")
	w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: adviseSchema})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	var rows []tabletest.Row
	for i, text := range []string{strings.Repeat("a", 32), strings.Repeat("b", 31) + "ü and more"} {
		rows = append(rows, tabletest.Row{{Val: column.IntValue(column.Long, int64(i))}, {Val: column.StringValue(text)}, {Null: true}})
	}
	path := filepath.Join(dir, "data", "a.parquet")
	layout := tabletest.Layout{RowsPerGroup: 2, PageBytes: 4096, PageVersion: 1, PageIndex: true, Codec: tabletest.Uncompressed}
	require.NoError(t, tabletest.WriteParquet(path, adviseSchema, rows, layout))
	info, err := os.Stat(path)
	require.NoError(t, err)
	_, err = w.Append(ctx, lakewrite.File{Path: path, Format: facts.Parquet, Records: 2, Size: info.Size()})
	require.NoError(t, err)
	table := open(t, dir, filepath.Join(t.TempDir(), "overlays"))
	require.NoError(t, table.Mount(ctx))
	_, err = table.AddIndex(ctx, "sketch(c)")
	require.NoError(t, err)
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	c := statsOf(t, table, "c")
	least, greatest := strconv.Quote(strings.Repeat("a", 32)), strconv.Quote(strings.Repeat("b", 31))+"…"
	require.Equal(t, least, *c.Min)
	require.Equal(t, greatest, *c.Max)
	require.Equal(t, least, c.Quantile[0].Value)
	require.Equal(t, greatest, c.Quantile[6].Value)
}

// TestStatisticsTellDeletedRowsApart: numbers of columns are about physical rows, and the table says how many of them live.
func TestStatisticsTellDeletedRowsApart(t *testing.T) {
	s, err := openReal(t, impalaIce+"iceberg_lineitem_multiblock").Stats(context.Background(), "")
	require.NoError(t, err)
	require.EqualValues(t, 20000, s.Rows)
	require.EqualValues(t, 2114, s.Deleted)
	require.EqualValues(t, 17886, s.Live)
}

// TestExplainDrawsWaves: the waves of an explanation are those that the query waited for, and their requests are among those counted.
func TestExplainDrawsWaves(t *testing.T) {
	ctx := context.Background()
	dir := planted(t, func(n int) int64 { return int64(n * 7919 % 24000) }, func(n int) int { return n % 9 })
	overlays := filepath.Join(t.TempDir(), "overlays")
	table := open(t, dir, overlays)
	require.NoError(t, table.Mount(ctx))
	for _, expr := range []string{"ordered(k)", "sketch(k)"} {
		_, err := table.AddIndex(ctx, expr)
		require.NoError(t, err)
	}
	_, err := table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	e, err := open(t, dir, overlays).Explain(ctx, skomer.Query{Where: "k = 4711"}, true)
	require.NoError(t, err)
	require.NotEmpty(t, e.Waves)
	requests, bytes, seen := int64(0), int64(0), map[string]bool{}
	for _, w := range e.Waves {
		requests, bytes, seen[w.Of] = requests+w.Requests, bytes+w.Bytes, true
		require.GreaterOrEqual(t, w.Seconds, 0.0)
	}
	require.Equal(t, map[string]bool{"index": true, "table": true}, seen)
	require.LessOrEqual(t, requests, e.Stats.Requests)
	require.LessOrEqual(t, bytes, e.Stats.Bytes)
	require.NotNil(t, e.Estimate)
	require.InDelta(t, 1.0/24000, e.Estimate.Selectivity, 1e-5)
	e.At(skomer.Price{Name: "p", Get: 1})
	require.InDelta(t, float64(e.Stats.Requests), e.Money.Query, 1e-9)

	broad, err := open(t, dir, overlays).Explain(ctx, skomer.Query{Where: "k >= 0"}, false)
	require.NoError(t, err)
	require.Contains(t, broad.CostRule, "a scan is cheaper")
	rows, err := open(t, dir, overlays).Query(ctx, skomer.Query{Where: "k < 20000", Limit: -1})
	require.NoError(t, err)
	n, err := rows.Count(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 20000, n)
	require.Contains(t, rows.Stats().IndexesUsed, "ordered(k)", "counts are not left to a scan")
}
