package skomer_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// TestU01CompactionsAreCarried: compactions of random tables that keep the rows of whole files in some order are carried over where the kind
// can merge, and every answer is what it is without an index; compactions that change a row, drop one, or change the order of rows in a
// file are built anew. No wrong "no" in either.
func TestU01CompactionsAreCarried(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	var carried, built, kept, changed int
	for round := range rounds(t, 10) {
		dir := t.TempDir()
		made := tabletest.Create(t, rng, filepath.Join(dir, "table"))
		made.Append(t, 2+rng.IntN(4), 300)
		table := open(t, made.Dir, filepath.Join(dir, "overlays"))
		require.NoError(t, table.Mount(ctx))
		exprs := declarations(rng, made.Schema)
		for _, expr := range append(exprs, "ordered(id)", "bitmap(id)") {
			_, err := table.AddIndex(ctx, expr)
			require.NoError(t, err)
		}
		synced(t, table, skomer.SyncOptions{})
		if rng.IntN(3) == 0 {
			made.Append(t, 1, 100) // which is in no index
		}
		mutated := made.Compact(t, rng.IntN(3) == 0)
		r := synced(t, table, skomer.SyncOptions{})
		carried, built = carried+r.Carried, built+r.Artifacts-r.Carried
		if mutated {
			changed++
		} else {
			kept++
		}
		requireCoveredButRefused(t, table, r)
		for range 12 {
			e := made.Expr(rng.IntN(3))
			want := made.Answer(e)
			for _, q := range []skomer.Query{{Where: e.SQL()}, {Where: e.SQL(), Strict: true}} {
				got, stats := positions(t, table, q)
				require.Equal(t, describe(want), describe(got), "round %d: %s\n%s", round, q.Where, difference(made, got, want))
				require.Empty(t, stats.Rejected, q.Where)
			}
		}
	}
	t.Logf("%d artifacts carried, %d built, %d plain rewrites, %d that changed rows", carried, built, kept, changed)
	require.Positive(t, carried)
	require.Positive(t, built)
}

// requireCoveredButRefused is requireCovered but for indexes of which artifacts were not worth keeping.
func requireCoveredButRefused(t *testing.T, table *skomer.Table, r *skomer.SyncReport) {
	t.Helper()
	st, err := table.Status(context.Background())
	require.NoError(t, err)
	for _, x := range st.Indexes {
		if r.Declined[x.ID] == "" {
			require.Equal(t, x.Total, x.Covered, x.Expr)
		}
	}
}

// TestU09UpdatesAreNotCarried: files rewritten by updates, overwrites, sorts and deletes are built anew, whatever the snapshot calls itself;
// the same rows in one file, in another order of files, are carried.
func TestU09UpdatesAreNotCarried(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name    string
		rows    [][2]int64 // id, v
		carried bool
	}{
		{"the same", [][2]int64{{0, 10}, {1, 20}, {0, 30}, {1, 40}}, true},
		{"in another order of files", [][2]int64{{0, 30}, {1, 40}, {0, 10}, {1, 20}}, true},
		{"one value updated", [][2]int64{{0, 10}, {1, 20}, {0, 31}, {1, 40}}, false},
		{"sorted", [][2]int64{{0, 10}, {0, 30}, {1, 20}, {1, 40}}, false},
		{"a row deleted", [][2]int64{{0, 10}, {1, 20}, {0, 30}}, false},
		{"a row twice", [][2]int64{{0, 10}, {1, 20}, {1, 20}, {0, 30}, {1, 40}}, false},
		{"one file only", [][2]int64{{0, 30}, {1, 40}}, true},
		{"one file twice", [][2]int64{{0, 30}, {1, 40}, {0, 30}, {1, 40}}, false},
	} {
		for _, operation := range []string{"replace", "overwrite"} {
			t.Run(c.name+" "+operation, func(t *testing.T) {
				s := newSmall(t)
				table := s.mount(t, "ordered(v)", "bitmap(v)")
				a, b := s.add(t, 10, 20), s.add(t, 30, 40)
				synced(t, table, skomer.SyncOptions{})
				var rows []tabletest.Row
				for _, r := range c.rows {
					rows = append(rows, longs(0, r[1])[1])
					rows[len(rows)-1][0] = longs(0, 0)[r[0]][0]
				}
				f := plain(t, filepath.Join(s.dir, "table", "data", "new.parquet"), rows)
				_, err := s.Commit(ctx, lakewrite.Change{Add: []lakewrite.File{f}, Remove: []string{a, b}, Operation: operation})
				require.NoError(t, err)
				r := synced(t, table, skomer.SyncOptions{})
				require.Equal(t, c.carried, r.Carried > 0, "%d carried of %d", r.Carried, r.Artifacts)
				require.Equal(t, 2, r.Artifacts)
				requireCovered(t, table)
				for v := range int64(50) {
					want := 0
					for _, row := range c.rows {
						if row[1] == v {
							want++
						}
					}
					n, stats := count(t, table, skomer.Query{Where: fmt.Sprintf("v = %d", v)})
					require.Equal(t, want, n, v)
					require.Empty(t, stats.Rejected)
				}
				again, err := s.open(t).Scrub(ctx, skomer.ScrubOptions{})
				require.NoError(t, err)
				require.Empty(t, again.Findings, "what was carried is as good as what is built")
			})
		}
	}
}
