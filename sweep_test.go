package skomer_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/s3"
	"github.com/skomerdb/skomer/internal/store/s3/s3test"
)

// rewritten puts a file with other rows at a path. Its size may be another one.
func rewritten(t *testing.T, path string, v ...int64) {
	t.Helper()
	require.NoError(t, os.Remove(path))
	plain(t, path, longs(v...))
}

// overwriteAlike is rewritten with a file of the same size.
func overwriteAlike(t *testing.T, path string, v ...int64) {
	t.Helper()
	before, err := os.Stat(path)
	require.NoError(t, err)
	rewritten(t, path, v...)
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, before.Size(), after.Size(), "the test proves nothing")
}

// TestU06OverwrittenFilesAreSwept: after a tag sweep no index of any kind speaks for a file that was overwritten by one of the same size and
// row count, and the new rows are indexed. Only that file's artifacts are withdrawn, in one commit.
func TestU06OverwrittenFilesAreSwept(t *testing.T) {
	for _, expr := range []string{"zonemap(v)", "bloom(v)", "valueset(v)", "bitmap(v)", "ordered(v)"} {
		t.Run(expr, func(t *testing.T) {
			s := newSmall(t)
			table := s.mount(t, expr)
			path := s.add(t, 10, 20, 30, 40)
			s.add(t, 1, 2, 3, 4)
			synced(t, table, skomer.SyncOptions{})
			overwriteAlike(t, path, 50, 60, 20, 80)
			n, _ := count(t, table, skomer.Query{Where: "v = 60", Strict: true})
			require.Equal(t, 1, n, "strict")
			r := synced(t, table, skomer.SyncOptions{Sweep: true})
			require.Equal(t, skomer.Swept{Files: 2, Changed: 1, Withdrawn: 1}, *r.Swept)
			require.Positive(t, r.Artifacts)
			requireCovered(t, table)
			for where, want := range map[string]string{"v = 60": "f0000.parquet:[1]", "v = 30": "", "v = 20": "f0000.parquet:[2]", "v = 3": "f0001.parquet:[2]"} {
				got, stats := positions(t, table, skomer.Query{Where: where})
				require.Equal(t, want, describe(got), where)
				require.Empty(t, stats.Rejected)
				require.NotEmpty(t, stats.IndexesUsed)
			}
			r = synced(t, s.open(t), skomer.SyncOptions{Sweep: true})
			require.Equal(t, skomer.Swept{Files: 2}, *r.Swept)
			require.Zero(t, r.Artifacts)
		})
	}
}

// TestSweepRestamps: a file with another entity tag and the same content keeps its artifacts, under the new tag, without a build; so do files
// of one segment of which some changed and some did not.
func TestSweepRestamps(t *testing.T) {
	s := newSmall(t)
	table := s.mount(t, "bloom(v)", "ordered(v)", "zonemap(id)")
	a, b := s.add(t, 10, 20, 30, 40), s.add(t, 11, 21, 31, 41)
	s.add(t, 12, 22, 32, 42)
	synced(t, table, skomer.SyncOptions{})
	for _, path := range []string{a, b} {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.WriteFile(path, raw, 0o600))
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)))
	}
	_, stats := count(t, table, skomer.Query{Where: "v = 20"})
	require.NotEmpty(t, stats.Rejected)
	r := synced(t, s.open(t), skomer.SyncOptions{Sweep: true})
	require.Equal(t, skomer.Swept{Files: 3, Changed: 2, Restamped: 2}, *r.Swept)
	require.Zero(t, r.Artifacts)
	for _, where := range []string{"v = 20", "v = 21", "v = 22"} {
		n, stats := count(t, table, skomer.Query{Where: where, Strict: true})
		require.Equal(t, 1, n)
		require.Empty(t, stats.Rejected)
		require.Equal(t, 1, stats.FilesOpened)
	}
	// now one file of the segment has other rows: the segment is built anew
	overwriteAlike(t, b, 11, 21, 31, 77)
	r = synced(t, s.open(t), skomer.SyncOptions{Sweep: true})
	require.Equal(t, skomer.Swept{Files: 3, Changed: 1, Withdrawn: 3}, *r.Swept)
	requireCovered(t, table)
	n, _ := count(t, table, skomer.Query{Where: "v = 77"})
	require.Equal(t, 1, n)
}

