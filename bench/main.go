// Command bench measures Skomer against its peers, row by row of the table in docs/performance.md. Every figure is a ratio of
// one run: ours and the peer's in turn, on the same data, with the same answers checked.
//
//	make bench          every row
//	make bench ROW=1    one row
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sort"
)

// cacheDir holds generated data, indexes and peers; deleting it costs time only.
const cacheDir = ".cache/bench"

// row is one measurement. It prints its figures and ends each bar with a verdict.
type row struct {
	what string
	run  func(context.Context) error
}

var rows = map[int]row{
	1:  {"warm equality on a random id over 2,000 files, against DuckDB", warmEquality},
	2:  {"the same in object storage, against LanceDB", remoteEquality},
	3:  {"planning a million files, nothing cached, against iceberg-go", planFirst},
	4:  {"planning a million files again, against PyIceberg", planWarm},
	12: {"a hundred files rewritten as ten: merging their artifacts against building them", compaction},
	14: {"full scan with a filter and no index, against DuckDB", fullScan},
	15: {"add and drop on 50,000 files; a build commit at a million artifacts", lifeCycle},
	16: {"200 predicates of every selectivity, as planned against the plain scan", costRule},
	17: {"process start to exit on a small table, against the duckdb program", processStart},
	18: {"the bytes read for one row of a file of ten million", needlePages},
	19: {"what a million position deletes over 100 files add to a scan", positionDeletes},
}

func main() {
	only := flag.Int("row", 0, "the one row to run; 0: all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ids := make([]int, 0, len(rows))
	for id := range rows {
		ids = append(ids, id)
	}
	sort.Ints(ids)
	if *only != 0 {
		if _, ok := rows[*only]; !ok {
			fmt.Fprintf(os.Stderr, "bench: no row %d; rows: %v\n", *only, ids)
			os.Exit(2)
		}
		ids = []int{*only}
	}
	var failed error
	for _, id := range ids {
		fmt.Printf("row %d: %s\n", id, rows[id].what)
		if err := rows[id].run(ctx); err != nil {
			fmt.Printf("row %d: failed: %v\n", id, err)
			failed = errors.Join(failed, err)
		}
	}
	if failed != nil {
		os.Exit(1)
	}
}

// verdict prints the closing line of a bar.
func verdict(row int, figure float64, unit, bar string, ok bool) {
	word := "short"
	if ok {
		word = "ok"
	}
	fmt.Printf("row %d: %.3g%s (bar %s) %s\n", row, figure, unit, bar, word)
}

func median(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	if len(x) == 0 {
		return 0
	}
	return (x[len(x)/2] + x[(len(x)-1)/2]) / 2
}

// ratios are peer/ours, pair by pair.
func ratios(peer, ours []float64) []float64 {
	out := make([]float64, len(ours))
	for i := range out {
		out[i] = peer[i] / ours[i]
	}
	return out
}
