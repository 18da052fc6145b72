package skomer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

var adviseSchema = &column.Schema{Fields: []column.Field{
	{ID: 1, Name: "k", Type: column.Of(column.Long)},
	{ID: 2, Name: "c", Type: column.Of(column.String)},
	{ID: 3, Name: "payload", Type: column.Of(column.String)},
}}

const adviseFiles, adviseRows = 16, 1500

// planted makes a table of 16 files in which key gives the k of a row and category its c.
func planted(t *testing.T, key func(n int) int64, category func(n int) int) string {
	t.Helper()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "table")
	w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: adviseSchema})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	layout := tabletest.Layout{RowsPerGroup: 100000, PageBytes: 4096, PageVersion: 1, PageIndex: true, Codec: tabletest.Uncompressed}
	var files []lakewrite.File
	for f := range adviseFiles {
		var rows []tabletest.Row
		for i := range adviseRows {
			n := f*adviseRows + i
			rows = append(rows, tabletest.Row{
				{Val: column.IntValue(column.Long, key(n))},
				{Val: column.StringValue(fmt.Sprintf("category-%04d", category(n)))},
				{Val: column.StringValue(fmt.Sprintf("%060d", n*7919%100003))},
			})
		}
		path := filepath.Join(dir, "data", fmt.Sprintf("%02d.parquet", f))
		require.NoError(t, tabletest.WriteParquet(path, adviseSchema, rows, layout))
		info, err := os.Stat(path)
		require.NoError(t, err)
		files = append(files, lakewrite.File{Path: path, Format: facts.Parquet, Records: adviseRows, Size: info.Size()})
	}
	_, err = w.Append(ctx, files...)
	require.NoError(t, err)
	return dir
}

// TestAdviceIsRight: on a clustered, a random and a skewed table, every candidate is built and the queries are measured with it alone: the
// first advice is the one that saves most. Where files are sorted, the bounds do it, and no index on that column is advised first.
func TestAdviceIsRight(t *testing.T) {
	const rows = adviseFiles * adviseRows
	shuffled := rand.New(rand.NewPCG(7, 7)).Perm(rows)
	for name, c := range map[string]struct {
		key      func(n int) int64
		category func(n int) int
		queries  []string
	}{
		"clustered": {
			func(n int) int64 { return int64(n) }, func(n int) int { return shuffled[n] % 6000 },
			[]string{"k = 77", "k = 9000", "k = 20001", "c = 'category-0017'", "c = 'category-3111'", "c = 'category-5999'"},
		},
		"random": {
			func(n int) int64 { return int64(shuffled[n]) }, func(n int) int { return shuffled[n] % 5 },
			[]string{"k = 77", "k = 9000", "k = 20001", "c = 'category-0003'"},
		},
		"skewed": {
			func(n int) int64 { return int64(shuffled[n] / 3) }, func(n int) int { return rare(shuffled[n]) },
			[]string{"c = 'category-0001'", "c = 'category-0777'", "c = 'category-0500'", "k = 12"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := planted(t, c.key, c.category)
			ctx := context.Background()
			a, err := open(t, dir, filepath.Join(t.TempDir(), "none")).Advise(ctx, c.queries, skomer.Prices[0])
			require.NoError(t, err)
			require.NotEmpty(t, a.Indexes, "%+v", a)
			best, bestCost := "", measured(t, dir, "", c.queries)
			plain := bestCost
			costs := map[string]float64{}
			for _, expr := range []string{
				"bloom(k)", "ordered(k)", "bitmap(k)", "valueset(k)", "zonemap(k)", "bloom(c)", "ordered(c)", "bitmap(c)", "valueset(c)", "zonemap(c)",
			} {
				cost := measured(t, dir, expr, c.queries)
				costs[expr] = cost
				if cost < bestCost {
					best, bestCost = expr, cost
				}
			}
			t.Logf("plain %.4f, measured %v", plain, costs)
			for _, x := range a.Indexes {
				t.Logf("advised %s: %.4f s saved, %.0f → %.0f requests, %.0f → %.0f bytes", x.Expr, x.Saved, x.Plain.Requests, x.Indexed.Requests, x.Plain.Bytes, x.Indexed.Bytes)
			}
			require.LessOrEqual(t, costs[a.Indexes[0].Expr], bestCost*1.02, "advised %s first, %s saves most", a.Indexes[0].Expr, best)
		})
	}
}

