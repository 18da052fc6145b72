package skomer_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// declareMapped adds one index that owns a file map on columns that have none yet.
func declareMapped(t *testing.T, table *skomer.Table, made *tabletest.Evolving, have map[int]bool, pick func(int) int) {
	t.Helper()
	made.Schema().Walk(func(p column.Path) bool {
		expr := fmt.Sprintf("%s(%s)", []string{"bloom", "ordered", "valueset", "bitmap"}[pick(4)], quote(p))
		if _, err := kinds.ParseExpr(expr, made.Schema()); err != nil || have[p.Leaf().ID] {
			return true
		}
		have[p.Leaf().ID] = true
		_, err := table.AddIndex(context.Background(), expr)
		require.NoError(t, err, expr)
		return true
	})
}

// pointExpr draws a predicate that asks for values.
func pointExpr(view tabletest.View, depth int) tabletest.Expr {
	for {
		e := view.Expr(depth)
		if sql := e.SQL(); strings.Contains(sql, " = ") || strings.Contains(sql, " IN ") || strings.Contains(sql, "contains") {
			return e
		}
	}
}

// byMap counts the files of a query that a file map ruled out, and requires explain to name it.
func byMap(t *testing.T, table *skomer.Table, q skomer.Query) (n int) {
	t.Helper()
	x, err := table.Explain(context.Background(), q, false)
	require.NoError(t, err)
	for _, f := range x.Files {
		if !f.Kept && strings.Contains(f.By, "file map") {
			n++
		}
	}
	require.LessOrEqual(t, n, x.FilesRuledOut)
	return n
}

// listedRuns is how many runs of file maps the overlay lists, by index.
func listedRuns(t *testing.T, table *skomer.Table) map[string]int {
	t.Helper()
	v, err := overlay.Open(local.New(), table.Overlay(), overlay.Options{}).Latest(context.Background())
	require.NoError(t, err)
	out := map[string]int{}
	for _, e := range v.Derived(filemap.Kind) {
		out[e.Index]++
	}
	return out
}

// TestFileMapsFollowTheTable: over random histories of appends, deletes, updates, overwrites, compactions and changes of the schema,
// with syncs in between or not, queries that file maps answer are right, at every snapshot; and so they are once all indexes are
// dropped.
func TestFileMapsFollowTheTable(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	ruledOut, asked := 0, 0
	for round := range rounds(t, 6) {
		dir := t.TempDir()
		made := tabletest.CreateEvolving(t, rng, filepath.Join(dir, "table"))
		made.Append(t, 6)
		table := open(t, made.Dir, filepath.Join(dir, "overlays"))
		require.NoError(t, table.Mount(ctx))
		have := map[int]bool{}
		for step := range 7 {
			declareMapped(t, table, made, have, rng.IntN)
			if rng.IntN(4) > 0 {
				_, err := table.Sync(ctx, skomer.SyncOptions{})
				require.NoError(t, err, "%v", made.Steps)
				for index, n := range listedRuns(t, table) {
					require.LessOrEqual(t, n, 8, "runs of %s; columns may be found in two ways", index)
				}
			}
			if step == 6 {
				all, err := table.Indexes(ctx)
				require.NoError(t, err)
				for _, x := range all {
					_, err := table.DropIndex(ctx, x.ID)
					require.NoError(t, err)
				}
				require.Empty(t, listedRuns(t, table))
			}
			for k := range 10 {
				view := made.Current()
				if k%3 == 2 {
					view = made.Past()
				}
				e := pointExpr(view, rng.IntN(3))
				if k%2 == 0 { // value maps are asked for anything
					e = view.Expr(rng.IntN(3))
				}
				want := view.Answer(e)
				for _, q := range ways {
					q.Where, q.At = e.SQL(), view.At
					got, stats := positions(t, table, q)
					if describe(got) != describe(want) {
						t.Fatalf("round %d step %d at %q, NoIndex %v NoPrune %v Strict %v\n%s\n%s\n%v\nstats %+v", round, step, q.At,
							q.NoIndex, q.NoPrune, q.Strict, q.Where, difference(view.Table, got, want), made.Steps, stats)
					}
				}
				ruledOut += byMap(t, table, skomer.Query{Where: e.SQL(), At: view.At})
				asked++
			}
			for range rng.IntN(3) {
				[]func(testing.TB){
					func(t testing.TB) { made.Append(t, 4) }, made.Update, made.Overwrite, made.Evolve, func(t testing.TB) { made.Compact(t, 4) },
				}[rng.IntN(5)](t)
			}
		}
	}
	t.Logf("%d queries, %d files ruled out by file maps", asked, ruledOut)
	require.Greater(t, ruledOut, asked/4)
}

