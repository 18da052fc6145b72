package parquetio_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/rowset"
)

// seeds runs work with a printed seed per round: SKOMER_SEED replays one, SKOMER_ROUNDS asks for more of them.
func seeds(t *testing.T, rounds int, work func(t *testing.T, g generator)) {
	start := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		start, rounds = v, 1
	} else if s := os.Getenv("SKOMER_ROUNDS"); s != "" {
		rounds, _ = strconv.Atoi(s)
	}
	for i := range uint64(rounds) {
		seed := start + i
		func() {
			defer func() { // also where work ends the test
				if t.Failed() {
					t.Logf("replay with SKOMER_SEED=%d go test ./internal/parquetio -run '^%s$'", seed, t.Name())
				}
			}()
			work(t, generator{rand.New(rand.NewPCG(seed, 1))})
		}()
		if t.Failed() {
			t.FailNow()
		}
	}
}

// selection is a random subset of n rows: scattered, clustered, all or none.
func (g generator) selection(n int) *rowset.Set {
	switch g.IntN(6) {
	case 0:
		return nil
	case 1:
		return rowset.None(uint32(n))
	case 2:
		var rows []uint32
		p := g.Float64() * g.Float64()
		for i := range n {
			if g.Float64() < p {
				rows = append(rows, uint32(i))
			}
		}
		return rowset.FromRows(uint32(n), rows)
	default:
		var ranges []rowset.Range
		for range 1 + g.IntN(4) {
			a, b := uint32(g.IntN(n+1)), uint32(g.IntN(n+1))
			ranges = append(ranges, rowset.Range{Start: min(a, b), End: min(max(a, b), min(a, b)+uint32(g.IntN(300)))})
		}
		return rowset.FromRanges(uint32(n), ranges)
	}
}

func TestRandomTables(t *testing.T) {
	seeds(t, 60, func(t *testing.T, g generator) {
		tab := g.table(t)
		f, err := tab.data.open("random")
		if err != nil {
			t.Fatalf("%s: %v", tab.note, err)
		}
		checkTable(t, g, tab, f)
	})
}

// checkTable reads random selections of a table with and without its page index and compares with the rows written.
func checkTable(t *testing.T, g generator, tab table, f *parquetio.File) {
	t.Helper()
	n := len(tab.values[0])
	if f.Rows() != int64(n) {
		t.Fatalf("%s: %d rows, wrote %d", tab.note, f.Rows(), n)
	}
	for round := range 4 {
		b, err := f.Bind(allPaths(f), nil)
		if err != nil {
			t.Fatalf("%s: %v", tab.note, err)
		}
		rows := g.selection(n)
		if round > 0 {
			if err := b.LoadPageIndex(nil, tab.data.fetch(t, b.PageIndexSpans(nil))); err != nil {
				t.Fatal(err)
			}
		}
		want := rows
		if rows == nil {
			want = rowset.All(uint32(n))
		}
		positions := want.Rows(nil)
		at := 0
		err = b.Decode(context.Background(), tab.data.fetch(t, b.Spans(rows)), rows, 1+g.IntN(500), func(batch *column.Batch) error {
			for _, row := range rowsOf(batch) {
				if at >= len(positions) || row[0] != positions[at] {
					t.Fatalf("%s: position %v out of place", tab.note, row[0])
				}
				for c := range tab.values {
					if got, want := text(row[c+1:c+2]), text([]any{tab.values[c][positions[at]]}); got != want {
						t.Fatalf("%s: column %d row %d is %s, want %s", tab.note, c, positions[at], got, want)
					}
				}
				at++
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%s, rows %v: %v", tab.note, rows, err)
		}
		if at != len(positions) {
			t.Fatalf("%s: %d rows, want %d", tab.note, at, len(positions))
		}
		if round == 3 {
			checkStatistics(t, tab, f, b)
		}
	}
}

// checkStatistics holds every bound and count against the rows.
func checkStatistics(t *testing.T, tab table, f *parquetio.File, b *parquetio.Binding) {
	t.Helper()
	for c, field := range f.Schema().Fields {
		s := b.Statistics(c)
		for g := range s.Groups {
			for _, x := range append(s.Pages[g], s.Groups[g]) {
				checkBounds(t, tab, field.Type, tab.values[c], x)
			}
		}
	}
}

func checkBounds(t *testing.T, tab table, typ column.Type, values []any, x parquetio.Bounds) {
	t.Helper()
	nulls, nans := int64(0), int64(0)
	for _, v := range values[x.Rows.Start:x.Rows.End] {
		if v == nil {
			nulls++
			continue
		}
		if x.Min == nil && x.Max == nil && x.NaNs < 0 {
			continue
		}
		val := valueOf(typ, v)
		if val.IsNaN() {
			nans++
			continue
		}
		if x.Min != nil && column.Compare(val, *x.Min) < 0 || x.Max != nil && column.Compare(val, *x.Max) > 0 {
			t.Errorf("%s: %#v outside [%#v, %#v] of rows %v", tab.note, val, x.Min, x.Max, x.Rows)
		}
	}
	if x.Nulls >= 0 && x.Nulls != nulls || x.NaNs >= 0 && x.NaNs != nans {
		t.Errorf("%s: %s rows %v: %d nulls %d NaNs, stated %d %d", tab.note, typ, x.Rows, nulls, nans, x.Nulls, x.NaNs)
	}
}
