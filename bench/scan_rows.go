package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
)

// text renders a value as Python's str of DuckDB's does, for the kinds of the event table.
func text(v skomer.Value, ok bool) string {
	switch {
	case !ok:
		return "None"
	case v.Kind == column.Double:
		s := strconv.FormatFloat(v.Float64(), 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	case v.Kind == column.String:
		return v.S
	default:
		return strconv.FormatInt(v.Int64(), 10)
	}
}

func digest(rows []string) string {
	rows = slices.Clone(rows)
	slices.Sort(rows)
	sum := sha256.Sum256([]byte(strings.Join(rows, "\n")))
	return hex.EncodeToString(sum[:])
}

// pair runs one query on both sides, checks that the answers are equal, and returns the seconds of each.
func pair(ctx context.Context, t *skomer.Table, p *peer, q skomer.Query, sql string) (ours, theirs float64, stats skomer.Stats, err error) {
	rows, ours, stats, err := answerOf(ctx, t, q)
	if err != nil {
		return 0, 0, stats, err
	}
	a, err := p.ask(map[string]any{"sql": sql})
	if err != nil {
		return 0, 0, stats, err
	}
	if a.Digest != digest(rows) {
		return 0, 0, stats, fmt.Errorf("answers differ on %s: ours %d rows, the peer's %d (%v)", q.Where, len(rows), a.Rows, a.First)
	}
	return ours, a.Seconds[0], stats, nil
}

func duckdb(ctx context.Context) (*peer, error) {
	p, err := startPeer(ctx, "bench/peers/duckdb_peer.py")
	if err != nil {
		return nil, err
	}
	a, err := p.ask(map[string]any{"threads": 2})
	fmt.Printf("  DuckDB %s, 2 threads, parquet_metadata_cache on, Bloom filters in the files\n", a.Version)
	return p, err
}

const pairs = 11

// warmEquality is row 1.
func warmEquality(ctx context.Context) error {
	const files, perFile = 2000, 50_000
	dir, err := eventTable(ctx, "events-2000", files, perFile)
	if err != nil {
		return err
	}
	t, err := openEvents(ctx, dir, "ordered(id)")
	if err != nil {
		return err
	}
	defer t.Close()
	p, err := duckdb(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	glob := filepath.Join(dir, "data", "*.parquet")
	var ours, theirs []float64
	var last skomer.Stats
	for i := range pairs + 2 {
		id := eventID(int64(uint64(i+1) * 7919131 % (files * perFile)))
		q := skomer.Query{Where: fmt.Sprintf("id = %d", id), Select: []string{"user", "city", "amount"}, Limit: -1}
		a, b, stats, err := pair(ctx, t, p, q, fmt.Sprintf(`SELECT "user", city, amount FROM read_parquet('%s') WHERE id = %d`, glob, id))
		if err != nil {
			return err
		}
		if i >= 2 {
			ours, theirs = append(ours, a), append(theirs, b)
		}
		last = stats
	}
	fmt.Printf("  ours %.3f ms, DuckDB %.1f ms (medians of %d); last: %d files opened, %d requests, %d bytes, %d waves\n",
		median(ours)*1e3, median(theirs)*1e3, len(ours), last.FilesOpened, last.Requests, last.Bytes, last.Waves)
	ratio := median(ratios(theirs, ours))
	verdict(1, ratio, "×", "≥ 300×", ratio >= 300)
	return nil
}

// fullScan is row 14.
func fullScan(ctx context.Context) error {
	dir, err := eventTable(ctx, "events-200", 200, 50_000)
	if err != nil {
		return err
	}
	t, err := openEvents(ctx, dir)
	if err != nil {
		return err
	}
	defer t.Close()
	p, err := duckdb(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	glob := filepath.Join(dir, "data", "*.parquet")
	var all []float64
	for _, c := range []struct{ what, where string }{
		{"integers, 0.1 % of rows", `"user" < 1000`},
		{"strings, 0.1 % of rows", `city = 'city-042'`},
		{"doubles and strings, 0.01 % of rows", `amount > 900 AND city = 'city-042'`},
	} {
		var ours, theirs []float64
		for i := range 7 {
			a, b, _, err := pair(ctx, t, p, skomer.Query{Where: c.where, Select: []string{"id", "user", "amount"}, Limit: -1},
				fmt.Sprintf(`SELECT id, "user", amount FROM read_parquet('%s') WHERE %s`, glob, c.where))
			if err != nil {
				return err
			}
			if i >= 2 {
				ours, theirs = append(ours, a), append(theirs, b)
			}
		}
		ratio := median(ratios(theirs, ours))
		fmt.Printf("  %s: ours %.0f ms, DuckDB %.0f ms, %.2f×\n", c.what, median(ours)*1e3, median(theirs)*1e3, ratio)
		all = append(all, ratio)
	}
	ratio := slices.Min(all)
	verdict(14, ratio, "×", "≥ 0.5×", ratio >= 0.5)
	return nil
}
