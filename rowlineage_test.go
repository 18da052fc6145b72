package skomer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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

// tracedRow is a row of a v3 table with its row id and the sequence number of its last change.
type tracedRow struct {
	v           int64
	s           string
	id, changed int64
}

// traced is a v3 table whose writer keeps row lineage, with the rows of its live files.
type traced struct {
	*lakewrite.Table
	rng    *rand.Rand
	dir    string
	schema *column.Schema
	files  map[string][]tracedRow
	n      int
}

func newTraced(t *testing.T, rng *rand.Rand) *traced {
	t.Helper()
	dir := t.TempDir()
	schema := &column.Schema{Fields: []column.Field{
		{ID: 1, Name: "v", Type: column.Of(column.Long), Required: true},
		{ID: 2, Name: "s", Type: column.Of(column.String)},
		{ID: 3, Name: "id", Type: column.Of(column.Long)},
	}}
	w, err := lakewrite.Create(context.Background(), local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: schema, FormatVersion: 3})
	require.NoError(t, err)
	return &traced{Table: w, rng: rng, dir: dir, schema: schema, files: map[string][]tracedRow{}}
}

// commit writes a file of rows in the place of others. versions is what it holds of their lineage; nil: it has no such columns.
func (d *traced) commit(t *testing.T, rows []tracedRow, versions []tabletest.RowVersion, operation string, remove ...string) {
	t.Helper()
	schema, cells := d.schema, []tabletest.Row{}
	for _, r := range rows {
		cells = append(cells, tabletest.Row{{Val: column.IntValue(column.Long, r.v)}, {Val: column.StringValue(r.s)}, {Val: column.IntValue(column.Long, int64(len(cells)))}})
	}
	if versions != nil {
		schema, cells = tabletest.WithRowLineage(schema, cells, versions)
	}
	path := filepath.Join(d.dir, "table", "data", fmt.Sprintf("f%04d.parquet", d.n))
	d.n++
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, tabletest.WriteParquet(path, schema, cells, tabletest.NewLayout(d.rng)))
	info, err := os.Stat(path)
	require.NoError(t, err)
	first, sequence := d.NextRowID, d.LastSequence+1
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].id, rows[i].changed = first+int64(i), sequence
		if versions != nil && versions[i].ID != nil {
			rows[i].id = *versions[i].ID
		}
		if versions != nil && versions[i].Changed != nil {
			rows[i].changed = *versions[i].Changed
		}
	}
	_, err = d.Commit(context.Background(), lakewrite.Change{
		Add: []lakewrite.File{{Path: path, Format: facts.Parquet, Records: int64(len(rows)), Size: info.Size()}}, Remove: remove, Operation: operation,
	})
	require.NoError(t, err)
	for _, p := range remove {
		delete(d.files, p)
	}
	d.files[path] = rows
}

func (d *traced) append(t *testing.T) {
	t.Helper()
	var rows []tracedRow
	for range 1 + d.rng.IntN(200) {
		rows = append(rows, tracedRow{v: d.rng.Int64N(60), s: fmt.Sprintf("word%02d", d.rng.IntN(40))})
	}
	d.commit(t, rows, nil, "")
}

