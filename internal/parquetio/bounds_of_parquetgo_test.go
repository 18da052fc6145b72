package parquetio

import (
	"bytes"
	"math"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/skomerdb/skomer/internal/column"
)

// written is the statistics of column x of a file that parquet-go wrote.
func written[T any](t *testing.T, kind column.Kind, rows []T, options ...parquet.WriterOption) *Statistics {
	t.Helper()
	var file bytes.Buffer
	w := parquet.NewGenericWriter[T](&file, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b := file.Bytes()
	f, _, err := ParseFooter("written", b, int64(len(b)), "tag")
	if err != nil {
		t.Fatal(err)
	}
	binding, err := f.Bind([]column.Path{{{ID: 1, Name: "x", Type: column.Of(kind)}}}, nil)
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
	return binding.Statistics(0)
}

// TestColumnIndexOfZeros: parquet-go's SkipPageBounds leaves the chunk without bounds and writes zeros into the column index;
// believing them would lose every row that is not 0.
func TestColumnIndexOfZeros(t *testing.T) {
	type row struct {
		X int64 `parquet:"x,id(1)"`
	}
	for _, page := range written(t, column.Long, []row{{7}, {8}}, parquet.SkipPageBounds("x")).Pages[0] {
		if page.Min != nil || page.Max != nil {
			t.Errorf("believed the bounds %v to %v of values 7 and 8", page.Min, page.Max)
		}
	}
}

// TestDictionaryBoundsBesideNaN: parquet-go's bounds of a dictionary-encoded float column forget values next to a NaN.
func TestDictionaryBoundsBesideNaN(t *testing.T) {
	type row struct {
		X float64 `parquet:"x,id(1),dict"`
	}
	values := []float64{-26.75, -70.5, 16, math.NaN(), -7.75, -1.25, -7.5}
	rows := make([]row, len(values))
	for i, v := range values {
		rows[i].X = v
	}
	s := written(t, column.Double, rows)
	for _, b := range append(s.Pages[0], s.Groups[0]) {
		if b.Min != nil && b.Min.Float64() > -70.5 || b.Max != nil && b.Max.Float64() < 16 {
			t.Errorf("believed the bounds %v to %v of %v", b.Min.Float64(), b.Max.Float64(), values)
		}
	}
}
