package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// processStart is row 17: whole processes, from start to exit, on a table of ten small files without an index.
func processStart(ctx context.Context) error {
	dir, err := eventTable(ctx, "events-10", 10, 1000)
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "make", "build").CombinedOutput(); err != nil {
		return fmt.Errorf("make build: %w\n%s", err, out)
	}
	py, err := python(ctx)
	if err != nil {
		return err
	}
	duckdb := filepath.Join(filepath.Dir(py), "duckdb")
	version, err := exec.CommandContext(ctx, duckdb, "--version").Output()
	if err != nil {
		return err
	}
	fmt.Printf("  duckdb program: %s", version)
	id := eventID(4321)
	glob := filepath.Join(dir, "data", "*.parquet")
	ours := []string{"bin/skomer", "query", dir, "--where", fmt.Sprintf("id = %d", id), "--select", "user", "-o", "csv"}
	theirs := []string{duckdb, "-csv", "-c", fmt.Sprintf(`SELECT "user" FROM read_parquet('%s') WHERE id = %d`, glob, id)}
	var a, b []float64
	for i := range 23 {
		x, first, err := process(ctx, ours)
		if err != nil {
			return err
		}
		y, second, err := process(ctx, theirs)
		if err != nil {
			return err
		}
		if first != second {
			return fmt.Errorf("answers differ: %q and %q", first, second)
		}
		if i >= 2 {
			a, b = append(a, x), append(b, y)
		}
	}
	fmt.Printf("  ours %.0f ms, duckdb %.0f ms (medians of %d), %.1f×\n", median(a)*1e3, median(b)*1e3, len(a), median(ratios(b, a)))
	verdict(17, median(a)*1e3, " ms", "≤ 150 ms", median(a) <= 0.15)
	return nil
}

// process runs a command and returns its seconds and its output.
func process(ctx context.Context, args []string) (float64, string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	out, err := cmd.Output()
	return time.Since(start).Seconds(), strings.TrimSpace(strings.ReplaceAll(string(out), "\r", "")), err
}
