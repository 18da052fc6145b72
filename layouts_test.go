package skomer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// tails is a local store that counts the reads of Parquet footers.
type tails struct {
	store.Store
	mu sync.Mutex
	n  int
}

func (s *tails) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	for _, r := range reads {
		if strings.HasSuffix(r.Key, ".parquet") && slices.ContainsFunc(r.Spans, func(x store.Span) bool { return x.Off < 0 }) {
			s.mu.Lock()
			s.n++
			s.mu.Unlock()
		}
	}
	return s.Store.Fetch(ctx, reads)
}

// taken is how many there were since the last call.
func (s *tails) taken() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, s.n = s.n, 0
	return n
}

// counted opens a table anew over a store that counts reads of footers.
func counted(t *testing.T, table *skomer.Table) (*skomer.Table, *tails) {
	t.Helper()
	s := &tails{Store: local.New()}
	at := func(location string) (store.Store, string, error) { return s, location, nil }
	c, err := skomer.New(skomer.Config{OverlayRoot: filepath.Dir(table.Overlay()), MinPlannedFiles: -1}.WithStores(at, at))
	require.NoError(t, err)
	fresh, err := c.Open(context.Background(), table.Location(), skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(fresh.Close)
	return fresh, s
}

// laidTable is one of which every file has a layout.
func laidTable(t *testing.T, files, rows int) (table *skomer.Table, paths []string) {
	t.Helper()
	table, paths = idTable(t, files, rows)
	_, err := table.AddIndex(context.Background(), "ordered(v)")
	require.NoError(t, err)
	_, err = table.Sync(context.Background(), skomer.SyncOptions{})
	require.NoError(t, err)
	return table, paths
}

// TestAHitReadsNoFooter: what a file map leaves of a file is read by the layout in the map, one wave after the leaf; explain says so. Strict
// queries, and whoever reads all of a file, take its footer; so does a query once a layout or the place of it is gone.
func TestAHitReadsNoFooter(t *testing.T) {
	ctx := context.Background()
	table, paths := laidTable(t, 40, 100)
	want := map[string][]int{paths[17]: {7}}
	at, read := counted(t, table)
	got, _ := positions(t, at, skomer.Query{Where: "v = 11"})
	require.Len(t, got, 1)
	require.Zero(t, read.taken())
	got, stats := positions(t, at, skomer.Query{Where: "v = 1707"})
	require.Equal(t, want, got)
	require.Zero(t, read.taken())
	require.EqualValues(t, 1, stats.Waves) // the leaf is in memory
	require.Equal(t, 1, stats.FilesOpened)
	cold, unread := counted(t, table)
	x, err := cold.Explain(ctx, skomer.Query{Where: "v = 1707"}, true)
	require.NoError(t, err)
	require.Len(t, x.Waves, 2) // leaf and layouts, pages
	require.Zero(t, unread.taken())
	x, err = at.Explain(ctx, skomer.Query{Where: "v = 1707"}, true)
	require.NoError(t, err)
	require.Contains(t, x.Files[17].By, "its pages are read without its footer")
	require.Zero(t, read.taken())

	got, _ = positions(t, cold, skomer.Query{Where: "v = 1707", NoIndex: true})
	require.Equal(t, want, got)
	require.Equal(t, 40, unread.taken())
	got, _ = positions(t, cold, skomer.Query{Where: "v = 1707"}) // with the footer that is kept now
	require.Equal(t, want, got)
	got, _ = positions(t, at, skomer.Query{Where: "v = 1707", Strict: true})
	require.Equal(t, want, got)
	require.Positive(t, read.taken())
}

// TestAFileThatChangedIsReadAnew: pages by a layout are asked for with the tag that the map saw; a file that was overwritten since is read by
// its own footer, and nothing of the map counts for it.
func TestAFileThatChangedIsReadAnew(t *testing.T) {
	table, paths := laidTable(t, 10, 50)
	at, read := counted(t, table)
	got, _ := positions(t, at, skomer.Query{Where: "v = 157"})
	require.Equal(t, map[string][]int{paths[3]: {7}}, got)
	values := make([]int64, 50)
	for i := range values {
		values[i] = int64(199 - i) // the same values the other way round
	}
	was, err := os.Stat(paths[3])
	require.NoError(t, err)
	require.NoError(t, os.Remove(paths[3]))
	plain(t, paths[3], longs(values...))
	now, err := os.Stat(paths[3])
	require.NoError(t, err)
	require.Equal(t, was.Size(), now.Size())
	got, stats := positions(t, at, skomer.Query{Where: "v = 157"})
	require.Len(t, stats.Rejected, 1)
	require.Equal(t, map[string][]int{paths[3]: {42}}, got)
	require.Equal(t, 1, read.taken())
}

// TestALaterFileThatChangedIsReadAnew: where not all that is read fits into memory at once, a file that was overwritten is noticed before the first
// rows are handed on, as it is by its footer.
func TestALaterFileThatChangedIsReadAnew(t *testing.T) {
	table, paths := laidTable(t, 10, 50)
	s := &tails{Store: local.New()}
	at := func(location string) (store.Store, string, error) { return s, location, nil }
	c, err := skomer.New(skomer.Config{OverlayRoot: filepath.Dir(table.Overlay()), MinPlannedFiles: -1, Memory: 8}.WithStores(at, at))
	require.NoError(t, err)
	fresh, err := c.Open(context.Background(), table.Location(), skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(fresh.Close)
	values := make([]int64, 50)
	for i := range values {
		values[i] = int64(199 - i)
	}
	require.NoError(t, os.Remove(paths[3]))
	plain(t, paths[3], longs(values...))
	got, stats := positions(t, fresh, skomer.Query{Where: "v = 57 OR v = 157 OR v = 207"})
	require.Equal(t, map[string][]int{paths[1]: {7}, paths[3]: {42}, paths[4]: {7}}, got)
	require.Equal(t, 3, stats.FilesOpened)
	require.Equal(t, 3, s.taken()) // footers of two files, and once more of the one that changed
}

// TestLayoutsAnswerAsTheRowsAre: over random histories of schema, deletes and snapshots, clients that have nothing in memory, and so read by layouts
// what file maps leave, give the oracle's rows and values.
func TestLayoutsAnswerAsTheRowsAre(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	asked, laid := 0, 0
	n := rounds(t, 1)
	for round := 0; round < n || laid == 0 && round < 10*n; round++ {
		dir := t.TempDir()
		made := tabletest.CreateEvolving(t, rng, filepath.Join(dir, "table"))
		made.Append(t, 3)
		table := open(t, made.Dir, filepath.Join(dir, "overlays"))
		require.NoError(t, table.Mount(ctx))
		have := map[string]bool{}
		for range 4 {
			declare(t, table, made, have, func() bool { return rng.IntN(3) == 0 })
			_, err := table.Sync(ctx, skomer.SyncOptions{})
			require.NoError(t, err)
			for k := range 10 {
				view := made.Current()
				if k%3 == 1 {
					view = made.Past()
				}
				e := view.Expr(rng.IntN(2))
				want, q := view.Answer(e), skomer.Query{Where: e.SQL(), At: view.At}
				cold, _ := counted(t, table)
				x, err := cold.Explain(ctx, q, true)
				require.NoError(t, err)
				if asked++; slices.ContainsFunc(x.Files, func(f skomer.FileDecision) bool { return strings.Contains(f.By, "without its footer") }) {
					laid++
				}
				got, _ := positions(t, cold, q)
				require.Equal(t, describe(want), describe(got), "%s %v", q.Where, made.Steps)
				cold.Close()
				cold, _ = counted(t, table)
				valuesAre(t, cold, view, q, want, made.Steps)
				cold.Close()
			}
			made.Evolve(t)
			made.Append(t, 2)
		}
	}
	t.Logf("%d predicates, %d answered without a footer", asked, laid)
	require.Positive(t, laid)
}

// forge puts other layouts of the same length in the place of a run's, under a checksum that is right.
func forge(t *testing.T, table *skomer.Table, change func(raw []byte) []byte) {
	t.Helper()
	ctx := context.Background()
	o := overlay.Open(local.New(), table.Overlay(), overlay.Options{})
	v, err := o.Latest(ctx)
	require.NoError(t, err)
	runs := v.Derived(filemap.Kind)
	require.Len(t, runs, 1)
	meta, err := filemap.ParseMeta(runs[0].Name, runs[0].Meta)
	require.NoError(t, err)
	require.NotNil(t, meta.Layouts)
	path := filepath.Join(table.Overlay(), runs[0].Key)
	object, err := os.ReadFile(path)
	require.NoError(t, err)
	place := object[meta.Layouts.Off : meta.Layouts.Off+meta.Layouts.Len]
	forged := change(slices.Clone(place))
	require.Len(t, forged, len(place))
	copy(place, forged)
	require.NoError(t, os.WriteFile(path, object, 0o600))
	meta.Layouts.CRC = bytescan.CRC32C(forged)
	e := runs[0]
	e.Meta, err = json.Marshal(meta)
	require.NoError(t, err)
	_, err = o.Commit(ctx, v, overlay.ReplaceDerived([]overlay.Derived{e}, runs))
	require.NoError(t, err)
}

// TestWrongLayoutsCostAFooter: whatever bit of the places of a file's pages is wrong, under a checksum that is right, the answer is right, and
// no query fails.
func TestWrongLayoutsCostAFooter(t *testing.T) {
	table, paths := laidTable(t, 3, 60)
	want := map[string][]int{paths[1]: {7}}
	var at, length int // of the places of every file
	forge(t, table, func(raw []byte) []byte {
		l, err := filemap.OpenLayouts(raw, 3)
		require.NoError(t, err)
		first, ok := l.Of(0)
		require.True(t, ok)
		at, length = len(raw)-3*(len(first.Places)+2), 3*(len(first.Places)+2)
		return raw
	})
	footers := 0
	for bit := range 8 * length {
		flip := func(raw []byte) []byte {
			raw[at+bit/8] ^= 1 << (bit % 8)
			return raw
		}
		forge(t, table, flip)
		fresh, read := counted(t, table)
		for range 2 {
			got, _ := positions(t, fresh, skomer.Query{Where: "v = 67"})
			require.Equal(t, want, got, "bit %d", bit)
		}
		footers += read.taken()
		fresh.Close()
		forge(t, table, flip)
	}
	require.Greater(t, footers, length, "hardly a flip was noticed")
	fresh, read := counted(t, table)
	got, _ := positions(t, fresh, skomer.Query{Where: "v = 67"})
	require.Equal(t, want, got)
	require.Zero(t, read.taken())
}

// TestLayoutsThatAreNoneCostAFooter: damaged layouts are reported, those of a later version and other garbage are not used.
func TestLayoutsThatAreNoneCostAFooter(t *testing.T) {
	for name, change := range map[string]func(raw []byte) []byte{
		"a later version": func(raw []byte) []byte { raw[0]++; return raw },
		"zeros":           func(raw []byte) []byte { clear(raw); return raw },
		"ones": func(raw []byte) []byte {
			for i := range raw {
				raw[i] = 0xff
			}
			return raw
		},
	} {
		table, paths := laidTable(t, 4, 60)
		forge(t, table, change)
		fresh, read := counted(t, table)
		got, stats := positions(t, fresh, skomer.Query{Where: "v = 67"})
		require.Equal(t, map[string][]int{paths[1]: {7}}, got, name)
		require.Equal(t, 1, read.taken(), name)
		require.NotEmpty(t, stats.Rejected, name)
		require.Equal(t, 1, stats.FilesOpened, name)
	}
}

// TestLayoutsFollowTheTable: over random histories of appends, updates, deletes, overwrites, compactions and changes of the schema, processes that have
// no footer in memory give the right answers, at every snapshot, and files are read by their layouts in many of them.
func TestLayoutsFollowTheTable(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	asked, laid := 0, 0
	for round := range rounds(t, 3) {
		dir := t.TempDir()
		made := tabletest.CreateEvolving(t, rng, filepath.Join(dir, "table"))
		made.Append(t, 6)
		table := open(t, made.Dir, filepath.Join(dir, "overlays"))
		require.NoError(t, table.Mount(ctx))
		have := map[int]bool{}
		for range 6 {
			declareMapped(t, table, made, have, rng.IntN)
			_, err := table.Sync(ctx, skomer.SyncOptions{})
			require.NoError(t, err, "%v", made.Steps)
			for k := range 8 {
				view := made.Current()
				if k%4 == 3 {
					view = made.Past()
				}
				e := pointExpr(view, rng.IntN(3))
				want := view.Answer(e)
				fresh, read := counted(t, table)
				got, stats := positions(t, fresh, skomer.Query{Where: e.SQL(), At: view.At})
				if describe(got) != describe(want) {
					t.Fatalf("round %d at %q: %s\n%s\n%v\nstats %+v", round, view.At, e.SQL(), difference(view.Table, got, want), made.Steps, stats)
				}
				if asked++; stats.FilesOpened > read.taken() {
					laid++
				}
				fresh.Close()
			}
			for range rng.IntN(3) {
				[]func(testing.TB){
					func(t testing.TB) { made.Append(t, 4) }, made.Update, made.Overwrite, made.Evolve, func(t testing.TB) { made.Compact(t, 4) },
				}[rng.IntN(5)](t)
			}
		}
	}
	t.Logf("%d queries, %d read files by their layouts", asked, laid)
	require.Greater(t, laid, asked/8)
}

// TestLayoutsGoThroughMerges: runs of single files are merged, and every hit is still read without a footer.
func TestLayoutsGoThroughMerges(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	var files []lakewrite.File
	value := func(f, i int) int64 { return int64(1000*f + 3*i) }
	for f := range 6 {
		values := make([]int64, 200)
		for i := range values {
			values[i] = value(f, i)
		}
		files = append(files, plain(t, filepath.Join(s.dir, "table", "data", fmt.Sprintf("%d.parquet", f)), longs(values...)))
		_, err := s.Append(ctx, files[f])
		require.NoError(t, err)
		table := open(t, s.Location(), s.overlays())
		if f == 0 {
			require.NoError(t, table.Mount(ctx))
			_, err = table.AddIndex(ctx, "ordered(v)")
			require.NoError(t, err)
		}
		synced(t, table, skomer.SyncOptions{})
	}
	table := open(t, s.Location(), s.overlays())
	runs := 0
	for _, n := range listedRuns(t, table) {
		runs += n
	}
	require.Less(t, runs, 6)
	at, read := counted(t, table)
	for f := range 6 {
		got, _ := positions(t, at, skomer.Query{Where: fmt.Sprintf("v = %d", value(f, 50))})
		require.Equal(t, map[string][]int{files[f].Path: {50}}, got)
	}
	require.Zero(t, read.taken())
}

// TestManyShapes: of the files that one query reads by layouts, those of more shapes than it keeps are read by their footers.
func TestManyShapes(t *testing.T) {
	const files, kept = 20, 16
	ctx := context.Background()
	s := newSmall(t)
	want := map[string][]int{}
	for i := range files {
		schema := *idSchema
		schema.Fields = append(slices.Clone(schema.Fields), column.Field{ID: 100 + i, Name: fmt.Sprint("other", i), Type: column.Of(column.Long)})
		rows := longs(int64(i), 777, int64(i))
		for r := range rows {
			rows[r] = append(rows[r], tabletest.Cell{Val: column.IntValue(column.Long, 1)})
		}
		path := filepath.Join(s.dir, "table", "data", fmt.Sprintf("f%02d.parquet", i))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		_, err := s.Append(ctx, smallFile(t, path, &schema, rows))
		require.NoError(t, err)
		want[path] = []int{1}
	}
	synced(t, s.mount(t, "ordered(v)"), skomer.SyncOptions{})
	fresh, read := counted(t, s.open(t))
	got, _ := positions(t, fresh, skomer.Query{Where: "v = 777"})
	require.Equal(t, want, got)
	require.Equal(t, files-kept, read.taken())
}
