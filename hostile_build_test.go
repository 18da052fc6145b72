package skomer_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// TestDamagedFileAmongOthers: a data file whose pages cannot be decoded is left out of a segment, wherever it stands in it.
func TestDamagedFileAmongOthers(t *testing.T) {
	for bad := range 3 {
		ctx, dir := context.Background(), t.TempDir()
		w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
		if err != nil {
			t.Fatal(err)
		}
		var files []lakewrite.File
		for i := range 3 {
			path := filepath.Join(dir, "table", "data", fmt.Sprint(i, ".parquet"))
			f := plain(t, path, longs(10, 20, 30, 40))
			layout := tabletest.Layout{RowsPerGroup: 1000, PageBytes: 1 << 20, PageVersion: 1, Codec: &parquet.Zstd}
			if err := tabletest.WriteParquet(path, idSchema, longs(10, 20, 30, 40), layout); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if i == bad {
				at := bytes.LastIndex(b, []byte{0x28, 0xb5, 0x2f, 0xfd})
				copy(b[at:], "damaged")
				if err := os.WriteFile(path, b, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			f.Size = int64(len(b))
			files = append(files, f)
		}
		if _, err := w.Append(ctx, files...); err != nil {
			t.Fatal(err)
		}
		table := open(t, w.Location(), filepath.Join(dir, "overlays"))
		if err := table.Mount(ctx); err != nil {
			t.Fatal(err)
		}
		for _, e := range []string{"ordered(v)", "zonemap(v)", "bloom(v)"} {
			if _, err := table.AddIndex(ctx, e); err != nil {
				t.Fatal(err)
			}
		}
		r, err := table.Sync(ctx, skomer.SyncOptions{})
		if err != nil {
			t.Errorf("file %d damaged: %v", bad, err)
			continue
		}
		if r.FilesIndexed != 2 || len(r.Skipped) != 1 {
			t.Errorf("file %d damaged: %+v", bad, r)
		}
		e, err := table.Explain(ctx, skomer.Query{Where: "v = 30"}, false)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range e.Files {
			if i != bad && (f.Must != 1 || f.May != 1) {
				t.Errorf("file %d damaged, file %d: %+v", bad, i, f)
			}
		}
	}
}

// TestSyncAfterOverwrite: a sync in a process that holds the footer of an overwritten file indexes the new one.
func TestSyncAfterOverwrite(t *testing.T) {
	location, paths := threeFiles(t)
	table := clientOf(t, skomer.Config{OverlayRoot: t.TempDir()}, location)
	if n, _ := count(t, table, skomer.Query{Where: "v > 15"}); n != 9 {
		t.Fatal(n)
	}
	overwrite(t, paths[1], 1, 2, 3, 90)
	indexed(t, table, "ordered(v)", "zonemap(v)")
	n, stats := count(t, table, skomer.Query{Where: "v = 90"})
	if n != 1 || len(stats.IndexesMissing) != 0 {
		t.Errorf("%d rows, missing %v", n, stats.IndexesMissing)
	}
}
