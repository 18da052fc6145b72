package skomer_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/puffin"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
)

// recorded is a store that notes which bytes of which objects were read.
type recorded struct {
	store.Store
	mu   sync.Mutex
	read map[string][]bool // by key, per byte
}

func (s *recorded) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	out := s.Store.Fetch(ctx, reads)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range reads {
		if out[i].Err != nil {
			continue
		}
		spans := r.Spans
		if spans == nil {
			spans = []store.Span{{Len: int64(len(out[i].Data[0]))}}
		}
		for k, sp := range spans {
			if sp.Off < 0 { // a suffix: only heads are read so
				continue
			}
			end := int(sp.Off) + len(out[i].Data[k])
			if have := s.read[r.Key]; len(have) < end {
				s.read[r.Key] = append(have, make([]bool, end-len(have))...)
			}
			for at := int(sp.Off); at < end; at++ {
				s.read[r.Key][at] = true
			}
		}
	}
	return out
}

// ofEveryKind is a table whose overlay has objects of every sort that a sync writes.
type ofEveryKind struct {
	*smallTable
	record *recorded // of the reads of the table opened last
	values []int64
}

func newOfEveryKind(t *testing.T) *ofEveryKind {
	t.Helper()
	s := &ofEveryKind{smallTable: newSmall(t)}
	table := s.open(t)
	ctx := context.Background()
	require.NoError(t, table.Mount(ctx))
	for _, expr := range []string{"bloom(v)", "ordered(v)", "bitmap(v)", "zonemap(v)", "sketch(v)", "valueset(v) cap=2", "ordered(id, v)"} {
		_, err := table.AddIndex(ctx, expr)
		require.NoError(t, err)
	}
	for i := range int64(3) {
		var v []int64
		for k := range int64(400) {
			v = append(v, i+7*k*k)
		}
		s.add(t, v...)
		s.values = append(s.values, v...)
		synced(t, table, skomer.SyncOptions{})
	}
	_, err := table.Vacuum(ctx, skomer.VacuumOptions{Retain: 1, Grace: -1})
	require.NoError(t, err)
	return s
}

// open opens the table in a client of its own.
func (s *ofEveryKind) open(t *testing.T) *skomer.Table {
	t.Helper()
	record := &recorded{Store: local.New(), read: map[string][]bool{}}
	s.record = record
	files := lake.LocalFiles()
	c, err := skomer.New(skomer.Config{
		OverlayRoot: s.overlays(), MinPlannedFiles: -1, MinPlannedScanBytes: -1, CacheBytes: 32 << 20, MaxStaleness: 1,
	}.WithStores(files, func(location string) (store.Store, string, error) {
		_, key, err := files(location)
		return record, key, err
	}).WithSelectFrom(1))
	require.NoError(t, err)
	table, err := c.Open(context.Background(), s.Location(), skomer.TableOptions{})
	require.NoError(t, err)
	return tracked(t, table)
}

// named is the objects below the overlay without those that no version names: declarations, the hint, and other versions than the newest.
func (s *ofEveryKind) named(t *testing.T) map[string]string {
	t.Helper()
	out := contents(t, s.overlays())
	newest := ""
	for path := range out {
		if folderOf(path) == "versions" && (newest == "" || path < newest) { // their names descend
			newest = path
		}
	}
	maps.DeleteFunc(out, func(path, _ string) bool {
		folder := folderOf(path)
		return folder == "inflight" || filepath.Dir(filepath.Dir(path)) == s.overlays() || folder == "versions" && path != newest
	})
	return out
}

func folderOf(path string) string { return filepath.Base(filepath.Dir(path)) }

// objectSort is the sort of an object: where it lies, and in data what it is for.
func objectSort(path string) string {
	name := filepath.Base(path)
	switch folder := folderOf(path); {
	case folder != "data":
		return folder
	case strings.HasSuffix(name, ".facts"):
		return "facts"
	case strings.Contains(name, "-map"):
		return "file map"
	default:
		return "bundle"
	}
}

