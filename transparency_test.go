package skomer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// seeded is a generator whose seed is printed and can be set by SKOMER_SEED.
func seeded(t *testing.T) (*rand.Rand, uint64) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("replay: SKOMER_SEED=%d go test -run '^%s$' .", seed, t.Name())
	return rand.New(rand.NewPCG(seed, 1)), seed
}

// rounds is how many tables a random test makes: SKOMER_ROUNDS, else the default.
func rounds(t *testing.T, byDefault int) int {
	t.Helper()
	if s := os.Getenv("SKOMER_ROUNDS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return byDefault
}

// open opens a table with an overlay of its own, without a cost rule and without keeping anything between queries.
func open(t *testing.T, table, overlays string) *skomer.Table {
	t.Helper()
	c, err := skomer.New(skomer.Config{
		OverlayRoot: overlays, MaxStaleness: time.Nanosecond, MinPlannedFiles: -1, MinPlannedScanBytes: -1, CacheBytes: 32 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Open(context.Background(), table, skomer.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return tracked(t, out)
}

// opened is the tables of tests that still run.
var opened sync.Map

// tracked is a table that settle knows, until the test ends.
func tracked(t *testing.T, table *skomer.Table) *skomer.Table {
	t.Helper()
	opened.Store(table, nil)
	t.Cleanup(func() { opened.Delete(table); table.Close() })
	return table
}

// settle waits until no tracked table writes below a folder any more: heads are written behind commits. It must not run beside a commit there.
func settle(dir string) {
	opened.Range(func(key, _ any) bool {
		if table := key.(*skomer.Table); strings.HasPrefix(table.Overlay(), dir) {
			table.Close()
		}
		return true
	})
}

// declarations is index declarations that the schema allows, at random.
func declarations(rng *rand.Rand, s *column.Schema) []string {
	var out, names []string
	s.Walk(func(p column.Path) bool {
		if _, err := kinds.ParseExpr(fmt.Sprintf("ordered(%s)", quote(p)), s); err == nil {
			names = append(names, quote(p))
		}
		for _, k := range kinds.All() {
			expr := fmt.Sprintf("%s(%s)", k.Name, quote(p))
			if _, err := kinds.ParseExpr(expr, s); err == nil && rng.IntN(3) == 0 {
				out = append(out, expr)
			}
		}
		return true
	})
	for range 2 {
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		out = append(out, fmt.Sprintf("ordered(%s)", strings.Join(names[:min(len(names), 2+rng.IntN(2))], ", ")))
	}
	return out
}

func quote(p column.Path) string { return `"` + p.Name() + `"` }

// positions reads an answer as positions by file.
func positions(t *testing.T, table *skomer.Table, q skomer.Query) (map[string][]int, skomer.Stats) {
	t.Helper()
	q.Select, q.Limit = []string{"_file", "_pos", "id"}, -1
	rows, err := table.Query(context.Background(), q)
	if err != nil {
		t.Fatalf("%s: %v", q.Where, err)
	}
	out := map[string][]int{}
	err = rows.Each(context.Background(), func(b *skomer.Batch) error {
		for i := range b.Rows {
			file, _ := b.Cols[0].Value(i)
			pos, _ := b.Cols[1].Value(i)
			out[file.S] = append(out[file.S], int(pos.Int64()))
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", q.Where, err)
	}
	return out, rows.Stats()
}

func describe(answer map[string][]int) string {
	var parts []string
	for f, rows := range answer {
		parts = append(parts, fmt.Sprintf("%s:%v", filepath.Base(f), rows))
	}
	sort.Strings(parts)
	return strings.Join(parts, " ")
}

// difference tells the first row in which two answers differ, with its values.
func difference(table *tabletest.Table, got, want map[string][]int) string {
	for _, f := range table.Files {
		have, should := map[int]bool{}, map[int]bool{}
		for _, p := range got[f.Path] {
			have[p] = true
		}
		for _, p := range want[f.Path] {
			should[p] = true
		}
		for pos, row := range f.Rows {
			if have[pos] == should[pos] {
				continue
			}
			var values []string
			if f.Deleted(pos) {
				values = append(values, "deleted")
			}
			for i, l := range table.Leaves {
				values = append(values, fmt.Sprintf("%s=%+v", l.Path.Name(), row[i]))
			}
			return fmt.Sprintf("%s row %d: in answer %v, should be %v: %s", filepath.Base(f.Path), pos, have[pos], should[pos], strings.Join(values, ", "))
		}
	}
	return "other order, or rows of another file: " + describe(got) + " for " + describe(want)
}

// TestTransparency is the first promise: for random tables, predicates and subsets of indexes, the answer with indexes, the
// answer without, the answer of a full scan and the oracle's are one.
func TestTransparency(t *testing.T) {
	rng, _ := seeded(t)
	const predicates = 40
	var asked, nonEmpty, files, opened, indexed, hidden, deleteFiles int
	n := rounds(t, 12)
	for round := 0; round < n || (hidden == 0 || deleteFiles == 0) && round < 10*n; round++ { // on until a delete file was read
		dir := t.TempDir()
		made := tabletest.Create(t, rng, filepath.Join(dir, "table"))
		made.Append(t, 1+rng.IntN(5), 400)
		if rng.IntN(2) == 0 {
			made.Delete(t)
		}
		table := open(t, made.Dir, filepath.Join(dir, "overlays"))
		ctx := context.Background()
		if err := table.Mount(ctx); err != nil {
			t.Fatal(err)
		}
		for _, expr := range declarations(rng, made.Schema) {
			if _, err := table.AddIndex(ctx, expr); err != nil {
				t.Fatalf("%s: %v", expr, err)
			}
		}
		for step := range 3 {
			if rng.IntN(3) == 0 { // nothing is in memory, only what is in the overlay
				table = open(t, made.Dir, filepath.Join(dir, "overlays"))
			}
			if rng.IntN(4) > 0 {
				if report, err := table.Sync(ctx, skomer.SyncOptions{}); err != nil || len(report.Skipped) > 0 {
					t.Fatal(report, err)
				}
			}
			for range predicates / 3 {
				e := made.Expr(rng.IntN(4))
				want := made.Answer(e)
				for _, q := range []skomer.Query{
					{Where: e.SQL()}, {Where: e.SQL(), NoIndex: true}, {Where: e.SQL(), NoPrune: true}, {Where: e.SQL(), Strict: true},
				} {
					got, stats := positions(t, table, q)
					if describe(got) != describe(want) {
						t.Fatalf("round %d step %d, NoIndex %v NoPrune %v Strict %v\n%s\n%s\nstats %+v",
							round, step, q.NoIndex, q.NoPrune, q.Strict, q.Where, difference(made, got, want), stats)
					}
					if len(stats.Rejected) > 0 {
						t.Fatalf("artifacts of an unchanged table were rejected: %v", stats.Rejected)
					}
					rows, err := table.Query(ctx, skomer.Query{Where: q.Where, NoIndex: q.NoIndex, NoPrune: q.NoPrune, Strict: q.Strict, Limit: -1})
					if err != nil {
						t.Fatal(err)
					}
					if n, err := rows.Count(ctx); err != nil || n != int64(total(want)) {
						t.Fatalf("%s: counted %d, want %d (%v)", q.Where, n, total(want), err)
					}
					if !q.NoIndex && !q.NoPrune {
						files += stats.FilesTotal
						opened += stats.FilesOpened
						deleteFiles += stats.DeleteFiles
						indexed += len(stats.IndexesUsed)
					}
				}
				asked++
				for i := range made.Files {
					hidden += made.Files[i].Hidden()
				}
				if len(want) > 0 {
					nonEmpty++
				}
			}
			made.Append(t, 1+rng.IntN(2), 200)
			for rng.IntN(2) == 0 {
				made.Delete(t)
			}
			if rng.IntN(3) == 0 {
				made.Remove(t)
			}
		}
	}
	t.Logf("%d predicates, %d with rows, %d of %d files opened, %d index answers, %d rows hidden, %d delete files read",
		asked, nonEmpty, opened, files, indexed, hidden, deleteFiles)
	if hidden == 0 || deleteFiles == 0 {
		t.Error("nothing was ever deleted")
	}
	if nonEmpty*10 < asked*3 {
		t.Errorf("only %d of %d answers hold rows", nonEmpty, asked)
	}
	if (files-opened)*10 < files*3 {
		t.Errorf("only %d of %d files were ruled out", files-opened, files)
	}
	if indexed == 0 {
		t.Error("no index ever spoke")
	}
}

func total(answer map[string][]int) int {
	n := 0
	for _, rows := range answer {
		n += len(rows)
	}
	return n
}
