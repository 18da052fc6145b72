package interop_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/interop"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// ways is how every case is asked.
var ways = []struct {
	name string
	skomer.Query
}{
	{name: "full scan", Query: skomer.Query{NoPrune: true}},
	{name: "without indexes", Query: skomer.Query{NoIndex: true}},
	{name: "with indexes"},
}

// tally counts over the cases of an engine, so that a comparison of nothing fails.
type tally struct {
	tables, asked, rows, deletes int
	used                         map[string]int // answers by kind of the indexes that took part
	files, opened                int            // of the answers with indexes
}

// compareAll asks every case in every way and compares with the engine's answer.
func compareAll(t *testing.T, config skomer.Config, cases []interop.Case) tally {
	sum := tally{used: map[string]int{}}
	for len(cases) > 0 {
		n := 1
		for n < len(cases) && cases[n].Table == cases[0].Table {
			n++
		}
		t.Run(filepath.Base(cases[0].Table), func(t *testing.T) {
			table := indexed(t, config, cases[0].Table, sum.tables)
			for _, c := range cases[:n] {
				sum.compare(t, table, c)
			}
		})
		sum.tables++
		cases = cases[n:]
	}
	t.Logf("%d tables, %d answers with %d rows, %d of snapshots with deletes; with indexes %d of %d files opened, kinds used: %v",
		sum.tables, sum.asked, sum.rows, sum.deletes, sum.opened, sum.files, sum.used)
	return sum
}

var kinds = []string{"zonemap", "bloom", "ordered"}

// indexed opens a table, mounts it, and builds one index a column, of another kind in every table where the column allows it.
func indexed(t *testing.T, config skomer.Config, name string, turn int) *skomer.Table {
	t.Helper()
	ctx := context.Background()
	config.OverlayRoot, config.MaxStaleness, config.MinPlannedFiles, config.MinPlannedScanBytes = t.TempDir(), time.Hour, -1, -1
	client, err := skomer.New(config)
	require.NoError(t, err)
	table, err := client.Open(ctx, name, skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	require.NoError(t, table.Mount(ctx))
	declared := 0
	described, err := table.Describe(ctx, "")
	require.NoError(t, err)
	for i, c := range described.Columns {
		for k := range kinds {
			if _, err := table.AddIndex(ctx, fmt.Sprintf("%s(%q)", kinds[(turn+i+k)%len(kinds)], c.Name)); err == nil {
				declared++
				break
			}
		}
	}
	require.Greater(t, declared, 1)
	report, err := table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Skipped)
	return table
}

func (sum *tally) compare(t *testing.T, table *skomer.Table, c interop.Case) {
	t.Helper()
	for _, way := range ways {
		q := way.Query
		q.Where, q.Select, q.At, q.Limit = c.Where, c.Columns, c.At, -1
		got, stats, err := answer(table, q)
		if err != nil {
			t.Errorf("%s at %q WHERE %s, %s: %v", c.Table, c.At, c.Where, way.name, err)
			continue
		}
		if d := difference(got, c.Rows); d != "" {
			t.Errorf("%s at %q WHERE %s, %s, columns %v: %s", c.Table, c.At, c.Where, way.name, c.Columns, d)
		}
		if !q.NoIndex && !q.NoPrune && c.Where != "" {
			sum.files, sum.opened = sum.files+stats.FilesTotal, sum.opened+stats.FilesOpened
			for _, x := range stats.IndexesUsed {
				kind, _, _ := strings.Cut(x, "(")
				sum.used[kind]++
			}
		}
	}
	sum.asked++
	sum.rows += len(c.Rows)
	if c.Deletes {
		sum.deletes++
	}
}

// answer is the rows of a query, rendered and sorted.
func answer(table *skomer.Table, q skomer.Query) ([]string, skomer.Stats, error) {
	ctx := context.Background()
	rows, err := table.Query(ctx, q)
	if err != nil {
		return nil, skomer.Stats{}, err
	}
	out := []string{}
	err = rows.Each(ctx, func(b *skomer.Batch) error {
		for i := range b.Rows {
			values := make([]string, len(b.Cols))
			for k, c := range b.Cols {
				values[k] = rendered(c, i)
			}
			out = append(out, strings.Join(values, "|"))
		}
		return nil
	})
	sort.Strings(out)
	return out, rows.Stats(), err
}

// difference tells in what two sorted answers differ; empty: in nothing.
func difference(got, want []string) string {
	var more, less []string
	i, k := 0, 0
	for i < len(got) || k < len(want) {
		switch {
		case k == len(want) || i < len(got) && got[i] < want[k]:
			more = append(more, got[i])
			i++
		case i == len(got) || got[i] > want[k]:
			less = append(less, want[k])
			k++
		default:
			i, k = i+1, k+1
		}
	}
	if len(more)+len(less) == 0 {
		return ""
	}
	return fmt.Sprintf("%d rows, should be %d\n  too many (%d): %q\n  missing (%d): %q", len(got), len(want), len(more), head(more), len(less), head(less))
}

func head(rows []string) []string { return rows[:min(3, len(rows))] }

// rendered is a value in the form of interop.Case.
func rendered(v *column.Vector, i int) string {
	if v.Null(i) {
		return "null"
	}
	if v.Dict != nil {
		return rendered(v.Dict, int(v.Idx[i]))
	}
	switch v.Type.Kind {
	case column.Struct:
		var parts []string
		for _, kid := range v.Kids {
			parts = append(parts, rendered(kid, i))
		}
		return "(" + strings.Join(parts, ",") + ")"
	case column.List:
		var parts []string
		for k := v.Off[i]; k < v.Off[i+1]; k++ {
			parts = append(parts, rendered(v.Kids[0], int(k)))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case column.Map:
		var parts []string
		for k := v.Off[i]; k < v.Off[i+1]; k++ {
			parts = append(parts, rendered(v.Kids[0], int(k))+":"+rendered(v.Kids[1], int(k)))
		}
		sort.Strings(parts)
		return "{" + strings.Join(parts, ",") + "}"
	}
	x, ok := v.Value(i)
	if !ok {
		return "null"
	}
	return plain(x)
}

func plain(x column.Value) string {
	switch x.Kind {
	case column.Bool:
		return strconv.FormatBool(x.Lo != 0)
	case column.Float, column.Double:
		if x.IsNaN() {
			return "nan"
		}
		return fmt.Sprintf("f%016x", math.Float64bits(x.Float64()))
	case column.Decimal:
		return tabletest.Unscaled(x).String() + "e" + strconv.Itoa(-int(x.Scale))
	case column.String:
		return quoted(x.S)
	case column.UUID, column.Fixed, column.Binary:
		return "x" + hex.EncodeToString([]byte(x.S))
	default:
		return strconv.FormatInt(x.Int64(), 10)
	}
}

// quoted is a JSON string without needless escapes.
func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}