// TestSweepOfMissingFiles: a file that the table lists and the store lacks is told of; the sweep and the sync go on.
func TestSweepOfMissingFiles(t *testing.T) {
	s := newSmall(t)
	table := s.mount(t, "bloom(v)")
	path := s.add(t, 10, 20)
	s.add(t, 1, 2)
	synced(t, table, skomer.SyncOptions{})
	require.NoError(t, os.Remove(path))
	r, err := table.Sync(context.Background(), skomer.SyncOptions{Sweep: true})
	require.NoError(t, err)
	require.Equal(t, 1, r.Swept.Missing)
	require.Contains(t, r.Skipped[path], "does not have it")
}

// TestSweepOnObjectStorage: on an S3 server a sweep lists where many files lie together, and finds the one that was overwritten by one of the
// same size and row count; without the permission to list, it asks for each.
func TestSweepOnObjectStorage(t *testing.T) {
	ctx := context.Background()
	for _, listing := range []bool{true, false} {
		var g guard
		g.noListing = !listing
		server := s3test.Start(t, g.around, "lake", "overlays")
		o := server.Options
		o.AccessKey = "writer"
		st := s3.New(o)
		dir := t.TempDir()
		w, err := lakewrite.Create(ctx, st, "s3://lake/table", lakewrite.Spec{Schema: idSchema})
		require.NoError(t, err)
		var files []lakewrite.File
		put := func(name string, v ...int64) lakewrite.File {
			local := filepath.Join(dir, name)
			_ = os.Remove(local)
			f := plain(t, local, longs(v...))
			raw, err := os.ReadFile(local)
			require.NoError(t, err)
			f.Path = "s3://lake/table/data/" + name
			require.NoError(t, st.Delete(ctx, []string{f.Path}))
			_, err = st.PutNew(ctx, f.Path, bytes.NewReader(raw))
			require.NoError(t, err)
			return f
		}
		for i := range int64(30) {
			files = append(files, put(strings.Repeat("x", int(i)+1)+".parquet", i, 1000+i))
		}
		_, err = w.Append(ctx, files...)
		require.NoError(t, err)
		c, err := skomer.New(remote(server.Options.Endpoint))
		require.NoError(t, err)
		table, err := c.Open(ctx, w.MetadataPath(), skomer.TableOptions{})
		require.NoError(t, err)
		t.Cleanup(table.Close)
		require.NoError(t, table.Mount(ctx))
		for _, expr := range []string{"bloom(v)", "ordered(v)"} {
			_, err = table.AddIndex(ctx, expr)
			require.NoError(t, err)
		}
		synced(t, table, skomer.SyncOptions{})
		changed := put("xxxxx.parquet", 4, 7777)
		require.Equal(t, files[4].Size, changed.Size, "the test proves nothing")
		n, _ := count(t, table, skomer.Query{Where: "v = 7777", Strict: true})
		require.Equal(t, 1, n)
		heads := g.heads.Load()
		r := synced(t, table, skomer.SyncOptions{Sweep: true})
		require.Equal(t, 30, r.Swept.Files)
		require.Equal(t, 1, r.Swept.Changed)
		require.Equal(t, 2, r.Swept.Withdrawn)
		if asked := g.heads.Load() - heads; listing {
			require.Less(t, asked, int64(15), "listing spares the heads")
		} else {
			require.GreaterOrEqual(t, asked, int64(30))
		}
		requireCovered(t, table)
		for where, want := range map[string]int{"v = 7777": 1, "v = 1004": 0, "v = 4": 1, "v = 1005": 1} {
			n, stats := count(t, table, skomer.Query{Where: where})
			require.Equal(t, want, n, where)
			require.Empty(t, stats.Rejected)
		}
	}
}
