package skomer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

var allKinds = []string{"zonemap(v)", "bloom(v)", "valueset(v)", "bitmap(v)", "ordered(v)"}

// rewrite replaces files of the table by one with other rows, and returns its path.
func (s *smallTable) rewrite(t *testing.T, rows []tabletest.Row, remove ...string) string {
	t.Helper()
	path := filepath.Join(s.dir, "table", "data", fmt.Sprintf("f%04d.parquet", s.files))
	s.files++
	_, err := s.Replace(context.Background(), remove, plain(t, path, rows))
	require.NoError(t, err)
	return path
}

// TestU02ExactOnlyForTheFilesItWasBuiltOn: after a compaction the null rows of the new file are found, whichever index was exact about the
// old files, before and after the next sync.
func TestU02ExactOnlyForTheFilesItWasBuiltOn(t *testing.T) {
	for _, expr := range allKinds {
		s := newSmall(t)
		table := s.mount(t, expr)
		a, b := s.add(t, 10, 20), s.add(t, 30)
		synced(t, table, skomer.SyncOptions{})
		rows := longs(10, 20, 30, 0)
		rows[3][1] = tabletest.Cell{Null: true}
		s.rewrite(t, rows, a, b)
		for range 2 {
			got, _ := positions(t, table, skomer.Query{Where: "v IS NULL"})
			require.Equal(t, "f0002.parquet:[3]", describe(got))
			got, _ = positions(t, table, skomer.Query{Where: "v IS NOT NULL"})
			require.Equal(t, "f0002.parquet:[0 1 2]", describe(got))
			synced(t, table, skomer.SyncOptions{})
		}
	}
}

// TestU05FilesThatAreGone: an index that names files which left the table, and bundles that left the store, cost time and never a query.
func TestU05FilesThatAreGone(t *testing.T) {
	s := newSmall(t)
	table := s.mount(t, allKinds...)
	a := s.add(t, 10, 20)
	s.add(t, 30, 40)
	synced(t, table, skomer.SyncOptions{})
	_, err := s.Remove(context.Background(), a)
	require.NoError(t, err)
	require.NoError(t, os.Remove(a))
	for where, n := range map[string]int{"v = 20": 0, "v = 40": 1, "v > 0": 2} {
		got, stats := count(t, table, skomer.Query{Where: where})
		require.Equal(t, n, got, where)
		require.Empty(t, stats.Rejected)
	}
	for _, b := range s.bundles(t) {
		require.NoError(t, os.Remove(b))
	}
	n, stats := count(t, s.open(t), skomer.Query{Where: "v = 40", Select: []string{"id"}})
	require.Equal(t, 1, n)
	t.Log(stats.Rejected)
}

// TestU07ChangedIdentityVoidsEveryKind: a file that was overwritten in place leaves no index of any kind speaking for it after the sweep.
func TestU07ChangedIdentityVoidsEveryKind(t *testing.T) {
	s := newSmall(t)
	table := s.mount(t, allKinds...)
	path := s.add(t, 10, 20, 30, 40)
	synced(t, table, skomer.SyncOptions{})
	overwriteAlike(t, path, 11, 21, 31, 41)
	r := synced(t, table, skomer.SyncOptions{Sweep: true})
	require.Equal(t, len(allKinds), r.Swept.Withdrawn)
	require.Equal(t, len(allKinds), r.Artifacts)
	requireCovered(t, table)
	for where, n := range map[string]int{"v = 10": 0, "v = 11": 1, "v > 40": 1, "v = 40": 0} {
		got, _ := count(t, table, skomer.Query{Where: where})
		require.Equal(t, n, got, where)
	}
}

