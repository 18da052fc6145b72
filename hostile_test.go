package skomer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// clientOf opens a table with a configuration of its own.
func clientOf(t *testing.T, c skomer.Config, location string) *skomer.Table {
	t.Helper()
	c.MinPlannedFiles, c.MinPlannedScanBytes, c.MaxStaleness = -1, -1, time.Nanosecond
	client, err := skomer.New(c)
	if err != nil {
		t.Fatal(err)
	}
	out, err := client.Open(context.Background(), location, skomer.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	return out
}

// threeFiles makes a table of files a, b and c with four rows each.
func threeFiles(t *testing.T) (location string, paths []string) {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
	if err != nil {
		t.Fatal(err)
	}
	var files []lakewrite.File
	for _, name := range []string{"a", "b", "c"} {
		path := filepath.Join(dir, "table", "data", name+".parquet")
		files, paths = append(files, plain(t, path, longs(10, 20, 30, 40))), append(paths, path)
	}
	if _, err := w.Append(ctx, files...); err != nil {
		t.Fatal(err)
	}
	return w.Location(), paths
}

func overwrite(t *testing.T, path string, v ...int64) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	plain(t, path, longs(v...))
}

// TestStrictBelievesNoKeptFooter: strict finds an overwrite behind a footer in memory whose statistics rule the new rows out, with
// and without an overlay.
func TestStrictBelievesNoKeptFooter(t *testing.T) {
	location, paths := threeFiles(t)
	for _, mounted := range []bool{false, true} {
		table := clientOf(t, skomer.Config{OverlayRoot: t.TempDir()}, location)
		if mounted {
			if err := table.Mount(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		bounded(t, paths[1], 10, 20, 30, 40)
		if n, _ := count(t, table, skomer.Query{Where: "v > 15"}); n != 9 {
			t.Fatalf("%d rows at first", n)
		}
		bounded(t, paths[1], 1, 2, 3, 90)
		if n, _ := count(t, table, skomer.Query{Where: "v = 90", Strict: true}); n != 1 {
			t.Errorf("mounted %v: strict found %d rows of the new file", mounted, n)
		}
	}
}

// bounded overwrites a file by one with page bounds and statistics.
func bounded(t *testing.T, path string, v ...int64) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	layout := tabletest.Layout{RowsPerGroup: 1000, PageBytes: 1 << 20, PageVersion: 1, PageIndex: true, Codec: tabletest.Uncompressed}
	if err := tabletest.WriteParquet(path, idSchema, longs(v...), layout); err != nil {
		t.Fatal(err)
	}
	stamp(t, path)
}

// TestSeveralOverwrittenFiles: one query copes with any number of overwritten files whose footers are in memory.
func TestSeveralOverwrittenFiles(t *testing.T) {
	location, paths := threeFiles(t)
	table := clientOf(t, skomer.Config{OverlayRoot: t.TempDir()}, location)
	if n, _ := count(t, table, skomer.Query{Where: "v > 15"}); n != 9 {
		t.Fatalf("%d rows at first", n)
	}
	for _, p := range paths {
		overwrite(t, p, 1, 2, 3, 90)
	}
	if n, _ := count(t, table, skomer.Query{Where: "v > 15"}); n != 3 {
		t.Errorf("%d rows of three new files", n)
	}
}

// TestOverwriteAfterTheFirstRows: an overwrite that is noticed when rows were handed on already may fail the query, but not the next.
func TestOverwriteAfterTheFirstRows(t *testing.T) {
	location, paths := threeFiles(t)
	table := clientOf(t, skomer.Config{OverlayRoot: t.TempDir(), Memory: 8}, location)
	if n, _ := count(t, table, skomer.Query{Where: "v > 15"}); n != 9 {
		t.Fatalf("%d rows at first", n)
	}
	overwrite(t, paths[2], 1, 2, 3, 90)
	for attempt := range 3 {
		rows, err := table.Query(context.Background(), skomer.Query{Where: "v > 15", Limit: -1})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		err = rows.Each(context.Background(), func(b *skomer.Batch) error { n += b.Rows; return nil })
		t.Log(attempt, n, err)
		if attempt > 0 && (err != nil || n != 7) {
			t.Errorf("attempt %d: %d rows, %v", attempt, n, err)
		}
	}
}

// TestBatchesAsAnIterator: the iterator can be pulled, stopped early and left by a panic.
func TestBatchesAsAnIterator(t *testing.T) {
	location, _ := threeFiles(t)
	table := clientOf(t, skomer.Config{OverlayRoot: t.TempDir()}, location)
	query := func() *skomer.Rows {
		rows, err := table.Query(context.Background(), skomer.Query{Limit: -1})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	n := 0
	next, stop := iter.Pull2(query().Batches(context.Background()))
	for {
		b, err, ok := next()
		if !ok {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n += b.Rows
	}
	stop()
	if n != 12 {
		t.Errorf("pulled %d rows", n)
	}
	next, stop = iter.Pull2(query().Batches(context.Background()))
	if _, _, ok := next(); !ok {
		t.Error("nothing to pull")
	}
	stop()
	func() {
		defer func() {
			if x := recover(); x == nil {
				t.Error("the panic got lost")
			}
		}()
		for range query().Batches(context.Background()) {
			panic("boom")
		}
	}()
	before := runtime.NumGoroutine()
	for range 50 {
		for range query().Batches(context.Background()) {
			break
		}
		_ = query().Each(context.Background(), func(*skomer.Batch) error { return errors.New("no") })
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before+3; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		for range query().Batches(context.Background()) {
			runtime.Goexit()
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("Goexit in the loop hangs")
	}
}

// TestTableMadeAnew: a table folder is deleted and made again with the same metadata file name.
func TestTableMadeAnew(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	remake := func(name string, v ...int64) {
		w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Append(ctx, plain(t, filepath.Join(dir, "table", "data", name), longs(v...))); err != nil {
			t.Fatal(err)
		}
	}
	remake("a.parquet", 1, 2, 3)
	table := clientOf(t, skomer.Config{OverlayRoot: t.TempDir(), CacheBytes: 4}, filepath.Join(dir, "table"))
	if n, _ := count(t, table, skomer.Query{}); n != 3 {
		t.Fatal(n)
	}
	if err := os.RemoveAll(filepath.Join(dir, "table")); err != nil {
		t.Fatal(err)
	}
	remake("b.parquet", 1, 2, 3, 4, 5)
	rows, err := table.Query(ctx, skomer.Query{Limit: -1})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := rows.Each(ctx, func(b *skomer.Batch) error { n += b.Rows; return nil }); err != nil || n != 5 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// TestSelectTwice: a column may be asked for twice, and a struct beside its field.
func TestSelectTwice(t *testing.T) {
	location, _ := threeFiles(t)
	table := clientOf(t, skomer.Config{OverlayRoot: t.TempDir()}, location)
	rows, err := table.Query(context.Background(), skomer.Query{Select: []string{"v", "_pos", "v", "_pos", "ID"}, Limit: 5})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = rows.Each(context.Background(), func(b *skomer.Batch) error {
		n += b.Rows
		for i := range b.Rows {
			x, _ := b.Cols[0].Value(i)
			y, _ := b.Cols[2].Value(i)
			if x.Int64() != y.Int64() {
				t.Error(x, y)
			}
		}
		return nil
	})
	if err != nil || n != 5 {
		t.Error(n, err)
	}
}

// TestBrokenOverlayIsTold: an overlay whose newest version is damaged is no index, and the answer says so.
func TestBrokenOverlayIsTold(t *testing.T) {
	location, _ := threeFiles(t)
	overlays := t.TempDir()
	indexed(t, clientOf(t, skomer.Config{OverlayRoot: overlays}, location), "ordered(v)")
	versions, err := filepath.Glob(filepath.Join(overlays, "*", "versions", "*"))
	if err != nil || len(versions) == 0 {
		t.Fatal(versions, err)
	}
	for _, p := range versions {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(p, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	table := clientOf(t, skomer.Config{OverlayRoot: overlays}, location)
	n, stats := count(t, table, skomer.Query{Where: "v = 20"})
	if n != 3 || stats.Rejected["overlay_unreadable"] != 1 {
		t.Errorf("%d rows, rejected %v", n, stats.Rejected)
	}
	if e, err := table.Explain(context.Background(), skomer.Query{Where: "v = 20"}, true); err != nil || len(e.Rejected) != 1 {
		t.Errorf("explained as %+v, %v", e, err)
	}
}

// TestTableInManyHands: a table is queried, indexed and described while it moves. It is for the race detector.
func TestTableInManyHands(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
	if err != nil {
		t.Fatal(err)
	}
	add := func(i int) {
		if _, err := w.Append(ctx, plain(t, filepath.Join(dir, "table", "data", fmt.Sprint(i, ".parquet")), longs(1, 2, 3))); err != nil {
			t.Error(err)
		}
	}
	add(0)
	table := clientOf(t, skomer.Config{OverlayRoot: filepath.Join(dir, "overlays")}, w.Location())
	indexed(t, table, "zonemap(v)")
	var g sync.WaitGroup
	for _, work := range []func(int) error{
		func(i int) error { add(i + 1); return nil },
		func(int) error { _, err := table.AddIndex(ctx, "ordered(v)"); return err },
		func(int) error { _, err := table.DropIndex(ctx, "bloom(v)"); return ignore(err, fault.NotFound) },
		func(int) error { _, err := table.AddIndex(ctx, "bloom(v)"); return ignore(err, fault.NotFound) },
		func(int) error { _, err := table.Sync(ctx, skomer.SyncOptions{}); return err },
		func(int) error { return table.Mount(ctx) },
		func(int) error { _, err := table.Describe(ctx, ""); return err },
		func(int) error {
			rows, err := table.Query(ctx, skomer.Query{Where: "v = 2", Limit: -1})
			if err != nil {
				return err
			}
			if n, err := rows.Count(ctx); err != nil || n == 0 {
				return fmt.Errorf("%d rows, %w", n, err)
			}
			return nil
		},
	} {
		g.Go(func() {
			for i := range 8 {
				if err := work(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	g.Wait()
}

func ignore(err error, c fault.Class) error {
	if fault.Is(err, c) {
		return nil
	}
	return err
}