var everySort = []string{"bundle", "chunks", "facts", "file map", "refused", "stats", "versions"}

func (s *ofEveryKind) requireRight(t *testing.T, when string) {
	t.Helper()
	table := s.open(t)
	for _, v := range []int64{0, 1, 7, 9, 7 * 399 * 399, 5} {
		want := 0
		for _, x := range s.values {
			if x == v {
				want++
			}
		}
		got, _ := count(t, table, skomer.Query{Where: fmt.Sprintf("v = %d", v)})
		require.Equal(t, want, got, "%s: v = %d", when, v)
	}
}

func scrubbed(t *testing.T, table *skomer.Table) *skomer.ScrubReport {
	t.Helper()
	r, err := table.Scrub(context.Background(), skomer.ScrubOptions{})
	require.NoError(t, err)
	require.True(t, r.Complete)
	return r
}

// unnamed is the bytes of an object that no version names: the frames of Puffin files and, in bundles, their directory.
func unnamed(t *testing.T, path string, raw string) []bool {
	t.Helper()
	out := make([]bool, len(raw))
	if !strings.HasSuffix(path, ".puffin") {
		return out
	}
	for i := range out {
		out[i] = true
	}
	named := func(off, n int64) {
		for at := off; at < off+n; at++ {
			out[at] = false
		}
	}
	if objectSort(path) == "bundle" {
		b, err := bundle.Open(context.Background(), local.New(), path)
		require.NoError(t, err)
		for _, a := range b.Artifacts {
			for _, p := range []lineage.Place{a.Body, a.Root, a.Lineage} {
				named(p.Off, p.Len)
			}
		}
		return out
	}
	f, _, err := puffin.ParseFooter(path, []byte(raw), int64(len(raw)))
	require.NoError(t, err)
	for _, b := range f.Blobs {
		named(b.Offset, b.Length)
	}
	return out
}

// TestScrubReadsEveryByte: whatever the newest version names, scrub reads it, from storage and from the first byte to the last. A new sort of
// object that scrub forgets makes this test fail.
func TestScrubReadsEveryByte(t *testing.T) {
	s := newOfEveryKind(t)
	table := s.open(t)
	_, err := table.Status(context.Background())
	require.NoError(t, err)
	_, stats := count(t, table, skomer.Query{Where: "v = 7"}) // caches are warm
	require.NotEmpty(t, stats.IndexesUsed)
	s.record.mu.Lock()
	clear(s.record.read)
	s.record.mu.Unlock()
	objects := s.named(t)
	r := scrubbed(t, table)
	require.Empty(t, r.Findings)
	require.Positive(t, r.Derived)
	for path, raw := range objects {
		read, frame := s.record.read[path], unnamed(t, path, raw)
		for at := range raw {
			if !frame[at] && (at >= len(read) || !read[at]) {
				t.Errorf("%s: byte %d of %d was not read", path, at, len(raw))
				break
			}
		}
	}
	require.Equal(t, everySort, s.sorts(t))
}

// TestScrubFindsDamageAnywhere: a bit flips in an object of every sort, at random: answers stay right, scrub names the object, repair and
// sync heal it, and scrub is content again.
func TestScrubFindsDamageAnywhere(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	s := newOfEveryKind(t)
	for range rounds(t, 1) {
		for _, sort := range everySort {
			objects := s.named(t)
			maps.DeleteFunc(objects, func(path, _ string) bool { return objectSort(path) != sort })
			paths := slices.Sorted(maps.Keys(objects))
			require.NotEmpty(t, paths, sort)
			path := paths[rng.IntN(len(paths))]
			frame := unnamed(t, path, objects[path])
			at := rng.IntN(len(frame))
			for frame[at] {
				at = rng.IntN(len(frame))
			}
			what := fmt.Sprintf("%s, byte %d", path, at)
			if sort == "versions" {
				s.loseVersion(t, what)
				continue
			}
			damage(t, path, at, 1)
			s.requireRight(t, what)
			found := scrubbed(t, s.open(t)).Findings
			require.NotEmpty(t, found, what)
			for _, f := range found {
				if sort != "chunks" { // with a list what it lists is withdrawn
					require.Equal(t, path, f.Bundle, what)
				}
				require.Contains(t, []string{"corrupt", "unreadable"}, f.Reason, f.Detail)
			}
			require.True(t, slices.ContainsFunc(found, func(f skomer.Finding) bool { return f.Bundle == path }), what)
			s.requireRight(t, what+", scrubbed")
			_, err := s.open(t).Repair(ctx, false)
			require.NoError(t, err)
			_, err = s.open(t).Sync(ctx, skomer.SyncOptions{})
			require.NoError(t, err)
			table := s.open(t)
			require.Empty(t, scrubbed(t, table).Findings, what)
			s.requireCovered(t, table, what)
			_, err = table.Vacuum(ctx, skomer.VacuumOptions{Retain: 1, Grace: -1})
			require.NoError(t, err)
			s.requireRight(t, what+", healed")
			require.Equal(t, everySort, s.sorts(t), what)
		}
	}
}

