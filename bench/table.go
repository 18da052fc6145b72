package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
)

// eventTable makes a table of files × rows events once and returns its folder.
func eventTable(ctx context.Context, name string, files, rows int) (string, error) {
	dir, err := filepath.Abs(filepath.Join(cacheDir, name))
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
	start := time.Now()
	fmt.Printf("  writing %d files of %d rows …\n", files, rows)
	paths, err := eventFiles(ctx, dir, files, rows)
	if err != nil {
		return "", err
	}
	t, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: &eventSchema})
	if err != nil {
		return "", err
	}
	var add []lakewrite.File
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return "", err
		}
		add = append(add, lakewrite.File{Path: p, Format: facts.Parquet, Records: int64(rows), Size: info.Size()})
	}
	if _, err := t.Append(ctx, add...); err != nil {
		return "", err
	}
	fmt.Printf("  written in %.0f s\n", time.Since(start).Seconds())
	return dir, os.WriteFile(ready, nil, 0o644)
}

// openEvents opens a table with all caches large and nothing looked up twice, mounts it and builds the indexes.
func openEvents(ctx context.Context, dir string, indexes ...string) (*skomer.Table, error) {
	c, err := skomer.New(skomer.Config{OverlayRoot: filepath.Join(filepath.Dir(dir), "overlays"), CacheBytes: 4 << 30, MaxStaleness: time.Hour, Workers: 2})
	if err != nil {
		return nil, err
	}
	t, err := c.Open(ctx, dir, skomer.TableOptions{})
	if err != nil || len(indexes) == 0 {
		return t, err
	}
	if err := t.Mount(ctx); err != nil {
		return nil, err
	}
	for _, x := range indexes {
		if _, err := t.AddIndex(ctx, x); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	r, err := t.Sync(ctx, skomer.SyncOptions{})
	if err != nil {
		return nil, err
	}
	if r.Artifacts > 0 {
		fmt.Printf("  built %d artifacts in %d bundles, %d MB, in %.0f s\n", r.Artifacts, r.Bundles, r.BytesWritten>>20, time.Since(start).Seconds())
	}
	return t, nil
}

// answerOf runs a query and renders its rows as the DuckDB peer does.
func answerOf(ctx context.Context, t *skomer.Table, q skomer.Query) (rows []string, took float64, stats skomer.Stats, err error) {
	start := time.Now()
	r, err := t.Query(ctx, q)
	if err != nil {
		return nil, 0, stats, err
	}
	err = r.Each(ctx, func(b *skomer.Batch) error {
		for i := range b.Rows {
			line := ""
			for k, c := range b.Cols {
				if k > 0 {
					line += "|"
				}
				v, ok := c.Value(i)
				line += text(v, ok)
			}
			rows = append(rows, line)
		}
		return nil
	})
	return rows, time.Since(start).Seconds(), r.Stats(), err
}