// rewrite compacts some files into one in some order, without some rows, and returns whether it kept the contents of every row, and
// whether it kept no block of a column.
func (d *traced) rewrite(t *testing.T) (what string, faithful, shuffled bool) {
	t.Helper()
	paths := []string{}
	for p := range d.files {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	d.rng.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	remove := paths[:1+d.rng.IntN(len(paths))]
	var rows []tracedRow
	for _, p := range remove {
		rows = append(rows, d.files[p]...)
	}
	switch d.rng.IntN(3) {
	case 0:
		slices.SortStableFunc(rows, func(a, b tracedRow) int { return int(a.v - b.v) })
	case 1:
		d.rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		shuffled = len(rows) > 20
	}
	if d.rng.IntN(2) == 0 { // what deletes hid
		rows = slices.DeleteFunc(rows, func(tracedRow) bool { return d.rng.IntN(10) == 0 })
	}
	if len(rows) == 0 {
		rows = []tracedRow{d.files[remove[0]][0]}
	}
	versions := make([]tabletest.RowVersion, len(rows))
	for i := range rows {
		versions[i] = tabletest.RowVersion{ID: &rows[i].id, Changed: &rows[i].changed}
	}
	i, j, now := d.rng.IntN(len(rows)), d.rng.IntN(len(rows)), d.LastSequence+1
	operation := "replace"
	switch what = []string{"same", "same", "same", "same", "updated", "updated, stated", "no id", "no ids", "twice", "foreign", "overwritten"}[d.rng.IntN(11)]; what {
	case "updated": // the writer leaves null for what it inherits
		rows[i].v, versions[i].Changed = 99, nil
	case "updated, stated":
		rows[i].v, versions[i].Changed = 99, &now
	case "no id":
		versions[i] = tabletest.RowVersion{}
	case "no ids":
		versions = nil
	case "twice":
		rows, versions = append(rows, rows[i]), append(versions, versions[i])
	case "foreign": // a row of a file that stays, or of none
		other := tracedRow{v: 77, s: "elsewhere", id: d.NextRowID + 1000, changed: 1}
		if p := paths[len(paths)-1]; len(remove) < len(paths) {
			other = d.files[p][0]
		}
		rows, versions = append(rows, other), append(versions, tabletest.RowVersion{ID: &other.id, Changed: &other.changed})
	case "overwritten": // by a writer that keeps no lineage and claims nothing
		rows[i].v, rows[j].s, operation = 99, "other", "overwrite"
	}
	d.commit(t, rows, versions, operation, remove...)
	return what, what == "same", shuffled
}

// TestRowLineageCarriesRows: rewrites of v3 tables in any order, which drop rows, are carried by row ids and last changes; where a row was
// changed, has no id, has the id of another, or the snapshot claims nothing, everything is built. No answer differs.
func TestRowLineageCarriesRows(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	carried, kept, moved := 0, 0, 0
	n := rounds(t, 8)
	for round := 0; round < n || moved == 0 && round < 10*n; round++ { // on until a rewrite was carried
		d := newTraced(t, rng)
		for range 2 + rng.IntN(4) {
			d.append(t)
		}
		table := open(t, d.Location(), filepath.Join(d.dir, "overlays"))
		require.NoError(t, table.Mount(ctx))
		for _, e := range []string{"ordered(v)", "bitmap(v)", "ngram(s)", "zonemap(v)", "bloom(s)", "ordered(s, v)"} {
			_, err := table.AddIndex(ctx, e)
			require.NoError(t, err)
		}
		synced(t, table, skomer.SyncOptions{})
		for step := range 1 + rng.IntN(4) {
			what, faithful, shuffled := d.rewrite(t)
			r := synced(t, table, skomer.SyncOptions{})
			carried += r.Carried
			switch {
			case faithful:
				kept++
				if r.Carried > 0 {
					moved++
				}
			case shuffled:
				require.Zero(t, r.Carried, "round %d, step %d: %s", round, step, what)
			}
			requireCoveredButRefused(t, table, r)
			requireRows(t, table, d, fmt.Sprintf("round %d, step %d: %s", round, step, what))
			if rng.IntN(3) == 0 {
				d.append(t)
			}
		}
	}
	t.Logf("%d artifacts carried over %d of %d rewrites that kept every row", carried, moved, kept)
	require.Positive(t, moved)
}

// requireRows compares the answers of a table with its rows.
func requireRows(t *testing.T, table *skomer.Table, d *traced, when string) {
	t.Helper()
	check := func(where string, holds func(tracedRow) bool) {
		want := map[string][]int{}
		for path, rows := range d.files {
			for i, r := range rows {
				if holds(r) {
					want[path] = append(want[path], i)
				}
			}
		}
		got, stats := positions(t, table, skomer.Query{Where: where})
		require.Equal(t, describe(want), describe(got), "%s: %s", when, where)
		require.Empty(t, stats.Rejected)
	}
	for _, v := range []int64{99, 77, d.rng.Int64N(60), d.rng.Int64N(60), d.rng.Int64N(60)} {
		check(fmt.Sprintf("v = %d", v), func(r tracedRow) bool { return r.v == v })
		check(fmt.Sprintf("v >= %d", v), func(r tracedRow) bool { return r.v >= v })
	}
	for range 4 {
		w := fmt.Sprintf("word%02d", d.rng.IntN(40))
		check("s = '"+w+"'", func(r tracedRow) bool { return r.s == w })
		check("s LIKE '%"+w[3:]+"%'", func(r tracedRow) bool { return strings.Contains(r.s, w[3:]) })
		check("s = '"+w+"' AND v < 30", func(r tracedRow) bool { return r.s == w && r.v < 30 })
	}
}

// TestU09ChangedRowsKeepTheirIds: a replace whose rows have the ids of those that left, and say that they were changed since, is built: the
// pair of id and last change is what tells a row, not its id. The same rows unchanged are carried.
func TestU09ChangedRowsKeepTheirIds(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	for _, stated := range []bool{true, false} {
		d := newTraced(t, rng)
		var rows []tracedRow
		for i := range int64(300) {
			rows = append(rows, tracedRow{v: i % 50, s: fmt.Sprintf("word%02d", i%40)})
		}
		d.commit(t, rows, nil, "")
		table := open(t, d.Location(), filepath.Join(d.dir, "overlays"))
		require.NoError(t, table.Mount(ctx))
		for _, e := range []string{"ordered(v)", "bitmap(v)", "zonemap(v)"} {
			_, err := table.AddIndex(ctx, e)
			require.NoError(t, err)
		}
		synced(t, table, skomer.SyncOptions{})
		rewrite := func(change func(i int, r *tracedRow) *int64) *skomer.SyncReport {
			var old string
			for old = range d.files {
			}
			rows := slices.Clone(d.files[old])
			slices.Reverse(rows) // else blocks of equal values are carried by their hashes
			versions := make([]tabletest.RowVersion, len(rows))
			for i := range rows {
				versions[i] = tabletest.RowVersion{ID: &rows[i].id, Changed: change(i, &rows[i])}
			}
			d.commit(t, rows, versions, "replace", old)
			return synced(t, table, skomer.SyncOptions{})
		}
		now := d.LastSequence + 1
		r := rewrite(func(i int, r *tracedRow) *int64 {
			if i%3 > 0 {
				return &r.changed
			}
			r.v = 99
			if stated {
				return &now
			}
			return nil // it is inherited from the manifest
		})
		require.Zero(t, r.Carried)
		requireRows(t, table, d, fmt.Sprintf("stated %v", stated))
		require.Positive(t, rewrite(func(_ int, r *tracedRow) *int64 { return &r.changed }).Carried)
		requireRows(t, table, d, "unchanged")
	}
}

// TestRewritesThatTakeLittleOfAnArtifactAreCarried: of the rows of the artifacts that a rewritten file is made of it takes at least half, of
// one of them only a few; where it takes less than half of all, it is built.
func TestRewritesThatTakeLittleOfAnArtifactAreCarried(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	for _, c := range []struct {
		few, many int // of a hundred and three hundred rows
		carried   int
	}{{10, 290, 2}, {100, 100, 2}, {10, 150, 0}} {
		d := newTraced(t, rng)
		table := open(t, d.Location(), filepath.Join(d.dir, "overlays"))
		require.NoError(t, table.Mount(ctx))
		for _, e := range []string{"ordered(v)", "bitmap(v)"} {
			_, err := table.AddIndex(ctx, e)
			require.NoError(t, err)
		}
		var paths []string
		for _, n := range []int64{100, 300} { // an artifact each
			var rows []tracedRow
			for i := range n {
				rows = append(rows, tracedRow{v: i % 50, s: "word"})
			}
			d.commit(t, rows, nil, "")
			synced(t, table, skomer.SyncOptions{})
		}
		for p := range d.files {
			paths = append(paths, p)
		}
		slices.Sort(paths)
		rows := append(slices.Clone(d.files[paths[0]][:c.few]), d.files[paths[1]][:c.many]...)
		slices.Reverse(rows)
		versions := make([]tabletest.RowVersion, len(rows))
		for i := range rows {
			versions[i] = tabletest.RowVersion{ID: &rows[i].id, Changed: &rows[i].changed}
		}
		d.commit(t, rows, versions, "replace", paths...)
		require.Equal(t, c.carried, synced(t, table, skomer.SyncOptions{}).Carried, "%d and %d rows", c.few, c.many)
		requireRows(t, table, d, fmt.Sprintf("%d and %d rows", c.few, c.many))
	}
}