// TestSortingIsAdvisedWhereItSavesMost: ranges over a column whose values lie anywhere are cheaper in a table that is sorted by it than with any
// index, and the advice says so; where the table is sorted by it, it is not advised.
func TestSortingIsAdvisedWhereItSavesMost(t *testing.T) {
	const rows = adviseFiles * adviseRows
	ctx := context.Background()
	shuffled := rand.New(rand.NewPCG(8, 8)).Perm(rows)
	category := func(n int) int { return n % 7 }
	queries := []string{"k BETWEEN 3000 AND 3400", "k BETWEEN 12000 AND 12600", "k >= 23500"}
	random := planted(t, func(n int) int64 { return int64(shuffled[n]) }, category)
	sorted := planted(t, func(n int) int64 { return int64(n) }, category)
	advice := func(dir string) *skomer.Advice {
		a, err := open(t, dir, filepath.Join(t.TempDir(), "none")).Advise(ctx, queries, skomer.Prices[0])
		require.NoError(t, err)
		return a
	}
	a := advice(random)
	require.NotEmpty(t, a.Sorting, "%+v", a)
	require.Equal(t, "k", a.Sorting[0].Column)
	require.True(t, a.Sorting[0].Best)
	best := measured(t, random, "", queries)
	for _, expr := range []string{"bloom(k)", "ordered(k)", "bitmap(k)", "valueset(k)", "zonemap(k)"} {
		best = min(best, measured(t, random, expr, queries))
	}
	require.Less(t, measured(t, sorted, "", queries), best, "the advice is right")
	for _, s := range advice(sorted).Sorting {
		require.NotEqual(t, "k", s.Column, "it is sorted by it")
	}
}

// rare is one value for nearly all rows, and a thousand for the others.
func rare(n int) int {
	if n%10 != 0 {
		return 0
	}
	return n / 10 % 1000
}

// measured is what the queries take with one index, or none, as seconds of object storage: requests and bytes through the API, by a
// client that knows nothing before.
func measured(t *testing.T, dir, expr string, queries []string) float64 {
	t.Helper()
	ctx := context.Background()
	overlays := filepath.Join(t.TempDir(), "overlays")
	if expr != "" {
		table := open(t, dir, overlays)
		require.NoError(t, table.Mount(ctx))
		_, err := table.AddIndex(ctx, expr)
		if err != nil {
			return 1e9
		}
		report, err := table.Sync(ctx, skomer.SyncOptions{})
		require.NoError(t, err)
		if report.Artifacts == 0 {
			return 1e9 // every artifact was declined: this is no index of this column
		}
	}
	total := 0.0
	for _, q := range queries {
		rows, err := open(t, dir, overlays).Query(ctx, skomer.Query{Where: q, Limit: -1, Select: []string{"payload"}})
		require.NoError(t, err)
		require.NoError(t, rows.Each(ctx, func(*skomer.Batch) error { return nil }))
		s := rows.Stats()
		total += float64(s.Requests)*2e-3 + float64(s.Bytes)/1e9
	}
	return total / float64(len(queries))
}

// TestU28EstimatesHold: what a build really takes lies within the estimate, or at most a factor of two beyond its ends.
func TestU28EstimatesHold(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	dir := planted(t, func(int) int64 { return r.Int64N(1 << 40) }, func(int) int { return r.IntN(900) })
	ctx := context.Background()
	for _, exprs := range [][]string{{"bloom(k)"}, {"ordered(k)"}, {"bitmap(c)"}, {"valueset(c)"}, {"zonemap(k)", "sketch(c)"}} {
		overlays := filepath.Join(t.TempDir(), "overlays")
		table := open(t, dir, overlays)
		e, err := table.Estimate(ctx, exprs, skomer.Prices[0])
		require.NoError(t, err)
		require.EqualValues(t, adviseFiles*adviseRows, e.Rows)
		require.NoDirExists(t, overlays, "an estimate writes nothing")
		require.NoError(t, table.Mount(ctx))
		for _, x := range exprs {
			_, err := table.AddIndex(ctx, x)
			require.NoError(t, err)
		}
		report, err := table.Sync(ctx, skomer.SyncOptions{})
		require.NoError(t, err)
		within(t, e.Size, float64(report.BytesWritten), "%v: bytes written", exprs)
		within(t, e.BytesRead, float64(report.BytesRead), "%v: bytes read", exprs)
		require.Greater(t, e.Build.High, e.Build.Low)
		require.Greater(t, e.PerMonth.High, 0.0)
	}
}

