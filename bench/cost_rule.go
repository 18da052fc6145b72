package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
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
	var all []costed
	for n := range costPredicates {
		q := skomer.Query{Where: drawPredicate(r), Limit: -1, Select: [][]string{{"id"}, {"user", "city", "amount"}, {"id", "at", "user", "city", "amount"}}[r.IntN(3)]}
		c, err := compare(ctx, t, q)
		if err != nil {
			return fmt.Errorf("%s: %w", q.Where, err)
		}
		c.n = n
		if os.Getenv("BENCH_VERBOSE") != "" {
			fmt.Printf("  %3d %s\n", n, c.line())
		}
		all = append(all, c)
	}
	byRatio := func(ratio func(costed) float64) []costed {
		return slices.SortedFunc(slices.Values(all), func(a, b costed) int { return cmp.Compare(ratio(b), ratio(a)) })
	}
	for _, by := range []struct {
		what         string
		ratio, noise func(costed) float64
	}{
		{"time of cores", func(c costed) float64 { return c.ours.cpu / c.scan.cpu }, func(c costed) float64 { return c.again.cpu / c.scan.cpu }},
		{"wall time", func(c costed) float64 { return c.ours.wall / c.scan.wall }, func(c costed) float64 { return c.again.wall / c.scan.wall }},
	} {
		worst, gain := byRatio(by.ratio), 0.0
		fmt.Printf("  by %s, the worst:\n", by.what)
		for i, c := range worst {
			gain += math.Log(by.ratio(c)) / costPredicates
			if i < 5 {
				fmt.Printf("    %s\n", c.line())
				if err := c.explain(ctx, t); err != nil {
					return err
				}
			}
		}
		noise := byRatio(by.noise)
		fmt.Printf("  by %s: p95 %.2f×, worst %.2f×, geometric mean %.2f×; the plain scan against itself: p95 %.2f×, worst %.2f×\n", by.what,
			by.ratio(worst[costPredicates/20]), by.ratio(worst[0]), math.Exp(gain), by.noise(noise[costPredicates/20]), by.noise(noise[0]))
	}
	fmt.Printf("  %d of %d predicates answered with an index\n", answered(all), costPredicates)
	wall := func(c costed) float64 { return c.ours.wall / c.scan.wall }
	worst := byRatio(wall)
	p95 := wall(worst[costPredicates/20])
	verdict(16, p95, "× (p95)", "≤ 1.10×", p95 <= 1.10)
	verdict(16, wall(worst[0]), "× (worst)", "≤ 1.5×", wall(worst[0]) <= 1.5)
	return nil
}

// effort is what a query took, in seconds.
type effort struct{ wall, cpu float64 }

func medians(x []effort) effort {
	var wall, cpu []float64
	for _, e := range x {
		wall, cpu = append(wall, e.wall), append(cpu, e.cpu)
	}
	return effort{median(wall), median(cpu)}
}

// costed is one predicate measured both ways.
type costed struct {
	n                 int
	q                 skomer.Query
	ours, scan, again effort // again is the plain scan once more: what is noise
	rows              int
	stats, plain      skomer.Stats
}

func (c *costed) line() string {
	return fmt.Sprintf("%.2f× wall (%.1f against %.1f ms), %.2f× cores (%.1f against %.1f ms); %d rows of %d columns; used %v, %d files, %d page runs (%d), %d KB (%d): %.90s",
		c.ours.wall/c.scan.wall, c.ours.wall*1e3, c.scan.wall*1e3, c.ours.cpu/c.scan.cpu, c.ours.cpu*1e3, c.scan.cpu*1e3, c.rows, len(c.q.Select),
		c.stats.IndexesUsed, c.stats.FilesOpened, c.stats.Pages, c.plain.Pages, c.stats.Bytes>>10, c.plain.Bytes>>10, c.q.Where)
}

// explain prints what the cost rule said.
func (c *costed) explain(ctx context.Context, t *skomer.Table) error {
	e, err := t.Explain(ctx, c.q, false)
	if err != nil {
		return err
	}
	if x := e.Estimate; x != nil {
		fmt.Printf("      expected %.2g of the rows; asking %.1f ms, saving %.1f ms, a scan %.1f ms; the plan keeps %d to %d rows. %s\n",
			x.Selectivity, x.Index.Seconds*1e3, x.Saved.Seconds*1e3, x.Scan.Seconds*1e3, e.RowsMust, e.RowsMay, e.CostRule)
	}
	for _, u := range e.Indexes {
		if u.Use == "not asked" || u.Use == "stopped" {
			fmt.Printf("      %s %s: %s\n", u.Expr, u.Use, u.Reason)
		}
	}
	return nil
}

func answered(all []costed) (n int) {
	for _, c := range all {
		if len(c.stats.IndexesUsed) > 0 {
			n++
		}
	}
	return n
}

// compare measures in turn, each side as often first as last, and checks that both answer alike. The first round warms up.
func compare(ctx context.Context, t *skomer.Table, q skomer.Query) (costed, error) {
	c := costed{q: q}
	plain := q
	plain.NoIndex = true
	var ours, scans, again []effort
	for i := range costPairs + 1 {
		order := []int{0, 1, 2}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		var took [3]effort
		var answers [3]counted
		for _, side := range order {
			var err error
			var stats skomer.Stats
			if side == 0 {
				took[side], answers[side], c.stats, err = costOf(ctx, t, q)
			} else {
				took[side], answers[side], stats, err = costOf(ctx, t, plain)
				c.plain = stats
			}
			if err != nil {
				return c, err
			}
		}
		if answers[0] != answers[1] {
			return c, fmt.Errorf("%d rows with indexes (checksum %x), %d without (%x)", answers[0].rows, answers[0].sum, answers[1].rows, answers[1].sum)
		}
		c.rows = answers[0].rows
		if i > 0 {
			ours, scans, again = append(ours, took[0]), append(scans, took[1]), append(again, took[2])
		}
	}
	c.ours, c.scan, c.again = medians(ours), medians(scans), medians(again)
	return c, nil
}

// counted is an answer without its rows.
type counted struct {
	rows int
	sum  uint64
}

// costOf runs a query, reads all of its batches and returns what that took. Garbage of the query before is not its matter.
func costOf(ctx context.Context, t *skomer.Table, q skomer.Query) (effort, counted, skomer.Stats, error) {
	var c counted
	runtime.GC()
	before := coreTime()
	seconds, stats, err := visited(ctx, t, q, func(b *skomer.Batch) {
		for i := range b.Rows {
			c.sum += uint64(b.Position(i)+1) * 0x9e3779b97f4a7c15
		}
		c.rows += b.Rows
	})
	return effort{seconds, (coreTime() - before).Seconds()}, c, stats, err
}

// coreTime is the time of cores that the process has used.
func coreTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
