package skomer_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// TestU04EveryMaintenanceOrderKeepsAnswers: appends, deletes, removals, syncs and consolidations in any order, and the indexes answer as a
// full scan and the oracle do.
func TestU04EveryMaintenanceOrderKeepsAnswers(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	merges, segments, indexed := 0, 0, 0
	for round := range rounds(t, 2) {
		dir := t.TempDir()
		made := tabletest.Create(t, rng, filepath.Join(dir, "table"))
		made.Append(t, 1, 60)
		table := open(t, made.Dir, filepath.Join(dir, "overlays"))
		require.NoError(t, table.Mount(ctx))
		for _, expr := range append(declarations(rng, made.Schema), "ordered(id)", "bloom(id)") {
			_, err := table.AddIndex(ctx, expr)
			require.NoError(t, err, expr)
		}
		for step := range 36 {
			switch {
			case step < 20 || rng.IntN(3) == 0:
				made.Append(t, 1, 60)
			case rng.IntN(3) == 0 && len(made.Files) > 2:
				made.Remove(t)
			default:
				made.Delete(t)
			}
			if step < 20 || rng.IntN(2) == 0 {
				report, err := table.Sync(ctx, skomer.SyncOptions{})
				require.NoError(t, err)
				require.Empty(t, report.Skipped)
			}
			if step%7 == 6 {
				report, err := table.Consolidate(ctx, false)
				require.NoError(t, err)
				require.Empty(t, report.PassedOver)
				merges, segments = merges+report.Merges, segments+report.Segments
			}
			for range 3 {
				e := made.Expr(rng.IntN(4))
				want := made.Answer(e)
				for _, q := range []skomer.Query{{Where: e.SQL()}, {Where: e.SQL(), NoPrune: true}} {
					got, stats := positions(t, table, q)
					if describe(got) != describe(want) {
						t.Fatalf("round %d step %d, NoPrune %v\n%s\n%s\nstats %+v", round, step, q.NoPrune, q.Where, difference(made, got, want), stats)
					}
					indexed += len(stats.IndexesUsed)
				}
			}
		}
		status, err := table.Consolidate(ctx, true)
		require.NoError(t, err)
		require.Less(t, status.BundlesBefore, 16)
	}
	require.NotZero(t, indexed)
	t.Logf("%d merges by hand, of %d segments", merges, segments)
}

// tiny is a table of n files in as many bundles.
func tiny(t *testing.T, n int, exprs ...string) (*smallTable, *skomer.Table) {
	t.Helper()
	s := newSmall(t)
	s.add(t, 0)
	table := s.mount(t, exprs...)
	for i := range n {
		_, err := table.Sync(context.Background(), skomer.SyncOptions{})
		require.NoError(t, err)
		if i+1 < n {
			s.add(t, int64(10*i+10), int64(10*i+11), 5)
		}
	}
	return s, table
}

func idsWhere(t *testing.T, table *skomer.Table, where string, noIndex bool) []string {
	t.Helper()
	answer, _ := positions(t, table, skomer.Query{Where: where, NoIndex: noIndex})
	var out []string
	for file, rows := range answer {
		out = append(out, fmt.Sprintf("%s %v", filepath.Base(file), rows))
	}
	slices.Sort(out)
	return out
}

// TestU03MergeRefusesOtherIdentities: a data file that was overwritten has artifacts of both incarnations; they never become one segment, and
// look-ups give what a scan gives.
func TestU03MergeRefusesOtherIdentities(t *testing.T) {
	ctx := context.Background()
	s, table := tiny(t, 3, "ordered(id)", "bloom(id)")
	path := filepath.Join(s.dir, "table", "data", "f0001.parquet")
	_, err := s.Remove(ctx, path)
	require.NoError(t, err)
	_, err = s.Append(ctx, plain(t, path, longs(10, 77, 78, 79)))
	require.NoError(t, err)
	for i := range 14 {
		_, err := table.Sync(ctx, skomer.SyncOptions{})
		require.NoError(t, err)
		s.add(t, int64(100+i), 5)
	}
	_, err = table.Consolidate(ctx, false)
	require.NoError(t, err)
	after, err := table.Consolidate(ctx, true)
	require.NoError(t, err)
	require.Less(t, after.BundlesBefore, 8)
	for _, where := range []string{"id = 77", "id = 11", "id = 10", "id = 5", "id = 20", "id = 104", "id > 70"} {
		want := idsWhere(t, table, where, true)
		require.Equal(t, want, idsWhere(t, table, where, false), where)
	}
}

// Two consolidations at once: one of them wins, nothing is lost, and a dropped index stays dropped.
func TestConsolidationsRace(t *testing.T) {
	ctx := context.Background()
	s, table := tiny(t, 15, "ordered(id)", "zonemap(id)")
	x, err := table.AddIndex(ctx, "bloom(id)")
	require.NoError(t, err)
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	other := s.open(t)
	var wait sync.WaitGroup
	errs := make([]error, 3)
	wait.Go(func() { _, errs[0] = table.Consolidate(ctx, false) })
	wait.Go(func() { _, errs[1] = other.Consolidate(ctx, false) })
	wait.Go(func() { _, errs[2] = s.open(t).DropIndex(ctx, x.ID) })
	wait.Wait()
	require.Equal(t, make([]error, 3), errs)
	fresh := s.open(t)
	list, err := fresh.Indexes(ctx)
	require.NoError(t, err)
	require.Len(t, list, 2)
	for i := range list {
		require.Equal(t, list[i].Total, list[i].Covered, list[i].Expr)
	}
	for _, where := range []string{"id = 5", "id = 21", "id > 40"} {
		require.Equal(t, idsWhere(t, fresh, where, true), idsWhere(t, fresh, where, false), where)
	}
}
