package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/parquet-go/parquet-go"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
)

// needle is a row of one large file, in the order of its key.
type needle struct {
	Key  int64   `parquet:"key,id(1)"`
	V    float64 `parquet:"v,id(2)"`
	Text string  `parquet:"text,id(3)"`
}

var needleSchema = column.Schema{Fields: []column.Field{
	{ID: 1, Name: "key", Type: column.Of(column.Long), Required: true},
	{ID: 2, Name: "v", Type: column.Of(column.Double), Required: true},
	{ID: 3, Name: "text", Type: column.Of(column.String), Required: true},
}}

// needlePages is the needle of one file with ten million rows: the bytes read, against those of the pages that hold the row.
func needlePages(ctx context.Context) error {
	const rows = 10_000_000
	dir, err := needleTable(ctx, rows)
	if err != nil {
		return err
	}
	t, err := openEvents(ctx, dir)
	if err != nil {
		return err
	}
	defer t.Close()
	path := filepath.Join(dir, "data", "needle.parquet")
	var worst float64
	for _, row := range []int64{77, rows / 3, rows/3 + 1000, rows / 2, rows - 5} {
		q := skomer.Query{Where: fmt.Sprintf("key = %d", row*3), Select: []string{"v", "text"}, Limit: -1}
		if _, _, _, err := answerOf(ctx, t, q); err != nil { // footer and page index come into memory
			return err
		}
		found, _, stats, err := answerOf(ctx, t, q)
		if err != nil || len(found) != 1 {
			return fmt.Errorf("%d rows, %w", len(found), err)
		}
		need, err := pageBytes(path, row)
		if err != nil {
			return err
		}
		fmt.Printf("  row %d: %d bytes read, %d in the pages of the row, %d requests, %d waves\n", row, stats.Bytes, need, stats.Requests, stats.Waves)
		worst = max(worst, float64(stats.Bytes)/float64(need))
	}
	verdict(18, worst, "× the bytes of the pages", "≤ 1.5×", worst <= 1.5)
	return nil
}

// pageBytes is the sizes of the pages, of all three columns, that hold a row.
func pageBytes(path string, row int64) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	pf, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return 0, err
	}
	var bytes int64
	for _, g := range pf.RowGroups() {
		if row >= g.NumRows() {
			row -= g.NumRows()
			continue
		}
		for _, c := range g.ColumnChunks() {
			index, err := c.OffsetIndex()
			if err != nil {
				return 0, err
			}
			page := sort.Search(index.NumPages(), func(i int) bool { return index.FirstRowIndex(i) > row }) - 1
			bytes += index.CompressedPageSize(page)
		}
		break
	}
	return bytes, nil
}

func needleTable(ctx context.Context, rows int) (string, error) {
	dir, err := filepath.Abs(filepath.Join(cacheDir, "needle"))
	if err != nil {
		return "", err
	}
	ready := filepath.Join(dir, "ready")
	if _, err := os.Stat(ready); err == nil {
		return dir, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "data", "needle.parquet")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	out, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer out.Close()
	w := parquet.NewGenericWriter[needle](out, parquet.PageBufferSize(256<<10), parquet.MaxRowsPerRowGroup(1_000_000), parquet.Compression(&parquet.Snappy))
	batch := make([]needle, 0, 10_000)
	for n := range rows {
		batch = append(batch, needle{Key: int64(n) * 3, V: float64(eventID(int64(n))), Text: fmt.Sprintf("text of row %d", eventID(int64(n))%1_000_000)})
		if len(batch) == cap(batch) || n == rows-1 {
			if _, err := w.Write(batch); err != nil {
				return "", err
			}
			batch = batch[:0]
		}
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	info, err := out.Stat()
	if err != nil {
		return "", err
	}
	t, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: &needleSchema})
	if err != nil {
		return "", err
	}
	if _, err := t.Append(ctx, lakewrite.File{Path: path, Format: facts.Parquet, Records: int64(rows), Size: info.Size()}); err != nil {
		return "", err
	}
	return dir, os.WriteFile(ready, nil, 0o644)
}
