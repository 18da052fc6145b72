package skomer_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// declare adds indexes at random on columns that have none of the kind yet.
func declare(t *testing.T, table *skomer.Table, made *tabletest.Evolving, have map[string]bool, pick func() bool) {
	t.Helper()
	made.Schema().Walk(func(p column.Path) bool {
		for _, k := range kinds.All() {
			expr, known := fmt.Sprintf("%s(%s)", k.Name, quote(p)), fmt.Sprintf("%s %d", k.Name, p.Leaf().ID)
			if _, err := kinds.ParseExpr(expr, made.Schema()); err != nil || have[known] || !pick() {
				continue
			}
			have[known] = true
			if _, err := table.AddIndex(context.Background(), expr); err != nil {
				t.Fatalf("%s: %v", expr, err)
			}
		}
		return true
	})
}

// valuesAre requires the values of every column at the rows of an answer to be the oracle's.
func valuesAre(t *testing.T, table *skomer.Table, view tabletest.View, q skomer.Query, want map[string][]int, steps []string) {
	t.Helper()
	q.Select, q.Limit = []string{"_file", "_pos"}, -1
	for _, l := range view.Leaves {
		q.Select = append(q.Select, l.Path.Name())
	}
	rows := map[string][]tabletest.Row{}
	for _, f := range view.Files {
		rows[f.Path] = f.Rows
	}
	answer, err := table.Query(context.Background(), q)
	require.NoError(t, err)
	seen := 0
	require.NoError(t, answer.Each(context.Background(), func(b *skomer.Batch) error {
		for i := range b.Rows {
			file, _ := b.Cols[0].Value(i)
			pos, _ := b.Cols[1].Value(i)
			row := rows[file.S][pos.Int64()]
			for k, l := range view.Leaves {
				if got := b.Cols[k+2]; !sameCell(got, i, row[k]) {
					t.Fatalf("at %q %s, %s row %d: %s is %s and should be %+v\n%v", q.At, q.Where, filepath.Base(file.S), pos.Int64(), l.Path.Name(),
						text(got, i), row[k], steps)
				}
			}
			seen++
		}
		return nil
	}))
	require.Equal(t, total(want), seen)
}

func sameCell(v *skomer.Vector, i int, want tabletest.Cell) bool {
	if v.Null(i) || want.Null {
		return v.Null(i) == want.Null
	}
	if v.Type.Kind != column.List {
		got, ok := v.Value(i)
		return ok && (got == want.Val || got.IsNaN() && want.Val.IsNaN())
	}
	first, last := int(v.Off[i]), int(v.Off[i+1])
	if last-first != len(want.List) {
		return false
	}
	for k, x := range want.List {
		if !sameCell(v.Kids[0], first+k, x) {
			return false
		}
	}
	return true
}

// TestTransparencyUnderEvolution: for random histories of schema, partitioning, deletes, refs and snapshots, with indexes built
// before and after each change, every snapshot, branch and tag answers with indexes, without, and by full scan as the oracle does, which
// knows which field every column of every file was written as.
func TestTransparencyUnderEvolution(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	var asked, nonEmpty, past, files, opened, indexed, hidden int
	n := rounds(t, 8)
	for round := 0; round < n || hidden == 0 && round < 10*n; round++ { // on until a delete hid something
		dir := t.TempDir()
		made := tabletest.CreateEvolving(t, rng, filepath.Join(dir, "table"))
		made.Append(t, 3)
		table := open(t, made.Dir, filepath.Join(dir, "overlays"))
		require.NoError(t, table.Mount(ctx))
		have := map[string]bool{}
		for step := range 6 {
			declare(t, table, made, have, func() bool { return rng.IntN(4) == 0 })
			if rng.IntN(4) > 0 {
				report, err := table.Sync(ctx, skomer.SyncOptions{})
				require.NoError(t, err, "%v", made.Steps)
				for path, why := range report.Skipped {
					require.Equal(t, "not a Parquet file", why, "%s, %v", path, made.Steps)
				}
			}
			for k := range 8 {
				view := made.Current()
				if k%2 == 1 {
					view = made.Past()
				}
				e := view.Expr(rng.IntN(3))
				want := view.Answer(e)
				for _, q := range ways {
					q.Where, q.At = e.SQL(), view.At
					got, stats := positions(t, table, q)
					if describe(got) != describe(want) {
						t.Fatalf("round %d step %d at %q, NoIndex %v NoPrune %v Strict %v\n%s\n%s\n%v\nstats %+v", round, step, q.At,
							q.NoIndex, q.NoPrune, q.Strict, q.Where, difference(view.Table, got, want), made.Steps, stats)
					}
					if !q.NoIndex && !q.NoPrune {
						files, opened, indexed = files+stats.FilesTotal, opened+stats.FilesOpened, indexed+len(stats.IndexesUsed)
					}
				}
				q := ways[k%len(ways)]
				q.Where, q.At = e.SQL(), view.At
				valuesAre(t, table, view, q, want, made.Steps)
				for i := range view.Files {
					hidden += view.Files[i].Hidden()
				}
				asked++
				if view.At != "" {
					past++
				}
				if len(want) > 0 {
					nonEmpty++
				}
			}
			for _, id := range made.Expired() {
				_, err := table.Query(ctx, skomer.Query{At: strconv.FormatInt(id, 10), Limit: -1})
				require.True(t, fault.Is(err, fault.NotFound), "%v", err)
				require.ErrorContains(t, err, strconv.FormatInt(id, 10))
			}
			for range 1 + rng.IntN(4) {
				made.Evolve(t)
			}
			if rng.IntN(4) > 0 {
				made.Append(t, 2)
			}
		}
	}
	t.Logf("%d predicates, %d with rows, %d of the past, %d of %d files opened, %d index answers, %d rows hidden", asked, nonEmpty, past, opened, files,
		indexed, hidden)
	require.Positive(t, hidden)
	require.Greater(t, nonEmpty*5, asked)
	require.Greater(t, past*4, asked)
	require.Greater(t, files, opened)
	require.Positive(t, indexed)
}