// TestLittleTablesNeedNoIndex: what saves nothing that anybody would notice is not advised, and each column says why.
func TestLittleTablesNeedNoIndex(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "table")
	w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: adviseSchema})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	layout := tabletest.Layout{RowsPerGroup: 1 << 20, PageBytes: 1 << 10, PageVersion: 1, PageIndex: true, Codec: tabletest.Uncompressed}
	var all []tabletest.Row
	for i := range littleRows {
		all = append(all, tabletest.Row{{Val: column.IntValue(column.Long, int64(i*7919%littleRows))}, {Val: column.StringValue(fmt.Sprint(i * 31 % littleRows))}, {Null: true}})
	}
	path := filepath.Join(dir, "data", "a.parquet")
	require.NoError(t, tabletest.WriteParquet(path, adviseSchema, all, layout))
	info, err := os.Stat(path)
	require.NoError(t, err)
	_, err = w.Append(ctx, lakewrite.File{Path: path, Format: facts.Parquet, Records: littleRows, Size: info.Size()})
	require.NoError(t, err)
	a, err := open(t, dir, filepath.Join(t.TempDir(), "none")).Advise(ctx, nil, skomer.Prices[0])
	require.NoError(t, err)
	require.Empty(t, a.Sorting)
	require.Contains(t, a.None["k"], "no index pays")
	require.Empty(t, a.Indexes)
}

const littleRows = 3000

// TestEstimatedMemoryIsOfDecodedValues: texts that take little space in files are counted as they are held, and a sync holds at
// most what was estimated.
func TestEstimatedMemoryIsOfDecodedValues(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "table")
	w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: adviseSchema})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	const rows, length = 2000, 16 << 10
	layout := tabletest.Layout{RowsPerGroup: 500, PageBytes: 1 << 20, PageVersion: 1, PageIndex: true, Codec: &parquet.Zstd}
	path := filepath.Join(dir, "data", "a.parquet")
	func() { // the rows are gone before anything is measured
		var all []tabletest.Row
		for i := range rows {
			text := strings.Repeat(fmt.Sprintf("%06d-", i), length/7)
			all = append(all, tabletest.Row{{Val: column.IntValue(column.Long, int64(i))}, {Val: column.StringValue(text)}, {Null: true}})
		}
		require.NoError(t, tabletest.WriteParquet(path, adviseSchema, all, layout))
	}()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(rows*length/8), "the texts are small in the file")
	_, err = w.Append(ctx, lakewrite.File{Path: path, Format: facts.Parquet, Records: rows, Size: info.Size()})
	require.NoError(t, err)
	table := open(t, dir, filepath.Join(t.TempDir(), "overlays"))
	e, err := table.Estimate(ctx, []string{"ordered(c)"}, skomer.Prices[0])
	require.NoError(t, err)
	const decoded = rows * length
	require.Greater(t, e.Memory.High, float64(80<<20+e.Workers*2*decoded))
	require.Less(t, e.Memory.High, float64(80<<20+e.Workers*8*decoded))
	require.Greater(t, e.Memory.Low, float64(length*1000/2))

	require.NoError(t, table.Mount(ctx))
	_, err = table.AddIndex(ctx, "ordered(c)")
	require.NoError(t, err)
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		sample, peak := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}, uint64(0)
		for {
			select {
			case <-done:
				most <- peak
				return
			case <-time.After(time.Millisecond):
				metrics.Read(sample)
				peak = max(peak, sample[0].Value.Uint64())
			}
		}
	}()
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	close(done)
	peak := <-most
	require.NoError(t, err)
	t.Logf("held %d, estimated %.0f to %.0f", peak, e.Memory.Low, e.Memory.High)
	require.LessOrEqual(t, float64(peak), e.Memory.High)
}

func within(t *testing.T, r skomer.Range, got float64, what string, args ...any) {
	t.Helper()
	t.Logf(what+": %.0f, estimated %.0f to %.0f", append(args, got, r.Low, r.High)...)
	require.LessOrEqual(t, got, 2*r.High, append([]any{what}, args...)...)
	require.GreaterOrEqual(t, got, r.Low/2, append([]any{what}, args...)...)
}

