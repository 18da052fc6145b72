package parquetio

import (
	"bytes"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/skomerdb/skomer/internal/column"
)

// TestColumnIndexOfZeros: parquet-go's SkipPageBounds leaves the chunk without bounds and writes zeros into the column index;
// believing them would lose every row that is not 0.
func TestColumnIndexOfZeros(t *testing.T) {
	type row struct {
		X int64 `parquet:"x,id(1)"`
	}
	var file bytes.Buffer
	w := parquet.NewGenericWriter[row](&file, parquet.SkipPageBounds("x"))
	if _, err := w.Write([]row{{7}, {8}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b := file.Bytes()
	f, _, err := ParseFooter("zeros", b, int64(len(b)), "tag")
	if err != nil {
		t.Fatal(err)
	}
	binding, err := f.Bind([]column.Path{{{ID: 1, Name: "x", Type: column.Of(column.Long)}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var data [][]byte
	for _, s := range binding.PageIndexSpans(nil) {
		data = append(data, b[s.Off:s.End()])
	}
	if len(data) == 0 {
		t.Fatal("the file has no page index")
	}
	if err := binding.LoadPageIndex(nil, data); err != nil {
		t.Fatal(err)
	}
	for _, page := range binding.Statistics(0).Pages[0] {
		if page.Min != nil || page.Max != nil {
			t.Errorf("believed the bounds %v to %v of values 7 and 8", page.Min, page.Max)
		}
	}
}
