package skomer_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store/local"
)

// TestShortcutsChangeNothing: of two overlays of one table, one is synced by processes that know nothing and look at what came, where they may,
// the other by such that look at every file. After each step of a random history both hold the same: artifacts, bundles, file maps, facts,
// refusals, and the same notion of the table. SKOMER_ROUNDS makes more histories.
func TestShortcutsChangeNothing(t *testing.T) {
	rng, _ := seeded(t)
	took := map[string]int{}
	for range rounds(t, 2) {
		historyOfSyncs(t, rng, 40, took)
	}
	t.Logf("ways: %v", took)
	require.Positive(t, took[""], "no sync took the shortcut")
}

// twins is a table with two overlays.
type twins struct {
	*smallTable
	roots   [2]string
	indexes []string
	live    []string
	schema  int
}

func (w *twins) process(t *testing.T, n int) *skomer.Table {
	t.Helper()
	c, err := skomer.New(skomer.Config{OverlayRoot: w.roots[n], MaxStaleness: time.Nanosecond}.WithSelectFrom(6).WithWholeUpTo(-1))
	require.NoError(t, err)
	table, err := c.Open(context.Background(), w.Location(), skomer.TableOptions{})
	require.NoError(t, err)
	return table
}

// both does something to both overlays, each in a process of its own.
func (w *twins) both(t *testing.T, f func(table *skomer.Table, n int)) {
	t.Helper()
	for n := range w.roots {
		table := w.process(t, n)
		f(table, n)
		table.Close()
	}
}

func historyOfSyncs(t *testing.T, rng *rand.Rand, steps int, took map[string]int) {
	t.Helper()
	ctx := context.Background()
	w := &twins{smallTable: newSmall(t)}
	w.roots = [2]string{filepath.Join(w.dir, "short"), filepath.Join(w.dir, "whole")}
	w.grow(t, rng, 3)
	w.both(t, func(table *skomer.Table, _ int) { require.NoError(t, table.Mount(ctx)) })
	w.declare(t, "zonemap(v)")
	w.declare(t, "valueset(v) cap=64")
	for step := range steps {
		what := w.step(t, rng)
		cost := 0.0
		if rng.IntN(12) == 0 {
			cost = 0.0000001
		}
		var reports [2]*skomer.SyncReport
		w.both(t, func(table *skomer.Table, n int) {
			r, err := table.Sync(ctx, skomer.SyncOptions{Whole: n == 1, MaxCost: cost, Workers: 1})
			require.NoError(t, err, "step %d, %s", step, what)
			reports[n] = r
		})
		took[reports[0].Whole]++
		a, b := reports[0], reports[1]
		require.Equal(t, []any{b.SnapshotID, b.FilesIndexed, b.Artifacts, b.Bundles, b.Skipped, len(b.Declined), b.Stopped == ""},
			[]any{a.SnapshotID, a.FilesIndexed, a.Artifacts, a.Bundles, a.Skipped, len(a.Declined), a.Stopped == ""}, "step %d, %s, %q", step, what, a.Whole)
		require.Equal(t, w.contents(t, 1), w.contents(t, 0), "step %d, %s, %q", step, what, a.Whole)
	}
}

// grow appends some files in one commit or more.
func (w *twins) grow(t *testing.T, rng *rand.Rand, most int) {
	t.Helper()
	for range 1 + rng.IntN(most) {
		var v []int64
		for range 1 + rng.IntN(200) {
			v = append(v, rng.Int64N(400))
		}
		w.live = append(w.live, w.add(t, v...))
	}
}

func (w *twins) declare(t *testing.T, expr string) {
	t.Helper()
	w.indexes = append(w.indexes, expr)
	w.both(t, func(table *skomer.Table, _ int) {
		_, err := table.AddIndex(context.Background(), expr)
		require.NoError(t, err)
	})
}

