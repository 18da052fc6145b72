package skomer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// syncChild is the table that a child process of this test binary syncs until it is killed.
const syncChild = "SKOMER_TEST_SYNC_CHILD"

func TestMain(m *testing.M) {
	if spec := os.Getenv(syncChild); spec != "" {
		table, overlays, _ := strings.Cut(spec, "|")
		if err := syncOnce(table, overlays); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if setting := os.Getenv(lifeChild); setting != "" {
		if err := serveLife(setting, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func syncOnce(table, overlays string) error {
	c, err := skomer.New(skomer.Config{OverlayRoot: overlays, Workers: 2})
	if err != nil {
		return err
	}
	t, err := c.Open(context.Background(), table, skomer.TableOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	_, err = t.Sync(context.Background(), skomer.SyncOptions{})
	return err
}

// TestKilledSync kills real sync processes at random moments: whatever was published is whole, answers stay right at every
// moment, and syncing on completes the coverage.
func TestKilledSync(t *testing.T) {
	rng, _ := seeded(t)
	for range rounds(t, 3) {
		dir := t.TempDir()
		made := tabletest.Create(t, rng, filepath.Join(dir, "table"))
		for range 4 {
			made.Append(t, 6, 300)
		}
		overlays := filepath.Join(dir, "overlays")
		table := open(t, made.Dir, overlays)
		ctx := context.Background()
		if err := table.Mount(ctx); err != nil {
			t.Fatal(err)
		}
		kills := 0
		for step := range 6 {
			for _, expr := range declarations(rng, made.Schema) {
				if _, err := table.AddIndex(ctx, expr); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), syncChild+"="+made.Dir+"|"+overlays)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(rng.IntN(800)) * time.Millisecond)
			_ = cmd.Process.Kill()
			var exit *exec.ExitError
			if err := cmd.Wait(); errors.As(err, &exit) && exit.ExitCode() == -1 {
				kills++
			}
			compare(t, rng, made, table, fmt.Sprintf("after kill %d", step))
		}
		if err := syncOnce(made.Dir, overlays); err != nil {
			t.Fatal(err)
		}
		status, err := table.Status(ctx)
		if err != nil || len(status.Warnings) > 0 {
			t.Fatal(status, err)
		}
		for _, x := range status.Indexes {
			if x.Covered != x.Total {
				t.Errorf("%s covers %d of %d rows after the sync that was not killed", x.Expr, x.Covered, x.Total)
			}
		}
		compare(t, rng, made, table, "at the end")
		t.Logf("%d of 6 syncs were killed before they ended", kills)
	}
}

// compare holds random answers against the oracle.
func compare(t *testing.T, rng *rand.Rand, made *tabletest.Table, table *skomer.Table, when string) {
	t.Helper()
	for range 4 {
		e := made.Expr(rng.IntN(3))
		want := made.Answer(e)
		if got, stats := positions(t, table, skomer.Query{Where: e.SQL()}); describe(got) != describe(want) {
			t.Fatalf("%s: %s\n%s\n%+v", when, e.SQL(), difference(made, got, want), stats)
		}
	}
}

// TestFaultyStores lets one operation in a hundred fail, time out after it succeeded, or return flipped bits (from the
// overlay): an answer is right or an error, never wrong; what fails on the overlay's side alone is not even an error.
func TestFaultyStores(t *testing.T) {
	rng, seed := seeded(t)
	var injected, failed, answered int
	for round := range rounds(t, 6) {
		dir := t.TempDir()
		made := tabletest.Create(t, rng, filepath.Join(dir, "table"))
		made.Append(t, 5, 300)
		var stores []*faulty.Store
		resolver := func(rules ...faulty.Rule) lake.Resolver {
			plain := lake.LocalFiles()
			var f *faulty.Store
			return func(location string) (store.Store, string, error) {
				s, key, err := plain(location)
				if err != nil {
					return nil, "", err
				}
				if f == nil {
					f = faulty.New(s, seed+uint64(round), rules...)
					stores = append(stores, f)
				}
				return f, key, nil
			}
		}
		c, err := skomer.New(skomer.Config{
			OverlayRoot: filepath.Join(dir, "overlays"), MaxStaleness: time.Nanosecond, MinPlannedFiles: -1, CacheBytes: 1 << 20,
		}.WithStores(
			resolver(faulty.Rule{Rate: 0.01, Err: faulty.Throttled}),
			resolver(
				faulty.Rule{Rate: 0.01, Err: faulty.Throttled}, faulty.Rule{Rate: 0.01, Err: faulty.TimedOut, After: true},
				faulty.Rule{Op: faulty.Fetch, Rate: 0.02, Flip: true},
			)))
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		var table *skomer.Table
		insist(t, func() error { table, err = c.Open(ctx, made.Dir, skomer.TableOptions{}); return err })
		insist(t, func() error { return table.Mount(ctx) })
		for _, expr := range declarations(rng, made.Schema) {
			insist(t, func() error { _, err := table.AddIndex(ctx, expr); return err })
		}
		for range 3 {
			insist(t, func() error { _, err := table.Sync(ctx, skomer.SyncOptions{}); return err })
			for range 20 {
				e := made.Expr(rng.IntN(3))
				want := made.Answer(e)
				got, err := tryPositions(table, e.SQL())
				if err != nil {
					failed++
					continue
				}
				answered++
				if describe(got) != describe(want) {
					t.Fatalf("round %d: %s\n%s", round, e.SQL(), difference(made, got, want))
				}
			}
			made.Append(t, 1, 200)
		}
		table.Close()
		for _, s := range stores {
			for _, n := range s.Injected() {
				injected += n
			}
		}
	}
	t.Logf("%d faults injected, %d queries answered, %d failed", injected, answered, failed)
	if injected == 0 || answered < failed {
		t.Error("too few faults, or too few answers")
	}
}

// insist repeats an operation that a fault may break.
func insist(t *testing.T, f func() error) {
	t.Helper()
	var err error
	for range 30 {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

func tryPositions(table *skomer.Table, where string) (map[string][]int, error) {
	rows, err := table.Query(context.Background(), skomer.Query{Where: where, Select: []string{"_file", "_pos"}, Limit: -1})
	if err != nil {
		return nil, err
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
	return out, err
}