// TestU07KindsOfTextsAreVoided is the same for the kinds that are about texts, and for statistics: after the sweep nothing of the old texts
// is left in an answer, and the new ones are found.
func TestU07KindsOfTextsAreVoided(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	schema := &column.Schema{Fields: []column.Field{idSchema.Fields[0], {ID: 2, Name: "msg", Type: column.Of(column.String)}}}
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: schema})
	require.NoError(t, err)
	s := &smallTable{Table: w, dir: dir}
	path := filepath.Join(dir, "table", "data", "a.parquet")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	write := func(texts ...string) lakewrite.File {
		var rows []tabletest.Row
		for i, x := range texts {
			rows = append(rows, tabletest.Row{{Val: column.IntValue(column.Long, int64(i))}, {Val: column.StringValue(x)}})
		}
		return smallFile(t, path, schema, rows)
	}
	old := write("disk full", "all is well", "time is up")
	_, err = w.Append(ctx, old)
	require.NoError(t, err)
	indexes := []string{"ngram(msg)", "bloom(tokens(msg))", "ordered(msg)", "bitmap(msg)", "sketch(msg)"}
	table := s.mount(t, indexes...)
	synced(t, table, skomer.SyncOptions{})
	n, stats := count(t, table, skomer.Query{Where: "msg LIKE '%is wel%'"})
	require.Equal(t, 1, n)
	require.NotEmpty(t, stats.IndexesUsed)
	require.NoError(t, os.Remove(path))
	require.Equal(t, old.Size, write("disk okay", "all is lost", "time is up").Size, "the test proves nothing")
	r := synced(t, table, skomer.SyncOptions{Sweep: true})
	require.Equal(t, skomer.Swept{Files: 1, Changed: 1, Withdrawn: len(indexes)}, *r.Swept)
	requireCovered(t, table)
	for where, want := range map[string]int{
		"msg LIKE '%is wel%'": 0, "msg LIKE '%is los%'": 1, "msg ILIKE '%IS %'": 2, "msg ~ 'o[k]ay'": 1,
		"'okay' = ANY(tokens(msg))": 1, "'full' = ANY(tokens(msg))": 0, "msg = 'disk full'": 0, "msg = 'time is up'": 1,
	} {
		n, stats := count(t, table, skomer.Query{Where: where})
		require.Equal(t, want, n, where)
		require.Empty(t, stats.Rejected, where)
	}
}

// TestU08CompactionLosesCoverageAndSaysSo: after a compaction the new file is scanned, the lost coverage is reported, and the next sync
// regains it.
func TestU08CompactionLosesCoverageAndSaysSo(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	table := s.mount(t, "zonemap(v)")
	a, b := s.add(t, 10, 20), s.add(t, 30, 40)
	s.add(t, 50)
	synced(t, table, skomer.SyncOptions{})
	s.rewrite(t, longs(10, 20, 30, 40), a, b)
	st, err := table.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(1), st.Indexes[0].Covered)
	require.Equal(t, int64(5), st.Indexes[0].Total)
	n, stats := count(t, table, skomer.Query{Where: "v = 30"})
	require.Equal(t, 1, n)
	require.Equal(t, 1, stats.FilesOpened)
	synced(t, table, skomer.SyncOptions{})
	requireCovered(t, table)
}

// TestU10UpdatedRowsLeaveCoverage: a copy-on-write update takes its file out of coverage with the same commit, and no index answers with old
// values.
func TestU10UpdatedRowsLeaveCoverage(t *testing.T) {
	s := newSmall(t)
	table := s.mount(t, allKinds...)
	a := s.add(t, 10, 20)
	s.add(t, 30)
	synced(t, table, skomer.SyncOptions{})
	path := filepath.Join(s.dir, "table", "data", "updated.parquet")
	_, err := s.Commit(context.Background(), lakewrite.Change{Add: []lakewrite.File{plain(t, path, longs(10, 21))}, Remove: []string{a}, Operation: "overwrite"})
	require.NoError(t, err)
	for range 2 {
		for where, n := range map[string]int{"v = 20": 0, "v = 21": 1, "v = 10": 1, "v = 30": 1} {
			got, stats := count(t, table, skomer.Query{Where: where})
			require.Equal(t, n, got, where)
			require.Empty(t, stats.Rejected)
		}
		require.Zero(t, synced(t, table, skomer.SyncOptions{}).Carried)
	}
	requireCovered(t, table)
}

