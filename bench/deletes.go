package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
)

// positionDelete is a row of a position delete file (table spec, "Position Delete Files").
type positionDelete struct {
	Path string `parquet:"file_path,id(2147483546),dict"`
	Pos  int64  `parquet:"pos,id(2147483545),delta"`
}

// positionDeletes is what a million position deletes over 100 files add to a scan, with nothing cached.
func positionDeletes(ctx context.Context) error {
	const files, perFile, deleted = 100, 100_000, 10_000
	dir, err := eventTable(ctx, "events-100", files, perFile)
	if err != nil {
		return err
	}
	masked, err := deletedTable(ctx, dir, files, perFile, deleted)
	if err != nil {
		return err
	}
	q := skomer.Query{Where: "amount >= 0", Select: []string{"id", "user"}, Limit: -1}
	var bare, with, bareCores, withCores []float64
	for i := range 8 {
		c := startClock()
		a, n, err := scanOnce(ctx, dir, q)
		if err != nil {
			return err
		}
		without := c.stop().cpu
		c = startClock()
		b, m, err := scanOnce(ctx, masked, q)
		if err != nil {
			return err
		}
		if n-m != files*deleted {
			return fmt.Errorf("%d rows without and %d with deletes", n, m)
		}
		if i >= 1 {
			bare, with = append(bare, a), append(with, b)
			bareCores, withCores = append(bareCores, without), append(withCores, c.stop().cpu)
		}
	}
	cost := median(ratios(with, bare)) - 1
	fmt.Printf("  %.0f ms without, %.0f ms with deletes (medians of %d), caches empty\n", median(bare)*1e3, median(with)*1e3, len(bare))
	fmt.Printf("  %.0f ms and %.0f ms of core time, %.0f %% more\n", median(bareCores)*1e3, median(withCores)*1e3, (median(ratios(withCores, bareCores))-1)*100)
	verdict(19, cost*100, " % of the scan", "≤ 20 %", cost <= 0.2)
	return nil
}

// scanOnce counts the rows of a scan by a new client.
func scanOnce(ctx context.Context, dir string, q skomer.Query) (seconds float64, rows int, err error) {
	t, err := openEvents(ctx, dir)
	if err != nil {
		return 0, 0, err
	}
	defer t.Close()
	took, _, err := timed(ctx, func(ctx context.Context) error {
		r, err := t.Query(ctx, q)
		if err != nil {
			return err
		}
		return r.Each(ctx, func(b *skomer.Batch) error {
			rows += b.Rows
			return nil
		})
	})
	return took / 1e3, rows, err
}

// deletedTable is a second table over the same data files, with deleted of every file's rows deleted.
func deletedTable(ctx context.Context, data string, files, perFile, deleted int) (string, error) {
	dir := data + "-deleted"
	ready := filepath.Join(dir, "ready")
	if _, err := os.Stat(ready); err == nil {
		return dir, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	t, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: &eventSchema})
	if err != nil {
		return "", err
	}
	var add []lakewrite.File
	path := filepath.Join(dir, "data", "deletes.parquet")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	out, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer out.Close()
	w := parquet.NewGenericWriter[positionDelete](out, parquet.Compression(&parquet.Zstd))
	step := perFile / deleted
	for f := range files {
		name := filepath.Join(data, "data", fmt.Sprintf("%05d.parquet", f))
		info, err := os.Stat(name)
		if err != nil {
			return "", err
		}
		add = append(add, lakewrite.File{Path: name, Format: facts.Parquet, Records: int64(perFile), Size: info.Size()})
		rows := make([]positionDelete, deleted)
		for i := range rows {
			rows[i] = positionDelete{name, int64(i*step + int(uint64(eventID(int64(i)))%uint64(step)))}
		}
		if _, err := w.Write(rows); err != nil {
			return "", err
		}
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	info, err := out.Stat()
	if err != nil {
		return "", err
	}
	if _, err := t.Append(ctx, add...); err != nil {
		return "", err
	}
	deletes := lakewrite.File{Path: path, Format: facts.Parquet, Content: lakewrite.PositionDeletes, Records: int64(files * deleted), Size: info.Size()}
	if _, err := t.Append(ctx, deletes); err != nil {
		return "", err
	}
	return dir, os.WriteFile(ready, nil, 0o644)
}
