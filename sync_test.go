package skomer_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/local"
)

// smallTable is a local table of files of longs and an overlay beside it.
type smallTable struct {
	*lakewrite.Table
	dir   string
	files int
}

func newSmall(t *testing.T) *smallTable {
	t.Helper()
	dir := t.TempDir()
	w, err := lakewrite.Create(context.Background(), local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
	require.NoError(t, err)
	return &smallTable{Table: w, dir: dir}
}

// add appends one data file to the table in one commit and returns its path.
func (s *smallTable) add(t *testing.T, v ...int64) string {
	t.Helper()
	path := filepath.Join(s.dir, "table", "data", fmt.Sprintf("f%04d.parquet", s.files))
	s.files++
	_, err := s.Append(context.Background(), plain(t, path, longs(v...)))
	require.NoError(t, err)
	return path
}

func (s *smallTable) overlays() string { return filepath.Join(s.dir, "overlays") }

func (s *smallTable) open(t *testing.T) *skomer.Table {
	t.Helper()
	return open(t, s.Location(), s.overlays())
}

// mount mounts the table and declares indexes.
func (s *smallTable) mount(t *testing.T, exprs ...string) *skomer.Table {
	t.Helper()
	table := s.open(t)
	require.NoError(t, table.Mount(context.Background()))
	for _, e := range exprs {
		_, err := table.AddIndex(context.Background(), e)
		require.NoError(t, err)
	}
	return table
}

func synced(t *testing.T, table *skomer.Table, o skomer.SyncOptions) *skomer.SyncReport {
	t.Helper()
	r, err := table.Sync(context.Background(), o)
	require.NoError(t, err)
	require.Empty(t, r.Skipped)
	return r
}

// requireCovered fails unless every index covers every row and nothing is rejected.
func requireCovered(t *testing.T, table *skomer.Table) {
	t.Helper()
	st, err := table.Status(context.Background())
	require.NoError(t, err)
	require.Empty(t, st.Rejected)
	require.Empty(t, st.Warnings)
	for _, x := range st.Indexes {
		require.Equal(t, x.Total, x.Covered, x.Expr)
	}
}

// TestSyncsShareWork: several syncs at once do not build the same things: together they read what one alone reads, every file has one
// artifact of every index, and each of them ends with everything covered.
func TestSyncsShareWork(t *testing.T) {
	ctx := context.Background()
	read := func(n int) (bytes int64, artifacts int) {
		s := newSmall(t)
		exprs := []string{"bloom(v)", "ordered(id)", "zonemap(v)"}
		table := s.mount(t, exprs...)
		for i := range int64(12) { // of different files, so that there are several units
			s.add(t, i, 2*i, 3*i)
			if i == 5 {
				synced(t, table, skomer.SyncOptions{})
			}
		}
		_, err := table.AddIndex(ctx, "valueset(v)")
		require.NoError(t, err)
		var mu sync.Mutex
		var all sync.WaitGroup
		for range n {
			own := s.open(t)
			all.Go(func() {
				r, err := own.Sync(ctx, skomer.SyncOptions{})
				mu.Lock()
				defer mu.Unlock()
				if err != nil || len(r.Skipped) > 0 {
					t.Error(r, err)
					return
				}
				bytes += r.BytesRead
				artifacts += r.Artifacts
			})
		}
		all.Wait()
		requireCovered(t, table)
		got, _ := positions(t, table, skomer.Query{Where: "v = 6"})
		require.Equal(t, "f0002.parquet:[2] f0003.parquet:[1] f0006.parquet:[0]", describe(got))
		return bytes, artifacts
	}
	alone, one := read(1)
	together, many := read(3)
	require.Equal(t, one, many)
	require.Equal(t, alone, together, "work was done twice")
}

// TestSyncStopsAtItsCost: a sync with a limit builds some units, says why it stopped and has cost less than the limit; syncing on goes on
// from there.
func TestSyncStopsAtItsCost(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	table := s.mount(t, "bloom(v)")
	var files []lakewrite.File
	for i := range int64(1100) {
		files = append(files, plain(t, filepath.Join(s.dir, "table", "data", fmt.Sprintf("f%04d.parquet", i)), longs(i)))
	}
	_, err := s.Append(ctx, files...)
	require.NoError(t, err)
	r, err := table.Sync(ctx, skomer.SyncOptions{MaxCost: 1e-9})
	require.NoError(t, err)
	require.Contains(t, r.Stopped, "next unit")
	require.Zero(t, r.Artifacts)
	limit := 0.001
	r, err = table.Sync(ctx, skomer.SyncOptions{MaxCost: limit, Workers: 1})
	require.NoError(t, err)
	require.Contains(t, r.Stopped, "next unit")
	require.Equal(t, 512, r.Artifacts)
	require.Less(t, r.Cost, limit)
	require.Positive(t, r.Cost)
	st, err := table.Status(ctx)
	require.NoError(t, err)
	require.True(t, st.LastSync.IsZero(), "a sync that stopped has not brought the overlay to the snapshot")
	r = synced(t, table, skomer.SyncOptions{MaxCost: 1})
	require.Empty(t, r.Stopped)
	require.Equal(t, 588, r.Artifacts)
	requireCovered(t, table)
}

// TestSyncStopsAtItsCoverage: of two indexes that cover nothing, units are built until both cover the share that was asked for.
func TestSyncStopsAtItsCoverage(t *testing.T) {
	s := newSmall(t)
	table := s.mount(t, "bloom(v)")
	for i := range int64(3) {
		s.add(t, i, i)
	}
	synced(t, table, skomer.SyncOptions{})
	for i := range int64(3) {
		s.add(t, 10+i)
	}
	r := synced(t, table, skomer.SyncOptions{Until: 60})
	require.Contains(t, r.Stopped, "66.7 %")
	require.Zero(t, r.Artifacts)
	r = synced(t, table, skomer.SyncOptions{Until: 90})
	require.Equal(t, 3, r.Artifacts)
	requireCovered(t, table)
}

// TestRefusedArtifactsAreRemembered: an artifact that is not worth keeping is not built again by later syncs, in other processes too, until
// its file changes.
func TestRefusedArtifactsAreRemembered(t *testing.T) {
	s := newSmall(t)
	table := s.mount(t, "valueset(v) cap=2")
	var many []int64
	for i := range int64(3000) {
		many = append(many, i*i)
	}
	path := s.add(t, many...)
	r := synced(t, table, skomer.SyncOptions{})
	require.Len(t, r.Declined, 1)
	require.Positive(t, r.BytesRead)
	for range 2 {
		r = synced(t, s.open(t), skomer.SyncOptions{})
		require.Zero(t, r.BytesRead)
		require.Empty(t, r.Declined)
	}
	rewritten(t, path, append(many[1:], 7)...)
	require.Zero(t, synced(t, s.open(t), skomer.SyncOptions{}).BytesRead, "nobody looked at the tag")
	r = synced(t, s.open(t), skomer.SyncOptions{Sweep: true})
	require.Positive(t, r.BytesRead)
	require.Len(t, r.Declined, 1)
	require.Zero(t, synced(t, s.open(t), skomer.SyncOptions{Sweep: true}).BytesRead)
	for i := range int64(20) { // more lists than an overlay keeps
		s.add(t, many[i:]...)
		synced(t, s.open(t), skomer.SyncOptions{})
	}
	r = synced(t, s.open(t), skomer.SyncOptions{})
	require.Zero(t, r.BytesRead)
}

// overtaken is a store behind whose back something happens after a read of a metadata file.
type overtaken struct {
	store.Store
	by   func()
	left int // reads until then
}

func (o *overtaken) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	out := o.Store.Fetch(ctx, reads)
	if o.by != nil && strings.HasSuffix(reads[0].Key, ".metadata.json") {
		if o.left--; o.left == 0 {
			o.by()
		}
	}
	return out
}

