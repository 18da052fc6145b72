package skomer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// sameTags is a local store that says one tag of every file, as if whoever overwrote one had restored all of it.
type sameTags struct{ store.Store }

func (s sameTags) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	plain := make([]store.Read, len(reads))
	for i, r := range reads {
		plain[i] = r
		plain[i].Tag = ""
	}
	out := s.Store.Fetch(ctx, plain)
	for i := range out {
		out[i].Tag = "restored"
	}
	return out
}

func (s sameTags) Stat(ctx context.Context, keys []string) []store.Info {
	out := s.Store.Stat(ctx, keys)
	for i := range out {
		out[i].Tag = "restored"
	}
	return out
}

// TestStrictHashesLocalFiles: a local file is overwritten by one of the same size whose tag is restored. Strict reads find it by its
// content; file maps, which hold no hashes, do not speak for it either.
func TestStrictHashesLocalFiles(t *testing.T) {
	ctx := context.Background()
	for _, expr := range []string{"bloom(v)", "ordered(v)", "zonemap(v)", "bitmap(v)"} {
		s := newSmall(t)
		data := func(location string) (store.Store, string, error) { return sameTags{local.New()}, location, nil }
		own := func(location string) (store.Store, string, error) { return local.New(), location, nil }
		c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays(), MaxStaleness: time.Nanosecond}.WithStores(data, own))
		require.NoError(t, err)
		table, err := c.Open(ctx, s.Location(), skomer.TableOptions{})
		require.NoError(t, err)
		t.Cleanup(table.Close)
		require.NoError(t, table.Mount(ctx))
		_, err = table.AddIndex(ctx, expr)
		require.NoError(t, err)
		path := s.add(t, 1, 2, 3)
		s.add(t, 4, 5, 6)
		synced(t, table, skomer.SyncOptions{})
		n, stats := count(t, table, skomer.Query{Where: "v = 2", Strict: true})
		require.Equal(t, 1, n, expr)
		require.Empty(t, stats.Rejected, expr)

		was, err := os.Stat(path)
		require.NoError(t, err)
		other := plain(t, path+".new", longs(1, 7, 3))
		require.Equal(t, was.Size(), other.Size, "of the same size")
		b, err := os.ReadFile(other.Path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		require.NoError(t, os.Chtimes(path, was.ModTime(), was.ModTime()))
		n, stats = count(t, table, skomer.Query{Where: "v = 7", Strict: true})
		require.Equal(t, 1, n, expr)
		require.NotEmpty(t, stats.Rejected, expr)
	}
}

// TestStrictOutlivesSchemaChanges: artifacts are compared by the hashes of all columns that their build read, whether or not the schema of the
// snapshot that is asked has them all: after a column was dropped, in a snapshot from before one was added, by sweeps and by scrubs.
func TestStrictOutlivesSchemaChanges(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	table := s.mount(t, "ordered(v)", "bloom(id)")
	path := s.add(t, 1, 2, 3)
	s.add(t, 4, 5, 6)
	synced(t, table, skomer.SyncOptions{})
	requireProven := func(when string, q skomer.Query) {
		t.Helper()
		q.Strict, q.Limit = true, -1
		rows, err := table.Query(ctx, q)
		require.NoError(t, err, when)
		n, err := rows.Count(ctx)
		require.NoError(t, err, when)
		require.Equal(t, int64(1), n, when)
		require.Empty(t, rows.Stats().Rejected, when)
		require.NotEmpty(t, rows.Stats().IndexesUsed, when)
	}
	requireProven("as built", skomer.Query{Where: "v = 2"})

	require.NoError(t, s.SetSchema(ctx, &column.Schema{ID: 1, Fields: idSchema.Fields[1:]}))
	requireProven("after id was dropped", skomer.Query{Where: "v = 2"})
	stamp(t, path)
	require.Equal(t, skomer.Swept{Files: 2, Changed: 1, Restamped: 1}, *synced(t, table, skomer.SyncOptions{Sweep: true}).Swept)

	before := fmt.Sprint(s.Current)
	added := append(slices.Clone(idSchema.Fields[1:]), column.Field{ID: 3, Name: "w", Type: column.Of(column.Long)})
	require.NoError(t, s.SetSchema(ctx, &column.Schema{ID: 2, Fields: added}))
	for _, expr := range []string{"bitmap(v)", "bloom(w)"} {
		_, err := table.AddIndex(ctx, expr)
		require.NoError(t, err)
	}
	synced(t, table, skomer.SyncOptions{})
	requireProven("now", skomer.Query{Where: "v = 2"})
	requireProven("before w was added", skomer.Query{Where: "v = 2", At: before})

	overwriteAlike(t, path, 7, 8, 9)
	scrubbed, err := table.Scrub(ctx, skomer.ScrubOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"source_corrupt": 4}, scrubbed.ByReason)
}