// loseVersion damages the newest version: scrub and repair say so, and a recovery goes back to the one before.
func (s *ofEveryKind) loseVersion(t *testing.T, what string) {
	t.Helper()
	ctx := context.Background()
	warm := s.open(t)
	require.Empty(t, scrubbed(t, warm).Findings, "a version to go back from")
	for path, raw := range s.named(t) {
		if objectSort(path) == "versions" {
			damage(t, path, len(raw)/2, 1)
		}
	}
	s.requireRight(t, what)
	for _, table := range []*skomer.Table{warm, s.open(t)} {
		_, err := table.Scrub(ctx, skomer.ScrubOptions{})
		require.True(t, fault.Is(err, fault.Corrupt), err)
		_, err = table.Repair(ctx, false)
		require.True(t, fault.Is(err, fault.Corrupt), err)
	}
	_, err := s.open(t).Recover(ctx)
	require.NoError(t, err)
	synced(t, s.open(t), skomer.SyncOptions{})
	table := s.open(t)
	require.Empty(t, scrubbed(t, table).Findings, what)
	s.requireCovered(t, table, what)
}

func (s *ofEveryKind) requireCovered(t *testing.T, table *skomer.Table, what string) {
	t.Helper()
	status, err := table.Status(context.Background())
	require.NoError(t, err)
	require.Empty(t, status.Warnings, what)
	for _, x := range status.Indexes {
		if x.Kind != "valueset" { // which is refused
			require.Equal(t, x.Total, x.Covered, "%s: %s", what, x.Expr)
		}
	}
}

// sorts is those that the overlay has objects of.
func (s *ofEveryKind) sorts(t *testing.T) []string {
	t.Helper()
	seen := map[string]bool{}
	for path := range s.named(t) {
		seen[objectSort(path)] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// TestRepairDropsDamagedHeads: what a version names of derived objects and cannot be read any more is found by repair, too, and made anew
// at once.
func TestRepairDropsDamagedHeads(t *testing.T) {
	ctx := context.Background()
	s := newOfEveryKind(t)
	gone := 0
	for path := range s.named(t) {
		if sort := objectSort(path); sort == "facts" || sort == "file map" || sort == "stats" {
			require.NoError(t, os.Remove(path))
			gone++
		}
	}
	require.Positive(t, gone)
	s.requireRight(t, "without them")
	before := s.named(t)
	dry, err := s.open(t).Repair(ctx, true)
	require.NoError(t, err)
	require.Equal(t, before, s.named(t))
	kinds := map[string]int{}
	for _, f := range dry.Findings {
		kinds[f.Kind]++
		require.Equal(t, "unreadable", f.Reason)
	}
	require.Equal(t, []string{"facts", "filemap", "sketch"}, slices.Sorted(maps.Keys(kinds)))
	_, err = s.open(t).Repair(ctx, false)
	require.NoError(t, err)
	require.Equal(t, everySort, s.sorts(t))
	require.Empty(t, scrubbed(t, s.open(t)).Findings)
	s.requireRight(t, "repaired")
}