// TestSyncOfAnEmptyTableThatFills: a sync of no snapshot is none of another.
func TestSyncOfAnEmptyTableThatFills(t *testing.T) {
	for reads := range 4 {
		s := newSmall(t)
		s.mount(t, "bloom(v)")
		files := &overtaken{Store: local.New(), left: reads + 1}
		c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays(), MaxStaleness: time.Nanosecond}.WithStores(
			func(location string) (store.Store, string, error) { return files, location, nil }, lake.LocalFiles()))
		require.NoError(t, err)
		table, err := c.Open(t.Context(), s.Location(), skomer.TableOptions{})
		require.NoError(t, err)
		t.Cleanup(table.Close)
		files.by = func() { s.add(t, 1, 2) }
		indexed := 0
		for range 3 {
			r, err := table.Sync(t.Context(), skomer.SyncOptions{})
			require.NoError(t, err, "after %d reads", reads)
			indexed += r.FilesIndexed
		}
		require.Equal(t, 1, indexed, "after %d reads", reads)
	}
}

// TestFollow: an overlay follows its table: new files are indexed and removed ones left out without anybody asking; faults that pass are
// told and survived; cancelling ends it without an error; what cannot pass ends it with one.
func TestFollow(t *testing.T) {
	s := newSmall(t)
	s.mount(t, "bloom(v)", "ordered(v)")
	plainFiles := lake.LocalFiles()
	broken := faulty.New(local.New(), 1, faulty.Rule{Op: faulty.PutNew, Key: func(k string) bool { return strings.HasSuffix(k, ".puffin") }, Nth: 2, Err: faulty.Throttled})
	c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays(), MaxStaleness: time.Nanosecond, MinPlannedFiles: -1}.WithStores(plainFiles,
		func(location string) (store.Store, string, error) { return broken, location, nil }))
	require.NoError(t, err)
	table, err := c.Open(context.Background(), s.Location(), skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var swept, failed int
	done := make(chan error)
	go func() {
		done <- table.Follow(ctx, skomer.FollowOptions{Every: 5 * time.Millisecond, Synced: func(r *skomer.SyncReport, err error) {
			if err == nil && r.Swept != nil {
				swept++
			}
			if err != nil {
				failed++
			}
		}})
	}()
	await := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
			require.True(t, time.Now().Before(deadline), "never: "+what)
		}
	}
	covered := func() bool {
		st, err := s.open(t).Status(context.Background())
		require.NoError(t, err)
		return st.SyncedSnapshot == st.SnapshotID && st.Rows == st.Indexes[0].Covered && st.Rows == st.Indexes[1].Covered
	}
	for i := range int64(3) {
		s.add(t, i, 10+i)
		await("covered", covered)
	}
	_, err = s.Remove(context.Background(), filepath.Join(s.dir, "table", "data", "f0000.parquet"))
	require.NoError(t, err)
	await("synced", covered)
	versions := func() uint64 {
		st, err := s.open(t).Status(context.Background())
		require.NoError(t, err)
		return st.OverlayVersion
	}
	before := versions()
	time.Sleep(100 * time.Millisecond)
	require.Equal(t, before, versions(), "an idle follower makes versions")
	cancel()
	require.NoError(t, <-done)
	require.Equal(t, 1, failed)
	require.Equal(t, 1, swept)

	require.NoError(t, table.Unmount(context.Background()))
	require.Error(t, table.Follow(context.Background(), skomer.FollowOptions{Every: time.Millisecond}))
}

// TestStatusKnowsTheLastBuilds: the time of a backlog is by what this overlay's builds took, also for an index that is new.
func TestStatusKnowsTheLastBuilds(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	s.add(t, 1, 2, 3)
	table := s.mount(t, "bloom(v)")
	st, err := table.Status(ctx)
	require.NoError(t, err)
	require.Nil(t, st.Backlog.Pace)
	require.Positive(t, st.Backlog.Seconds.High)
	synced(t, table, skomer.SyncOptions{})
	_, err = table.AddIndex(ctx, "ordered(v)")
	require.NoError(t, err)
	s.add(t, 4, 5)
	st, err = s.open(t).Status(ctx)
	require.NoError(t, err)
	require.Equal(t, int64(3), st.Backlog.Pace.Rows)
	require.Positive(t, st.Backlog.Pace.Seconds)
	require.Positive(t, st.Backlog.Pace.Bytes)
	require.Positive(t, st.Backlog.Seconds.Low)
}
