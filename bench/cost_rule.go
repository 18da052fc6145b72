package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/skomerdb/skomer"
)

const (
	costFiles, costRows = 20, 50_000
	costPredicates      = 200
	costPairs           = 5
)

// costRule is row 16: seeded predicates of every selectivity, answered as the planner chooses and without indexes, in turn.
func costRule(ctx context.Context) error {
	dir, err := eventTable(ctx, "events-20", costFiles, costRows)
	if err != nil {
		return err
	}
	t, err := openEvents(ctx, dir, "ordered(id)", "ordered(amount)", "bloom(user)", "bitmap(city)", "zonemap(at)",
		"sketch(id)", "sketch(user)", "sketch(city)", "sketch(amount)", "sketch(at)")
	if err != nil {
		return err
	}
	defer t.Close()
	r := rand.New(rand.NewPCG(16, 1))
	var worst []costed
	for n := range costPredicates {
		q := skomer.Query{Where: drawPredicate(r), Limit: -1, Select: [][]string{{"id"}, {"user", "city", "amount"}, {"id", "at", "user", "city", "amount"}}[r.IntN(3)]}
		c, err := compare(ctx, t, q)
		if err != nil {
			return fmt.Errorf("%s: %w", q.Where, err)
		}
		c.n = n
		if os.Getenv("BENCH_VERBOSE") != "" {
			fmt.Printf("  %3d %.2f× (%.1f ms against %.1f ms, %d rows, used %v) %.90s\n", n, c.ratio, c.ours*1e3, c.scan*1e3, c.rows, c.used, c.where)
		}
		worst = append(worst, c)
	}
	slices.SortFunc(worst, func(a, b costed) int { return -cmpFloat(a.ratio, b.ratio) })
	for _, c := range worst[:12] {
		fmt.Printf("  %.2f× (%.1f ms against %.1f ms, %d rows, used %v) %.110s\n", c.ratio, c.ours*1e3, c.scan*1e3, c.rows, c.used, c.where)
	}
	p95 := worst[costPredicates/20].ratio
	noise := make([]float64, len(worst))
	for i, c := range worst {
		noise[i] = c.noise
	}
	slices.Sort(noise)
	fmt.Printf("  the plain scan against itself: p95 %.2f×, worst %.2f×\n", noise[len(noise)-1-costPredicates/20], noise[len(noise)-1])
	gain := 0.0
	for _, c := range worst {
		gain += math.Log(c.ratio) / costPredicates
	}
	fmt.Printf("  geometric mean %.2f×, %d of %d predicates answered with an index\n", math.Exp(gain), answered(worst), costPredicates)
	verdict(16, p95, "× (p95)", "≤ 1.10×", p95 <= 1.10)
	verdict(16, worst[0].ratio, "× (worst)", "≤ 1.5×", worst[0].ratio <= 1.5)
	return nil
}

// costed is one predicate measured both ways.
type costed struct {
	n                 int
	where             string
	ratio, ours, scan float64
	noise             float64 // a second plain scan against the first
	rows              int
	used              []string
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

func answered(all []costed) (n int) {
	for _, c := range all {
		if len(c.used) > 0 {
			n++
		}
	}
	return n
}

// compare measures pairs and checks that both sides answer alike.
func compare(ctx context.Context, t *skomer.Table, q skomer.Query) (costed, error) {
	c := costed{where: q.Where}
	plain := q
	plain.NoIndex = true
	var ours, scans, again []float64
	for i := range costPairs + 1 {
		a, first, stats, err := costOf(ctx, t, q)
		if err != nil {
			return c, err
		}
		b, second, _, err := costOf(ctx, t, plain)
		if err != nil {
			return c, err
		}
		if first != second {
			return c, fmt.Errorf("%d rows with indexes (checksum %x), %d without (%x)", first.rows, first.sum, second.rows, second.sum)
		}
		c.rows, c.used = first.rows, stats.IndexesUsed
		control, _, _, err := costOf(ctx, t, plain)
		if err != nil {
			return c, err
		}
		if i > 0 {
			ours, scans, again = append(ours, a), append(scans, b), append(again, control)
		}
	}
	c.ours, c.scan = median(ours), median(scans)
	c.ratio, c.noise = median(ratios(ours, scans)), median(ratios(again, scans))
	return c, nil
}

// counted is an answer without its rows.
type counted struct {
	rows int
	sum  uint64
}

// costOf runs a query, reads all of its batches and returns its seconds.
func costOf(ctx context.Context, t *skomer.Table, q skomer.Query) (float64, counted, skomer.Stats, error) {
	var c counted
	seconds, stats, err := visited(ctx, t, q, func(b *skomer.Batch) {
		for i := range b.Rows {
			c.sum += uint64(b.Position(i)+1) * 0x9e3779b97f4a7c15
		}
		c.rows += b.Rows
	})
	return seconds, c, stats, err
}

// drawPredicate draws a predicate whose selectivity is log-uniform from 10⁻⁶ to 0.9.
func drawPredicate(r *rand.Rand) string {
	const rows = costFiles * costRows
	share := math.Exp(math.Log(1e-6) + r.Float64()*(math.Log(0.9)-math.Log(1e-6)))
	low := r.Float64() * (1 - share)
	switch r.IntN(8) {
	case 0:
		return fmt.Sprintf("id >= %d AND id < %d", idAt(low), idAt(low+share))
	case 1:
		return fmt.Sprintf("id < %d", idAt(share))
	case 2:
		return fmt.Sprintf("amount BETWEEN %.2f AND %.2f", 1000*low, 1000*(low+share))
	case 3:
		n := max(1, int(share*997))
		var names []string
		for range n {
			names = append(names, fmt.Sprintf("'city-%03d'", r.IntN(997)))
		}
		return "city IN (" + strings.Join(names, ", ") + ")"
	case 4:
		n := max(1, min(300, int(share*1_000_000)))
		var users []string
		for range n {
			users = append(users, fmt.Sprint(r.IntN(1_000_000)))
		}
		return `"user" IN (` + strings.Join(users, ", ") + ")"
	case 5:
		n := max(1, min(300, int(share*rows)))
		var ids []string
		for range n {
			ids = append(ids, fmt.Sprint(eventID(int64(r.IntN(rows)))))
		}
		return "id IN (" + strings.Join(ids, ", ") + ")"
	case 6:
		return fmt.Sprintf("amount < %.2f AND city >= 'city-%03d'", 1000*math.Sqrt(share), int(997*(1-math.Sqrt(share))))
	default:
		return fmt.Sprintf(`id < %d OR "user" = %d`, idAt(share), r.IntN(1_000_000))
	}
}

// idAt is the id below which a share of the ids lies.
func idAt(share float64) int64 {
	return int64(math.Max(-math.MaxInt64, math.Min((share-0.5)*math.MaxUint64, math.MaxInt64-1024)))
}

// visited runs a query and hands its batches to visit.
func visited(ctx context.Context, t *skomer.Table, q skomer.Query, visit func(*skomer.Batch)) (float64, skomer.Stats, error) {
	start := time.Now()
	rows, err := t.Query(ctx, q)
	if err != nil {
		return 0, skomer.Stats{}, err
	}
	err = rows.Each(ctx, func(b *skomer.Batch) error {
		visit(b)
		return nil
	})
	return time.Since(start).Seconds(), rows.Stats(), err
}