// TestU11OneSnapshotFromPlanToFetch: a query that was planned before the table was rewritten and the overlay followed reads the rows of its
// snapshot.
func TestU11OneSnapshotFromPlanToFetch(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	table := s.mount(t, allKinds...)
	a := s.add(t, 10, 20, 30)
	synced(t, table, skomer.SyncOptions{})
	rows, err := table.Query(ctx, skomer.Query{Where: "v >= 20", Select: []string{"v"}, Limit: -1})
	require.NoError(t, err)
	s.rewrite(t, longs(30, 99, 10, 98), a)
	synced(t, table, skomer.SyncOptions{})
	var got []int64
	require.NoError(t, rows.Each(ctx, func(b *skomer.Batch) error {
		for i := range b.Rows {
			v, _ := b.Cols[0].Value(i)
			got = append(got, v.Int64())
		}
		return nil
	}))
	require.Equal(t, []int64{20, 30}, got)
	n, _ := count(t, table, skomer.Query{Where: "v > 90"})
	require.Equal(t, 2, n)
}

// TestU12IndexesAreNotDroppedByTheWay: an index stays declared when all of its files leave the table, and artifacts that dangle are found.
func TestU12IndexesAreNotDroppedByTheWay(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	table := s.mount(t, "bloom(v)")
	a := s.add(t, 10, 20)
	synced(t, table, skomer.SyncOptions{})
	_, err := s.Remove(ctx, a)
	require.NoError(t, err)
	synced(t, table, skomer.SyncOptions{})
	all, err := table.Indexes(ctx)
	require.NoError(t, err)
	require.Len(t, all, 1)
	s.add(t, 10, 21)
	synced(t, table, skomer.SyncOptions{})
	for _, b := range s.bundles(t) {
		require.NoError(t, os.Remove(b))
	}
	table = s.open(t)
	n, _ := count(t, table, skomer.Query{Where: "v = 21"})
	require.Equal(t, 1, n)
	require.Equal(t, map[string]int{"unreadable": 1}, repaired(t, table, false).ByReason)
	requireCovered(t, table)
}

// TestU13LineageTellsWhatWasRead: a sync that does not read a file again does not renew what is known of it, however often it runs.
func TestU13LineageTellsWhatWasRead(t *testing.T) {
	s := newSmall(t)
	table := s.mount(t, "bitmap(v)")
	path := s.add(t, 10, 20, 30, 40)
	synced(t, table, skomer.SyncOptions{})
	overwriteAlike(t, path, 50, 60, 70, 80)
	s.add(t, 1)
	for range 2 {
		synced(t, table, skomer.SyncOptions{})
		n, stats := count(t, table, skomer.Query{Where: "v = 60", Strict: true})
		require.Equal(t, 1, n)
		require.Positive(t, stats.Rejected["tag_mismatch"])
	}
}

// evolve gives the table another schema.
func (s *smallTable) evolve(t *testing.T, fields ...column.Field) {
	t.Helper()
	require.NoError(t, s.SetSchema(context.Background(), &column.Schema{ID: 1, Fields: append([]column.Field{idSchema.Fields[0]}, fields...)}))
}

// TestU57WidenedColumns: indexes of a column that was int answer for it as a long, with literals of either width.
func TestU57WidenedColumns(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	narrow := &column.Schema{Fields: []column.Field{idSchema.Fields[0], {ID: 2, Name: "v", Type: column.Of(column.Int)}}}
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: narrow})
	require.NoError(t, err)
	s := &smallTable{Table: w, dir: dir}
	rows := longs(0, 0, 0)
	for i, v := range []int64{5, -7, 1 << 30} {
		rows[i][1].Val = column.IntValue(column.Int, v)
	}
	path := filepath.Join(dir, "table", "data", "narrow.parquet")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, tabletest.WriteParquet(path, narrow, rows, tabletest.Layout{RowsPerGroup: 1000, PageBytes: 1 << 20, PageVersion: 1, Codec: tabletest.Uncompressed}))
	info, err := os.Stat(path)
	require.NoError(t, err)
	_, err = w.Append(ctx, lakewrite.File{Path: path, Records: 3, Size: info.Size()})
	require.NoError(t, err)
	table := s.mount(t, allKinds...)
	synced(t, table, skomer.SyncOptions{})
	s.evolve(t, column.Field{ID: 2, Name: "v", Type: column.Of(column.Long)})
	s.add(t, 5, 1<<40)
	for range 2 {
		for where, n := range map[string]int{"v = 5": 2, "v = -7": 1, "v = 1073741824": 1, "v = 1099511627776": 1, "v > 1000": 2, "v = 6": 0} {
			got, stats := count(t, table, skomer.Query{Where: where})
			require.Equal(t, n, got, where)
			require.Empty(t, stats.Rejected)
			require.NotEmpty(t, stats.IndexesUsed)
		}
		synced(t, table, skomer.SyncOptions{})
	}
}

