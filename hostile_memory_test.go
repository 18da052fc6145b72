package skomer_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
)

// TestMemoryOfWideRows: a row group that unpacks to far more than its bytes does not take more memory than the client may have.
func TestMemoryOfWideRows(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s := &column.Schema{Fields: []column.Field{{ID: 1, Name: "id", Type: column.Of(column.Long)}, {ID: 2, Name: "x", Type: column.Of(column.String)}}}
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: s})
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		ID int64  `parquet:"id,id(1)"`
		X  string `parquet:"x,id(2),zstd"`
	}
	if err := os.MkdirAll(filepath.Join(dir, "table", "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "table", "data", "wide.parquet")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	pw := parquet.NewGenericWriter[row](out, parquet.PageBufferSize(1<<20))
	const rows = 60000
	for i := range rows {
		if _, err := pw.Write([]row{{int64(i), strings.Repeat("x", 10000)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := pw.Close(); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	f := stated(t, path, rows)
	t.Logf("%d bytes in the file, %d unpacked", f.Size, rows*10000)
	if _, err := w.Append(ctx, f); err != nil {
		t.Fatal(err)
	}
	table := clientOf(t, skomer.Config{OverlayRoot: t.TempDir(), Memory: 128 << 20, CacheBytes: 8 << 20}, w.Location())
	runtime.GC()
	var base runtime.MemStats
	runtime.ReadMemStats(&base)
	stop, most := make(chan bool), make(chan uint64)
	go func() {
		var m runtime.MemStats
		peak := uint64(0)
		for {
			select {
			case <-stop:
				most <- peak
				return
			case <-time.After(5 * time.Millisecond):
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
			}
		}
	}()
	n := 0
	for b, err := range mustQuery(t, table, skomer.Query{Limit: -1}).Batches(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		n += b.Rows
	}
	close(stop)
	peak := <-most
	t.Logf("%d rows, peak %d MiB over %d MiB", n, peak>>20, base.HeapAlloc>>20)
	if peak > 512<<20 {
		t.Errorf("peak of %d MiB with 128 MiB allowed", peak>>20)
	}
}