// TestStrictProvesWhatRowIdsCarried: what was carried by row ids alone is proven by its content too where strict reads ask for that.
func TestStrictProvesWhatRowIdsCarried(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	d := newTraced(t, rng)
	var rows []tracedRow
	for i := range int64(300) {
		rows = append(rows, tracedRow{v: i % 50, s: fmt.Sprintf("word%02d", i%40)})
	}
	d.commit(t, rows, nil, "")
	var old string
	for old = range d.files {
	}
	table := open(t, d.Location(), filepath.Join(d.dir, "overlays"))
	require.NoError(t, table.Mount(ctx))
	for _, e := range []string{"ordered(v)", "bitmap(v)", "ngram(s)"} {
		_, err := table.AddIndex(ctx, e)
		require.NoError(t, err)
	}
	synced(t, table, skomer.SyncOptions{})
	rows = slices.Clone(d.files[old])
	slices.Reverse(rows)
	versions := make([]tabletest.RowVersion, len(rows))
	for i := range rows {
		versions[i] = tabletest.RowVersion{ID: &rows[i].id, Changed: &rows[i].changed}
	}
	d.commit(t, rows, versions, "replace", old)
	require.Equal(t, 3, synced(t, table, skomer.SyncOptions{}).Carried)
	for _, where := range []string{"v = 7", "s LIKE '%rd07%'"} {
		_, stats := count(t, table, skomer.Query{Where: where, Strict: true})
		require.Empty(t, stats.Rejected, where)
		require.NotEmpty(t, stats.IndexesUsed, where)
	}
	for path := range d.files {
		stamp(t, path)
	}
	swept := synced(t, table, skomer.SyncOptions{Sweep: true}).Swept
	require.Equal(t, skomer.Swept{Files: 1, Changed: 1, Restamped: 1}, *swept)
}

// TestStrictDoesNotProveWhatWasCarriedOverAnOverwrite: a file is overwritten by one of the same size whose tag is restored, and rewritten with its
// row ids before any sync looks at it. What row ids alone would carry is not made of the values that the new file has.
func TestStrictDoesNotProveWhatWasCarriedOverAnOverwrite(t *testing.T) {
	ctx := context.Background()
	d := newTraced(t, nil)
	layout := tabletest.Layout{RowsPerGroup: 1000, PageBytes: 1 << 20, PageVersion: 1, Codec: tabletest.Uncompressed}
	write := func(name string, keep bool, value func(i int64) int64) lakewrite.File {
		schema, cells, versions := d.schema, []tabletest.Row{}, []tabletest.RowVersion{}
		changed := int64(1)
		for i := range int64(300) {
			id := 299 - i
			if !keep {
				id = i
			}
			cells = append(cells, tabletest.Row{
				{Val: column.IntValue(column.Long, value(id))}, {Val: column.StringValue("x")}, {Val: column.IntValue(column.Long, id)},
			})
			versions = append(versions, tabletest.RowVersion{ID: &id, Changed: &changed})
		}
		if keep {
			schema, cells = tabletest.WithRowLineage(schema, cells, versions)
		}
		path := filepath.Join(d.dir, "table", "data", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, tabletest.WriteParquet(path, schema, cells, layout))
		info, err := os.Stat(path)
		require.NoError(t, err)
		return lakewrite.File{Path: path, Format: facts.Parquet, Records: 300, Size: info.Size()}
	}
	before := func(i int64) int64 { return i % 50 }
	after := func(i int64) int64 { return max(before(i), 8) } // nothing below 8 any more
	old := write("a.parquet", false, before)
	_, err := d.Append(ctx, old)
	require.NoError(t, err)
	data := func(location string) (store.Store, string, error) { return sameTags{local.New()}, location, nil }
	own := func(location string) (store.Store, string, error) { return local.New(), location, nil }
	c, err := skomer.New(skomer.Config{OverlayRoot: filepath.Join(d.dir, "overlays"), MaxStaleness: time.Nanosecond, MinPlannedFiles: -1, MinPlannedScanBytes: -1}.WithStores(data, own))
	require.NoError(t, err)
	table, err := c.Open(ctx, d.Location(), skomer.TableOptions{})
	require.NoError(t, err)
	tracked(t, table)
	require.NoError(t, table.Mount(ctx))
	for _, e := range []string{"ordered(v)", "bitmap(v)"} {
		_, err := table.AddIndex(ctx, e)
		require.NoError(t, err)
	}
	synced(t, table, skomer.SyncOptions{})
	_, stats := count(t, table, skomer.Query{Where: "v = 8", Strict: true})
	require.NotEmpty(t, stats.IndexesUsed)

	other := write("b.parquet", false, after)
	require.Equal(t, old.Size, other.Size, "of the same size")
	require.NoError(t, os.Rename(other.Path, old.Path))
	_, err = d.Commit(ctx, lakewrite.Change{Add: []lakewrite.File{write("c.parquet", true, after)}, Remove: []string{old.Path}, Operation: "replace"})
	require.NoError(t, err)
	require.Zero(t, synced(t, table, skomer.SyncOptions{}).Carried)
	for where, want := range map[string]int{"v = 8": 54, "v = 7": 0, "v = 9": 6} {
		got, stats := count(t, table, skomer.Query{Where: where, Strict: true})
		require.Equal(t, want, got, where)
		require.Empty(t, stats.Rejected, where)
	}
}
