package skomer_test

import (
	"context"
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
	"github.com/skomerdb/skomer/internal/lake/meta"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// bundles is the paths of an overlay's bundles, oldest first by name of their folder; fresh are those that known does not have.
func (s *smallTable) bundles(t *testing.T, known ...string) []string {
	t.Helper()
	var out []string
	for path := range contents(t, s.overlays()) {
		if strings.HasSuffix(path, ".puffin") && strings.Contains(path, "/data/") && !strings.Contains(path, "-map") && !slices.Contains(known, path) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// damage inverts a bit of every byte of a file from at on, n bytes; at below 0 counts from its end.
func damage(t *testing.T, path string, at, n int) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	if at < 0 {
		at += len(raw)
	}
	for i := at; i < min(at+n, len(raw)); i++ {
		raw[i] ^= 4
	}
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.WriteFile(path, raw, 0o600))
}

func repaired(t *testing.T, table *skomer.Table, dry bool) *skomer.RepairReport {
	t.Helper()
	r, err := table.Repair(context.Background(), dry)
	require.NoError(t, err)
	return r
}

// TestRepair: exactly the artifacts that cannot be believed are withdrawn and built anew, each counted by its reason: a bundle that is gone,
// one whose lineage record is damaged, a file that was overwritten, a file that was copied over itself (kept). A dry run changes nothing.
func TestRepair(t *testing.T) {
	s := newSmall(t)
	table := s.mount(t, "bloom(v)")
	var bundles, files []string
	for i := range int64(5) {
		files = append(files, s.add(t, 10*i, 10*i+1, 10*i+2, 10*i+3))
		synced(t, table, skomer.SyncOptions{})
		bundles = append(bundles, s.bundles(t, bundles...)...)
	}
	require.Len(t, bundles, 5)
	require.Empty(t, repaired(t, s.open(t), false).Findings)

	require.NoError(t, os.Remove(bundles[0]))
	whole, err := os.ReadFile(bundles[1])
	require.NoError(t, err)
	damage(t, bundles[1], strings.Index(string(whole), `{"format_version"`), 3)
	overwriteAlike(t, files[2], 77, 78, 79, 80)
	same, err := os.ReadFile(files[3])
	require.NoError(t, err)
	require.NoError(t, os.Remove(files[3]))
	require.NoError(t, os.WriteFile(files[3], same, 0o600))

	want := map[string]int{"unreadable": 1, "corrupt": 1, "content_mismatch": 1}
	table = s.open(t)
	before := s.bundles(t)
	dry := repaired(t, table, true)
	require.Equal(t, want, dry.ByReason)
	require.Nil(t, dry.Sync)
	require.Equal(t, before, s.bundles(t))
	for _, f := range dry.Findings {
		require.Len(t, f.Files, 1)
		require.Equal(t, "bloom(v)", f.Index)
		require.NotEmpty(t, f.Detail)
	}
	s.add(t, 500, 501) // is not indexed and not to be repaired
	r := repaired(t, table, false)
	require.Equal(t, want, r.ByReason)
	require.Equal(t, 3, r.Sync.Artifacts)
	require.Empty(t, repaired(t, s.open(t), true).Findings)
	st, err := table.Status(context.Background())
	require.NoError(t, err)
	require.Empty(t, st.Rejected)
	require.Equal(t, int64(20), st.Indexes[0].Covered)
	for where, n := range map[string]int{"v = 1": 1, "v = 11": 1, "v = 78": 1, "v = 21": 0, "v = 31": 1, "v = 41": 1, "v = 500": 1} {
		got, stats := count(t, s.open(t), skomer.Query{Where: where, Strict: true})
		require.Equal(t, n, got, where)
		require.Empty(t, stats.Rejected)
	}
}

// TestRepairAfterARemapping: artifacts of files without field ids are built anew after the table's name mapping changed.
func TestRepairAfterARemapping(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	mapping := func(v string) []facts.MappedField {
		return []facts.MappedField{{ID: 1, Names: []string{"id"}}, {ID: 2, Names: []string{v}}}
	}
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema, NameMapping: mapping("v")})
	require.NoError(t, err)
	bare := bareFile(t, filepath.Join(dir, "table", "data", "a.parquet"), longs(10, 20, 30))
	_, err = w.Append(ctx, bare)
	require.NoError(t, err)
	table := open(t, w.Location(), filepath.Join(dir, "overlays"))
	require.NoError(t, table.Mount(ctx))
	_, err = table.AddIndex(ctx, "bloom(v)")
	require.NoError(t, err)
	synced(t, table, skomer.SyncOptions{})
	w.Properties[meta.NameMappingProperty] = meta.NameMappingJSON(mapping("id"))
	require.NoError(t, w.Write(ctx))
	r := repaired(t, table, false)
	require.Equal(t, map[string]int{"leaf_mismatch": 1}, r.ByReason)
	require.Equal(t, 1, r.Sync.Artifacts)
	requireCovered(t, table)
	n, _ := count(t, table, skomer.Query{Where: "v = 2"})
	require.Equal(t, 1, n, "v is the ids now")
}