// idTable is a table of files whose manifests state no bounds, with the values 0, 1, … in the column v.
func idTable(t *testing.T, files, rows int) (table *skomer.Table, paths []string) {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
	require.NoError(t, err)
	var add []lakewrite.File
	for f := range files {
		values := make([]int64, rows)
		for i := range values {
			values[i] = int64(f*rows + i)
		}
		add = append(add, plain(t, filepath.Join(dir, "table", "data", fmt.Sprintf("%03d.parquet", f)), longs(values...)))
		paths = append(paths, add[f].Path)
	}
	_, err = w.Append(ctx, add...)
	require.NoError(t, err)
	table = open(t, w.Location(), filepath.Join(dir, "overlays"))
	require.NoError(t, table.Mount(ctx))
	return table, paths
}

// TestFileMapAnswersBeforeAnythingIsOpened: a value of one of many files is found by a leaf of the file map and that file alone, and values
// that are nowhere open nothing.
func TestFileMapAnswersBeforeAnythingIsOpened(t *testing.T) {
	ctx := context.Background()
	table, paths := idTable(t, 40, 100)
	_, err := table.AddIndex(ctx, "bloom(v)")
	require.NoError(t, err)
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	got, stats := positions(t, table, skomer.Query{Where: "v = 1707"})
	require.Equal(t, map[string][]int{paths[17]: {7}}, got)
	require.Equal(t, 1, stats.FilesOpened)
	require.Equal(t, []string{"bloom(v)"}, stats.IndexesUsed)
	_, stats = positions(t, table, skomer.Query{Where: "v IN (-5, 99999) OR v = 100000"})
	require.Zero(t, stats.FilesOpened)
	require.Empty(t, stats.Rejected)
}

// TestFewFilesAreAnsweredByTheirArtifacts: where manifests leave few files of many, the root of a file map is not read for them while
// the overlay lists the roots of their artifacts; and it is for many.
func TestFewFilesAreAnsweredByTheirArtifacts(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	const files = 330 // the root of so many files is not in the overlay
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
	require.NoError(t, err)
	var add []lakewrite.File
	for f := range files {
		file := plain(t, filepath.Join(dir, "table", "data", fmt.Sprintf("%03d.parquet", f)), longs(int64(10*f), int64(10*f+1), int64(10*f+2), int64(10*f+8)))
		bound := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
		file.Metrics = map[int]lakewrite.Metric{idSchema.Fields[1].ID: {Lower: bound(int64(10 * f)), Upper: bound(int64(10*f + 8))}}
		add = append(add, file)
	}
	_, err = w.Append(ctx, add...)
	require.NoError(t, err)
	table := open(t, w.Location(), filepath.Join(dir, "overlays"))
	require.NoError(t, table.Mount(ctx))
	_, err = table.AddIndex(ctx, "bloom(v)")
	require.NoError(t, err)
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	v, err := overlay.Open(local.New(), table.Overlay(), overlay.Options{}).Latest(ctx)
	require.NoError(t, err)
	var root int64
	for _, e := range v.Derived(filemap.Kind) {
		root += e.Len
	}
	require.Greater(t, root, int64(filemap.MaxRootInline))

	fresh := func() *skomer.Table { return open(t, w.Location(), filepath.Join(dir, "overlays")) }
	at := fresh()
	for _, q := range []string{"v = 1705", "v = 1705 OR v = 905"} { // within the bounds of a file, and not in it
		got, stats := positions(t, at, skomer.Query{Where: q})
		require.Empty(t, got)
		require.Zero(t, stats.FilesOpened, q)
		require.Equal(t, []string{"bloom(v)"}, stats.IndexesUsed, q)
		x, err := at.Explain(ctx, skomer.Query{Where: q}, false)
		require.NoError(t, err)
		for _, f := range x.Files {
			require.NotContains(t, f.By, "file map", q)
		}
	}
	got, _ := positions(t, at, skomer.Query{Where: "v = 1708"})
	require.Equal(t, map[string][]int{add[170].Path: {3}}, got)

	var many []string
	for f := range 200 {
		many = append(many, fmt.Sprint(10*f+5))
	}
	require.NotZero(t, byMap(t, fresh(), skomer.Query{Where: "v IN (" + strings.Join(many, ", ") + ")"}))
}

