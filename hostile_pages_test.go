package skomer_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// shiftPages makes the offset indexes of a file put the second page of every chunk one row too early.
func shiftPages(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	shifted := 0
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			at, end := c.OffsetIndexOffset, c.OffsetIndexOffset+int64(c.OffsetIndexLength)
			i := len(f.OffsetIndexes())
			for k, x := range f.OffsetIndexes() {
				if len(x.PageLocations) > 1 && x.PageLocations[0].Offset == c.MetaData.DataPageOffset {
					i = k
				}
			}
			if i == len(f.OffsetIndexes()) {
				continue
			}
			x := f.OffsetIndexes()[i]
			x.PageLocations[1].FirstRowIndex--
			out, err := thrift.Marshal(new(thrift.CompactProtocol), &x)
			if err != nil {
				t.Fatal(err)
			}
			if len(out) != int(end-at) {
				t.Fatalf("%d bytes instead of %d", len(out), end-at)
			}
			copy(b[at:end], out)
			shifted++
		}
	}
	if shifted == 0 {
		t.Fatal("no chunk of several pages: the test proves nothing")
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestWrongPageIndexes: page indexes that contradict their pages, in every file, cost requests and no answer, also behind rows that
// were handed on already, and no index over the files is missing.
func TestWrongPageIndexes(t *testing.T) {
	for _, memory := range []int64{0, 8} {
		ctx, dir := context.Background(), t.TempDir()
		w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
		if err != nil {
			t.Fatal(err)
		}
		var v []int64
		for i := range 60 {
			v = append(v, int64(i%30))
		}
		layout := tabletest.Layout{RowsPerGroup: 30, PageBytes: 64, PageVersion: 1, PageIndex: true, Codec: tabletest.Uncompressed}
		for i := range 4 {
			path := filepath.Join(dir, "table", "data", fmt.Sprintf("%d.parquet", i))
			f := plain(t, path, longs(v...))
			if err := tabletest.WriteParquet(path, idSchema, longs(v...), layout); err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				shiftPages(t, path)
			}
			f.Size = stated(t, path, 60).Size
			if _, err := w.Append(ctx, f); err != nil {
				t.Fatal(err)
			}
		}
		for _, where := range []string{"v = 25", "v > 20", "v IN (3, 12, 29)", "id < 40 AND v = 7"} {
			table := clientOf(t, skomer.Config{OverlayRoot: t.TempDir(), Memory: memory}, w.Location())
			agree(t, table, "at first", where)
		}
		table := clientOf(t, skomer.Config{OverlayRoot: t.TempDir(), Memory: memory}, w.Location())
		indexed(t, table, "ordered(v)", "zonemap(v)")
		agree(t, table, "indexed", "v = 25", "v > 20", "v IN (3, 12, 29)", "id < 40 AND v = 7")
	}
}