// TestU59ColumnsAreFieldIDs: a column that was dropped and another added under its name share no index and no values.
func TestU59ColumnsAreFieldIDs(t *testing.T) {
	s := newSmall(t)
	table := s.mount(t, allKinds...)
	s.add(t, 10, 20)
	synced(t, table, skomer.SyncOptions{})
	s.evolve(t, column.Field{ID: 3, Name: "v", Type: column.Of(column.Long)})
	for where, n := range map[string]int{"v = 20": 0, "v IS NULL": 2, "id = 1": 1} {
		got, _ := count(t, table, skomer.Query{Where: where})
		require.Equal(t, n, got, where)
	}
}

// TestU60RenamesAreNothing: a renamed column is answered by its index, nothing is built again, old files have its rows.
func TestU60RenamesAreNothing(t *testing.T) {
	s := newSmall(t)
	table := s.mount(t, allKinds...)
	s.add(t, 10, 20)
	synced(t, table, skomer.SyncOptions{})
	s.evolve(t, column.Field{ID: 2, Name: "w", Type: column.Of(column.Long)})
	require.Zero(t, synced(t, table, skomer.SyncOptions{}).Artifacts)
	n, stats := count(t, table, skomer.Query{Where: "w = 20"})
	require.Equal(t, 1, n)
	require.NotEmpty(t, stats.IndexesUsed)
	require.Empty(t, stats.Rejected)
}

// TestU61RenamesAreNotGuessed: a new column in the place of a dropped one has none of its values, by index and by scan.
func TestU61RenamesAreNotGuessed(t *testing.T) {
	s := newSmall(t)
	table := s.mount(t, allKinds...)
	s.add(t, 10, 20)
	synced(t, table, skomer.SyncOptions{})
	s.evolve(t, column.Field{ID: 4, Name: "w", Type: column.Of(column.Long)})
	for _, q := range []skomer.Query{{Where: "w = 20"}, {Where: "w = 20", NoIndex: true}} {
		n, _ := count(t, table, q)
		require.Zero(t, n)
	}
	n, _ := count(t, table, skomer.Query{Where: "w IS NULL"})
	require.Equal(t, 2, n)
}

// TestU73SyncsFollowATableThatMoves: a table that is compacted while its files are read, and whose old files are removed, does not make the
// sync fail: it plans again on the new snapshot and leaves everything covered.
func TestU73SyncsFollowATableThatMoves(t *testing.T) {
	s := newSmall(t)
	s.mount(t, "bloom(v)", "ordered(v)")
	a, b := s.add(t, 10, 20), s.add(t, 30, 40)
	moved := false
	data := faulty.New(local.New(), 1, faulty.Rule{Op: faulty.Fetch, Key: func(k string) bool { return k == a }, Nth: 1, Do: func(context.Context, faulty.Op, string) {
		moved = true
		s.rewrite(t, longs(10, 20, 30, 40), a, b)
		require.NoError(t, os.Remove(a))
		require.NoError(t, os.Remove(b))
	}})
	at := func(location string) (store.Store, string, error) { return data, location, nil }
	c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays(), MinPlannedFiles: -1}.WithStores(at, lake.LocalFiles()))
	require.NoError(t, err)
	table, err := c.Open(context.Background(), s.Location(), skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	r, err := table.Sync(context.Background(), skomer.SyncOptions{})
	require.NoError(t, err)
	require.True(t, moved)
	require.Empty(t, r.Skipped)
	table = s.open(t)
	requireCovered(t, table)
	n, _ := count(t, table, skomer.Query{Where: "v = 30"})
	require.Equal(t, 1, n)
	st, err := table.Status(context.Background())
	require.NoError(t, err)
	require.Equal(t, st.SnapshotID, st.SyncedSnapshot)
}