// step changes the table or the declarations.
func (w *twins) step(t *testing.T, rng *rand.Rand) string {
	t.Helper()
	ctx := context.Background()
	pick := func() string {
		i := rng.IntN(len(w.live))
		path := w.live[i]
		w.live = slices.Delete(w.live, i, i+1)
		return path
	}
	switch n := rng.IntN(40); {
	case n == 0 && len(w.live) > 2:
		_, err := w.Remove(ctx, pick())
		require.NoError(t, err)
		return "remove"
	case n == 1 && len(w.live) > 2:
		old := pick()
		path := filepath.Join(w.dir, "table", "data", fmt.Sprintf("r%04d.parquet", w.files))
		w.files++
		_, err := w.Replace(ctx, []string{old}, plain(t, path, longs(1, 2, 3)))
		require.NoError(t, err)
		w.live = append(w.live, path)
		return "rewrite"
	case n == 2:
		w.schema++
		fields := slices.Clone(w.Schemas[w.CurrentSchema].Fields)
		fields = append(fields, column.Field{ID: 100 + w.schema, Name: fmt.Sprintf("c%d", w.schema), Type: column.Of(column.Long)})
		require.NoError(t, w.SetSchema(ctx, &column.Schema{ID: w.schema, Fields: fields}))
		return "schema"
	case n == 3:
		for _, expr := range []string{"bloom(v)", "bitmap(v)", "ordered(v)"} {
			if !slices.Contains(w.indexes, expr) {
				w.declare(t, expr)
				return "add " + expr
			}
		}
		return "nothing"
	case n == 4 && len(w.indexes) > 2:
		expr := w.indexes[len(w.indexes)-1]
		w.indexes = w.indexes[:len(w.indexes)-1]
		w.both(t, func(table *skomer.Table, _ int) {
			_, err := table.DropIndex(ctx, expr)
			require.NoError(t, err)
		})
		return "drop " + expr
	case n == 5 && len(w.Snapshots) > 3:
		back := w.Snapshots[len(w.Snapshots)-2].ID
		require.NoError(t, w.SetCurrent(ctx, back))
		w.live = nil
		for _, m := range w.Snapshots[len(w.Snapshots)-2].Manifests {
			for _, e := range m.Entries {
				w.live = append(w.live, e.File.Path)
			}
		}
		return "rollback"
	case n == 6:
		w.both(t, func(table *skomer.Table, _ int) {
			_, err := table.Consolidate(ctx, false)
			require.NoError(t, err)
		})
		return "consolidate"
	case n == 7:
		return "nothing"
	case n == 8 && len(w.live) > 1: // listed twice
		path := w.live[rng.IntN(len(w.live))]
		for _, m := range w.Snapshots[len(w.Snapshots)-1].Manifests {
			for _, e := range m.Entries {
				if e.File.Path == path {
					_, err := w.Append(ctx, e.File)
					require.NoError(t, err)
					return "again"
				}
			}
		}
	}
	w.grow(t, rng, 3)
	return "append"
}

// contents is what an overlay holds, without names that are random, times, and what only later syncs look at.
func (w *twins) contents(t *testing.T, n int) []string {
	t.Helper()
	ctx := context.Background()
	dirs, err := filepath.Glob(filepath.Join(w.roots[n], "*"))
	require.NoError(t, err)
	require.Len(t, dirs, 1)
	v, err := overlay.Open(local.New(), dirs[0], overlay.Options{}).Latest(ctx)
	require.NoError(t, err)
	require.Empty(t, v.Warnings())
	u := v.Upstream()
	u.LastSyncMs = 0
	out := []string{fmt.Sprintf("%+v", u)}
	bundles := map[string][]string{}
	v.Each(func(a overlay.ArtifactInfo) bool {
		paths, sum, err := v.Paths(ctx, a.At)
		require.NoError(t, err)
		d := v.Indexes()[a.Index]
		bundles[a.Bundle] = append(bundles[a.Bundle], fmt.Sprintf("artifact %s%v rows %d %v root %d body %x", d.Kind, d.Params, a.Rows, bases(paths), a.Root.Len, sum))
		return true
	})
	for _, list := range bundles {
		slices.Sort(list)
		sum := sha256.Sum256([]byte(strings.Join(list, "; ")))
		out = append(out, fmt.Sprintf("bundle of %d, %x", len(list), sum[:6]))
	}
	for _, c := range v.Chunks() {
		out = append(out, fmt.Sprintf("list of %d, %d ended", c.Artifacts, c.Dead))
	}
	for _, e := range v.EveryDerived() {
		what := e.Kind
		switch e.Kind {
		case maintain.RollKind:
			continue
		case filemap.Kind:
			m, err := filemap.ParseMeta(e.Name, e.Meta)
			require.NoError(t, err)
			what += fmt.Sprintf(" keys %d files %d invalid %v sequence %d", m.Keys, m.Files, m.Invalid, m.Sequence)
		case maintain.FactsKind:
			what += " " + filepath.Base(e.Name)
		default:
			what += fmt.Sprintf(" of %d bytes", e.Len)
		}
		out = append(out, what)
	}
	slices.Sort(out)
	return out
}

func bases(paths []string) (out []string) {
	for _, p := range paths {
		out = append(out, filepath.Base(p))
	}
	return out
}