// TestScrub: damage that no check of a query sees, in the body of an artifact or in a data file under its tag, is found, withdrawn at once
// and built anew by the next sync; a scrub that ends at its limit is gone on with by the next one.
func TestScrub(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	table := s.mount(t, "ordered(v)")
	var bundles []string
	for i := range int64(4) {
		s.add(t, 10*i, 10*i+1, 10*i+2, 10*i+3)
		synced(t, table, skomer.SyncOptions{})
		bundles = append(bundles, s.bundles(t, bundles...)...)
	}
	r, err := s.open(t).Scrub(ctx, skomer.ScrubOptions{})
	require.NoError(t, err)
	require.True(t, r.Complete)
	require.Empty(t, r.Findings)
	require.Equal(t, 4, r.Artifacts)
	require.Equal(t, 4, r.Sources)
	require.Positive(t, r.BytesRead)
	derived := r.Derived

	damage(t, bundles[2], 4, 1)
	seen, found := 0, 0
	for step := 0; ; step++ {
		require.Less(t, step, 4+derived+1)
		r, err = s.open(t).Scrub(ctx, skomer.ScrubOptions{MaxBytes: 1})
		require.NoError(t, err)
		seen, found = seen+r.Artifacts, found+len(r.Findings)
		require.LessOrEqual(t, r.Artifacts+r.Derived, 1)
		if r.Complete {
			break
		}
	}
	require.Equal(t, 4, seen)
	require.Equal(t, 1, found)
	table = s.open(t)
	st, err := table.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(12), st.Indexes[0].Covered)
	require.Equal(t, 1, synced(t, table, skomer.SyncOptions{}).Artifacts)
	requireCovered(t, table)
	for i := range int64(4) {
		n, stats := count(t, table, skomer.Query{Where: "v = " + string(rune('0'+i)) + "2"})
		require.Equal(t, 1, n)
		require.Empty(t, stats.Rejected)
	}
	total := 0
	for range 40 {
		r, err = s.open(t).Scrub(ctx, skomer.ScrubOptions{Sample: 0.25})
		require.NoError(t, err)
		require.True(t, r.Complete)
		require.Empty(t, r.Findings)
		total += r.Artifacts
	}
	require.InDelta(t, 40, total, 30)
}

// TestReindex: artifacts are built anew while the old ones answer, those of one index or of all, and are replaced one by one.
func TestReindex(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	table := s.mount(t, "bloom(v)", "ordered(v)")
	for i := range int64(3) {
		s.add(t, 10*i, 10*i+1)
	}
	synced(t, table, skomer.SyncOptions{})
	r, err := table.Reindex(ctx, "", false, skomer.SyncOptions{})
	require.NoError(t, err)
	require.Zero(t, r.Artifacts, "everything is of the newest format")
	before := s.bundles(t)
	r, err = table.Reindex(ctx, "bloom(v)", true, skomer.SyncOptions{})
	require.NoError(t, err)
	require.Equal(t, 3, r.Artifacts)
	require.Len(t, s.bundles(t, before...), 1)
	requireCovered(t, s.open(t))
	st, err := table.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, 3, st.Indexes[0].Artifacts)
	r, err = table.Reindex(ctx, "", true, skomer.SyncOptions{})
	require.NoError(t, err)
	require.Equal(t, 4, r.Artifacts)
	for _, b := range before {
		require.NoError(t, os.Remove(b))
	}
	table = s.open(t)
	n, stats := count(t, table, skomer.Query{Where: "v = 11"})
	require.Equal(t, 1, n)
	require.Empty(t, stats.Rejected)
	_, err = table.Reindex(ctx, "bloom(w)", true, skomer.SyncOptions{})
	require.Error(t, err)
}

// bareFile is plain with a file without field ids.
func bareFile(t *testing.T, path string, rows []tabletest.Row) lakewrite.File {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	bare := &column.Schema{Fields: slices.Clone(idSchema.Fields)}
	for i := range bare.Fields {
		bare.Fields[i].ID = 0
	}
	require.NoError(t, tabletest.WriteParquet(path, bare, rows, tabletest.Layout{RowsPerGroup: 1000, PageBytes: 1 << 20, PageVersion: 1, Codec: tabletest.Uncompressed}))
	info, err := os.Stat(path)
	require.NoError(t, err)
	return lakewrite.File{Path: path, Format: facts.Parquet, Records: int64(len(rows)), Size: info.Size()}
}
