package skomer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

var idSchema = &column.Schema{Fields: []column.Field{
	{ID: 1, Name: "id", Type: column.Of(column.Long), Required: true}, {ID: 2, Name: "v", Type: column.Of(column.Long)},
}}

// longs makes rows (id, v) with ids 0, 1, … and v as given.
func longs(v ...int64) []tabletest.Row {
	var rows []tabletest.Row
	for i, x := range v {
		rows = append(rows, tabletest.Row{
			{Val: column.IntValue(column.Long, int64(i))}, {Val: column.IntValue(column.Long, x)},
		})
	}
	return rows
}

func plain(t *testing.T, path string, rows []tabletest.Row) lakewrite.File {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	layout := tabletest.Layout{RowsPerGroup: 1000, PageBytes: 1 << 20, PageVersion: 1, Codec: tabletest.Uncompressed}
	if err := tabletest.WriteParquet(path, idSchema, rows, layout); err != nil {
		t.Fatal(err)
	}
	stamp(t, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return lakewrite.File{Path: path, Format: facts.Parquet, Records: int64(len(rows)), Size: info.Size()}
}

// stamp gives a file the time of the wall clock in nanoseconds: the kernel's own stamps may have its tick, and a freed inode number is used
// again at once, so that a file could have the tag of the one whose place it takes.
func stamp(t *testing.T, path string) {
	t.Helper()
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, table *skomer.Table, q skomer.Query) (int, skomer.Stats) {
	t.Helper()
	got, stats := positions(t, table, q)
	return total(got), stats
}

// TestOverwrittenFile: a data file is overwritten in place by one of the same size and row count. Whoever reads it notices by
// the entity tag of the read itself; strict notices before any index counts.
func TestOverwrittenFile(t *testing.T) {
	ctx := context.Background()
	for _, expr := range []string{"zonemap(v)", "bloom(v)", "ordered(v)"} {
		t.Run(expr, func(t *testing.T) {
			dir := t.TempDir()
			w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "table", "data", "a.parquet")
			before := plain(t, path, longs(10, 20, 30, 40))
			other := plain(t, filepath.Join(dir, "table", "data", "b.parquet"), longs(1, 2, 3, 4))
			if _, err := w.Append(ctx, before, other); err != nil {
				t.Fatal(err)
			}
			table := open(t, w.Location(), filepath.Join(dir, "overlays"))
			if err := table.Mount(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := table.AddIndex(ctx, expr); err != nil {
				t.Fatal(err)
			}
			if _, err := table.Sync(ctx, skomer.SyncOptions{}); err != nil {
				t.Fatal(err)
			}
			if n, stats := count(t, table, skomer.Query{Where: "v = 20"}); n != 1 || len(stats.IndexesUsed) != 1 {
				t.Fatalf("%d rows by %v before the overwrite", n, stats.IndexesUsed)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if after := plain(t, path, longs(50, 60, 20, 80)); after.Size != before.Size {
				t.Fatalf("the new file has %d bytes and not %d: the test proves nothing", after.Size, before.Size)
			}
			if got, stats := positions(t, table, skomer.Query{Where: "v = 20"}); describe(got) != "a.parquet:[2]" || stats.Rejected["tag_mismatch"] == 0 {
				t.Errorf("read under an old index: %s, rejected %v", describe(got), stats.Rejected)
			}
			if n, stats := count(t, table, skomer.Query{Where: "v = 60", Strict: true}); n != 1 || stats.Rejected["tag_mismatch"] == 0 {
				t.Errorf("strict found %d rows of the new file, rejected %v", n, stats.Rejected)
			}
			if n, _ := count(t, table, skomer.Query{Where: "v = 30", Strict: true}); n != 0 {
				t.Errorf("strict found %d rows that are gone", n)
			}
		})
	}
}

// TestKeptFooterOfAnOverwrittenFile: a footer in memory is checked by the next read, without an index too.
func TestKeptFooterOfAnOverwrittenFile(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "table", "data", "a.parquet")
	if _, err := w.Append(ctx, plain(t, path, longs(10, 20, 30, 40))); err != nil {
		t.Fatal(err)
	}
	table := open(t, w.Location(), filepath.Join(dir, "overlays"))
	if n, _ := count(t, table, skomer.Query{Where: "v > 15"}); n != 3 {
		t.Fatalf("%d rows at first", n)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	plain(t, path, longs(1, 2, 3, 90))
	if got, _ := positions(t, table, skomer.Query{Where: "v > 15"}); describe(got) != "a.parquet:[3]" {
		t.Errorf("answered %s from a footer of the old file", describe(got))
	}
}

// TestFileListedTwice: a file that a snapshot lists twice counts twice, as in Iceberg's own scan, indexed or not.
func TestFileListedTwice(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
	if err != nil {
		t.Fatal(err)
	}
	f := plain(t, filepath.Join(dir, "table", "data", "a.parquet"), longs(10, 20, 30, 40))
	for range 2 {
		if _, err := w.Append(ctx, f); err != nil {
			t.Fatal(err)
		}
	}
	table := open(t, w.Location(), filepath.Join(dir, "overlays"))
	if err := table.Mount(ctx); err != nil {
		t.Fatal(err)
	}
	for _, expr := range []string{"", "ordered(v)"} {
		if expr != "" {
			if _, err := table.AddIndex(ctx, expr); err != nil {
				t.Fatal(err)
			}
			if _, err := table.Sync(ctx, skomer.SyncOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if n, stats := count(t, table, skomer.Query{Where: "v = 20"}); n != 2 {
			t.Errorf("with index %q: %d rows, want 2 (%+v)", expr, n, stats)
		}
	}
}

// TestNamesAreVerbatim (O50): data files whose names hold %, spaces, + and # are opened by exactly those names.
func TestO50NamesAreVerbatim(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"dir%20x/f.parquet", "a b.parquet", "c+d.parquet", "e#f.parquet", "g=h.parquet", "é.parquet", "%2F.parquet"}
	for i, name := range names {
		f := plain(t, filepath.Join(dir, "table", "data", name), longs(int64(i)))
		if _, err := w.Append(ctx, f); err != nil {
			t.Fatal(err)
		}
	}
	table := open(t, w.Location(), filepath.Join(dir, "overlays"))
	for i, name := range names {
		got, _ := positions(t, table, skomer.Query{Where: fmt.Sprintf("v = %d", i)})
		if total(got) != 1 || !strings.Contains(fmt.Sprint(got), name) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
