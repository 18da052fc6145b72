package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/sync/errgroup"

	"github.com/skomerdb/skomer/internal/column"
)

// event is a row of the generated table: a random unique id, a clock, and a few columns to fetch.
type event struct {
	ID     int64   `parquet:"id,id(1)"`
	At     int64   `parquet:"at,id(2),timestamp(microsecond:local)"`
	User   int32   `parquet:"user,id(3)"`
	City   string  `parquet:"city,id(4),dict"`
	Amount float64 `parquet:"amount,id(5)"`
}

var eventSchema = column.Schema{ID: 0, Fields: []column.Field{
	{ID: 1, Name: "id", Type: column.Of(column.Long), Required: true},
	{ID: 2, Name: "at", Type: column.Of(column.Timestamp), Required: true},
	{ID: 3, Name: "user", Type: column.Of(column.Int), Required: true},
	{ID: 4, Name: "city", Type: column.Of(column.String), Required: true},
	{ID: 5, Name: "amount", Type: column.Of(column.Double), Required: true},
}}

// eventID is a bijection of 64-bit numbers that looks random (the finaliser of SplitMix64, Steele et al. 2014), so that ids
// are unique and unclustered.
func eventID(n int64) int64 {
	x := uint64(n) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int64(x ^ x>>31)
}

func eventAt(n int64) event {
	h := uint64(eventID(n ^ 1<<40))
	return event{
		ID: eventID(n), At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() + n*1000, User: int32(h % 1_000_000),
		City: fmt.Sprintf("city-%03d", h>>20%997), Amount: math.Round(float64(h>>32%100000)) / 100,
	}
}

// eventFiles writes files of rows rows each and returns their paths. Pages hold 20,000 ids; ids carry a Bloom filter so that
// readers of Parquet's own filters have theirs.
func eventFiles(ctx context.Context, dir string, files, rows int) ([]string, error) {
	paths := make([]string, files)
	g, _ := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for f := range files {
		paths[f] = filepath.Join(dir, "data", fmt.Sprintf("%05d.parquet", f))
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return eventFile(paths[f], int64(f)*int64(rows), rows)
		})
	}
	return paths, g.Wait()
}

func eventFile(path string, first int64, rows int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	w := parquet.NewGenericWriter[event](out, parquet.PageBufferSize(160_000), parquet.Compression(&parquet.Snappy),
		parquet.BloomFilters(parquet.SplitBlockFilter(10, "id")))
	batch := make([]event, 0, 5000)
	for n := range rows {
		if batch = append(batch, eventAt(first+int64(n))); len(batch) == cap(batch) || n == rows-1 {
			if _, err := w.Write(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Close()
}