// documents makes a table of texts whose words, JSON, map values and tags are rare ones scattered over all files.
func documents(t *testing.T) string {
	t.Helper()
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "table")
	w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: tabletest.DocumentSchema()})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	shuffled := rand.New(rand.NewPCG(9, 9)).Perm(adviseFiles * 300)
	var files []lakewrite.File
	for f := range adviseFiles {
		var docs []tabletest.Document
		for i := range 300 {
			n := shuffled[f*300+i]
			text := func(format string) *string { s := fmt.Sprintf(format, n); return &s }
			level := int32(n % 7)
			docs = append(docs, tabletest.Document{
				ID: int64(n), Message: text("request w%d was served"), Payload: text(`{"pad": "` + fmt.Sprintf("%040d", n*7919) + `", "user": {"id": "u%d"}}`),
				Attrs: map[string]*string{"k": text("v%d"), "other": text("o%d")}, Items: []*tabletest.Item{{SKU: text("s%d")}}, Level: &level,
			})
		}
		path := filepath.Join(dir, "data", fmt.Sprintf("%02d.parquet", f))
		require.NoError(t, tabletest.WriteDocuments(path, docs, 300))
		info, err := os.Stat(path)
		require.NoError(t, err)
		files = append(files, lakewrite.File{Path: path, Format: facts.Parquet, Records: 300, Size: info.Size()})
	}
	_, err = w.Append(ctx, files...)
	require.NoError(t, err)
	return dir
}

// TestAdviceOfEveryForm: filters on expressions, lists, alternatives and on two columns together are advised an index that answers them,
// and using it is cheaper than none.
func TestAdviceOfEveryForm(t *testing.T) {
	dir := documents(t)
	for query, expr := range map[string]string{
		"payload -> '$.user.id' = 'u77'":              "ordered(payload -> '$.user.id')",
		"attrs['k'] = 'v77'":                          "ordered(attrs['k'])",
		"contains(items.sku, 's77')":                  "bloom(items.element.sku)",
		"contains_token(message, 'w77')":              "bloom(tokens(message))",
		"payload LIKE '%u4321%'":                      "ngram(payload)",
		"id = 77 OR id = 4001":                        "ordered(id)",
		"id = 77 OR (id = 9 AND level = 2)":           "ordered(id)",
		"level = 3 AND id >= 2000 AND id < 2050":      "ordered(level, id)",
		"level = 3 AND (id = 10 OR message = 'none')": "",
	} {
		a, err := open(t, dir, filepath.Join(t.TempDir(), "none")).Advise(context.Background(), []string{query}, skomer.Prices[0])
		require.NoError(t, err, query)
		var advised []string
		for _, x := range a.Indexes {
			advised = append(advised, x.Expr)
		}
		if expr == "" {
			require.NotContains(t, advised, "ordered(id)", query)
			require.NotContains(t, a.None["id"], "distinct", query)
			continue
		}
		require.Contains(t, advised, expr, "%s\n%v", query, a.None)
		plain := measured(t, dir, "", []string{query})
		first := measured(t, dir, advised[0], []string{query})
		t.Logf("%s: %s first, %.4f s for %.4f; all: %v", query, advised[0], first, plain, advised)
		require.Less(t, first, plain, "%s: %s", query, advised[0])
	}
}

// TestEstimatesOfExpressions: the words, paths and map values are measured, not the columns that they are made of.
func TestEstimatesOfExpressions(t *testing.T) {
	dir, ctx := documents(t), context.Background()
	for _, expr := range []string{
		"bloom(tokens(message))", "ordered(payload -> '$.user.id')", "ngram(payload -> '$.user.id')", "bloom(attrs['k'])", "valueset(map_keys(attrs))", "bloom(items.sku)", "sketch(items.sku)",
	} {
		table := open(t, dir, filepath.Join(t.TempDir(), "overlays"))
		e, err := table.Estimate(ctx, []string{expr}, skomer.Prices[0])
		require.NoError(t, err, expr)
		require.NoError(t, table.Mount(ctx))
		_, err = table.AddIndex(ctx, expr)
		require.NoError(t, err)
		report, err := table.Sync(ctx, skomer.SyncOptions{})
		require.NoError(t, err)
		within(t, e.Size, float64(report.BytesWritten), "%v: bytes written", expr)
		within(t, e.BytesRead, float64(report.BytesRead), "%v: bytes read", expr)
	}
	both, err := open(t, dir, filepath.Join(t.TempDir(), "none")).Estimate(ctx, []string{"bloom(payload -> '$.user.id')", "bloom(payload -> '$.pad')"}, skomer.Prices[0])
	require.NoError(t, err)
	one, err := open(t, dir, filepath.Join(t.TempDir(), "none")).Estimate(ctx, []string{"bloom(payload -> '$.user.id')"}, skomer.Prices[0])
	require.NoError(t, err)
	require.Equal(t, one.BytesRead, both.BytesRead, "a column that serves two expressions is read once")
}