// TestADamagedFileMapIsNoEvidence: with any of its objects flipped, cut or gone, answers stay right, and the next sync makes it anew.
func TestADamagedFileMapIsNoEvidence(t *testing.T) {
	ctx := context.Background()
	for _, damage := range []func(path string) error{
		os.Remove,
		func(path string) error { return os.Truncate(path, 5) },
		func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for i := range b {
				b[i] ^= 0x40
			}
			return os.WriteFile(path, b, 0o600)
		},
	} {
		table, paths := idTable(t, 10, 50)
		_, err := table.AddIndex(ctx, "ordered(v)")
		require.NoError(t, err)
		_, err = table.Sync(ctx, skomer.SyncOptions{Whole: true})
		require.NoError(t, err)
		objects, err := filepath.Glob(filepath.Join(table.Overlay(), "data", "*-map*.puffin"))
		require.NoError(t, err)
		require.NotEmpty(t, objects)
		for _, o := range objects {
			require.NoError(t, damage(o))
		}
		fresh := open(t, table.Location(), filepath.Dir(table.Overlay()))
		got, stats := positions(t, fresh, skomer.Query{Where: "v = 157"})
		require.Equal(t, map[string][]int{paths[3]: {7}}, got)
		require.NotEmpty(t, stats.Rejected)
		_, err = fresh.Sync(ctx, skomer.SyncOptions{Whole: true})
		require.NoError(t, err)
		got, stats = positions(t, fresh, skomer.Query{Where: "v = 157"})
		require.Equal(t, map[string][]int{paths[3]: {7}}, got)
		require.Empty(t, stats.Rejected)
		require.Positive(t, byMap(t, fresh, skomer.Query{Where: "v = 157"}))
	}
}

// TestAValueMapCostsOneRead: what is asked of few values is answered for 2,500 files by as many reads as for 250, and explain says so.
func TestAValueMapCostsOneRead(t *testing.T) {
	ctx := context.Background()
	asked := map[string]int{ // and how many files are left
		"v = 40": 3, "v > 39": 3, "v BETWEEN 5 AND 39": 0, "v NOT IN (1, 2, 3, 4)": 5, "v <> 1 AND v < 2": 2, "v > 4 AND v <> 40": 0, "v = 41 OR v < -7": 0, "v IS NULL": 0,
	}
	for _, n := range []int{250, 2500} {
		s := newSmall(t)
		var files []lakewrite.File
		for k, values := range [][]int64{{1, 2, 3, 4}, {2, 2, 4}, {1, 40}, {-7, 1}} {
			files = append(files, plain(t, filepath.Join(s.dir, "table", "data", fmt.Sprintf("%d.parquet", k)), longs(values...)))
		}
		for i := range n - 4 {
			f := files[i%2]
			if i < 2 {
				f = files[2]
			} else if i == 2 {
				f = files[3]
			}
			to := filepath.Join(s.dir, "table", "data", fmt.Sprintf("many%05d.parquet", i))
			require.NoError(t, os.Link(f.Path, to))
			f.Path = to
			files = append(files, f)
		}
		_, err := s.Append(ctx, files...)
		require.NoError(t, err)
		builder := open(t, s.Location(), s.overlays())
		require.NoError(t, builder.Mount(ctx))
		_, err = builder.AddIndex(ctx, "valueset(v)")
		require.NoError(t, err)
		synced(t, builder, skomer.SyncOptions{})
		cost := map[string]int{}
		for where, left := range asked {
			table := open(t, s.Location(), s.overlays())
			_, err := table.Explain(ctx, skomer.Query{Where: "v = 77"}, false) // snapshot, version and the root of the run are in memory
			require.NoError(t, err)
			x, err := table.Explain(ctx, skomer.Query{Where: where}, false)
			require.NoError(t, err)
			require.Equal(t, left, x.FilesKept, where)
			require.Equal(t, n-left, x.FilesRuledOut, where)
			require.Empty(t, x.Rejected)
			require.Equal(t, n-left, byMap(t, table, skomer.Query{Where: where}), where)
			cost[where] = int(x.Stats.Requests)
			table.Close()
		}
		t.Logf("%d files: %v", n, cost)
		for where, requests := range cost { // four look for news of the table and the overlay
			require.LessOrEqual(t, requests, 5, where)
		}
	}
}
