package predicate_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/predicate/sqltext"
)

func columnOf(t column.Type) predicate.Column {
	return predicate.Column{Path: column.Path{{ID: 1, Name: "x", Type: t}}}
}

func bindText(t column.Type, kind predicate.LiteralKind, text string) (*predicate.Tree, error) {
	return predicate.Bind(predicate.SQL, columnOf(t), predicate.Equal, predicate.Literal{Kind: kind, Text: text})
}

// TestCalendar compares days, clocks and offsets with package time, over all of its years.
func TestCalendar(t *testing.T) {
	r := seeded(t)
	for range 6000 {
		at := time.Unix(r.Int64N(2*62_000_000_000)-62_000_000_000, r.Int64N(1_000_000)*1000).UTC()
		if at.Year() < 0 || at.Year() > 9999 {
			continue
		}
		zone := time.FixedZone("", (r.IntN(36*60+1)-18*60)*60)
		for layout, kind := range map[string]column.Kind{
			"2006-01-02 15:04:05.999999": column.Timestamp, "2006-01-02T15:04:05.000000000Z07:00": column.TimestampTZ, "2006-01-02T15:04:05.999999Z0700": column.TimestampTZ,
		} {
			local := at
			if kind == column.TimestampTZ {
				local = at.In(zone)
			}
			if local.Year() < 0 || local.Year() > 9999 {
				continue
			}
			tree, err := bindText(column.Of(kind), predicate.TextLiteral, local.Format(layout))
			require.NoError(t, err, local.Format(layout))
			require.Equal(t, at.UnixMicro(), tree.Leaf.Values[0].Int64(), local.Format(layout))
		}
		tree, err := bindText(column.Of(column.Date), predicate.DateLiteral, at.Format(time.DateOnly))
		require.NoError(t, err)
		require.Equal(t, at.Truncate(24*time.Hour).Unix()/86400, tree.Leaf.Values[0].Int64(), at.Format(time.DateOnly))
	}
}

// TestValuesPrintAndBindBack: FormatValue of any value of a type binds to that value.
func TestValuesPrintAndBindBack(t *testing.T) {
	kinds := []column.Kind{column.Date, column.Time, column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ, column.Int, column.Long}
	r := seeded(t)
	for range 6000 {
		kind := pick(r, kinds)
		n := int64(r.Uint64()) >> r.IntN(64)
		switch kind {
		case column.Date, column.Int:
			n = int64(int32(n))
		case column.Time:
			n = r.Int64N(86_400_000_000)
		}
		checkPrinted(t, column.Of(kind), column.IntValue(kind, n))
		checkPrinted(t, column.Of(column.Double), column.DoubleValue(math.Float64frombits(r.Uint64())))
		checkPrinted(t, column.Of(column.Float), column.FloatValue(math.Float32frombits(r.Uint32())))
	}
	for _, n := range []int64{math.MinInt64, math.MaxInt64, 0, -1, 1} {
		for _, kind := range []column.Kind{column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ, column.Long} {
			checkPrinted(t, column.Of(kind), column.IntValue(kind, n))
		}
	}
	checkPrinted(t, column.Of(column.Date), column.IntValue(column.Date, math.MinInt32))
	checkPrinted(t, column.Of(column.Date), column.IntValue(column.Date, math.MaxInt32))
}

func checkPrinted(t *testing.T, typ column.Type, v column.Value) {
	t.Helper()
	if v.IsNaN() {
		return
	}
	s := &column.Schema{Fields: []column.Field{{ID: 1, Name: "x", Type: typ}}}
	text := "x = " + predicate.FormatValue(v)
	tree := sql(t, s, text)
	require.Equal(t, predicate.Equal, tree.Leaf.Op, text)
	require.Zero(t, column.Compare(v, tree.Leaf.Values[0]), "%s bound to %+v", text, tree.Leaf.Values[0])
}

func TestBadTemporalTexts(t *testing.T) {
	for _, text := range []string{
		"", "x", "2026", "2026-01", "2026-1-02", "26-01-02", "2026-13-01", "2026-00-01", "2026-01-00", "2025-02-29", "1900-02-29", "2026-04-31",
		"12026-01-01", "+123-01-01", "+12345678-01-01", "2026-01-02 ", "2026-01-02T", "2026-01-02 25:00", "2026-01-02 12:60", "2026-01-02 12:00:60",
		"2026-01-02 1:00", "2026-01-02 12", "2026-01-02 12:00:00.", "2026-01-02 12:00.5", "2026-01-02 12:00:00.x", "2026-01-02 12:00+19:00",
		"2026-01-02 12:00+1:00", "2026-01-02 12:00+01:60", "2026-01-02 12:00+", "2026-01-02 12:00ZZ", "2026-01-02 12:00 CET", "--01-02", "2026--1-02",
	} {
		_, err := bindText(column.Of(column.TimestampTZ), predicate.TextLiteral, text)
		if text == "2026-01-02 " { // space around is no harm
			require.NoError(t, err)
			continue
		}
		require.Equal(t, fault.Invalid, fault.ClassOf(err), "%q", text)
	}
}

func TestDecimalLimits(t *testing.T) {
	typ := column.DecimalOf(4, 2)
	for text, want := range map[string]string{
		"x < 100": "x <= 99.99", "x < 99.99": "x < 99.99", "x > -99.995": "x >= -99.99", "x <= 0.005": "x <= 0.00", "x >= -0.005": "x > -0.01",
		"x = 1e2": "x = 0.005", "x = 1e-2": "x = 0.01", "x > 99.99": "x > 99.99", "x > 99.991": "x > 99.99", "x > 100": "x = 0.005", "x = 1.500": "x = 1.50",
	} {
		s := &column.Schema{Fields: []column.Field{{ID: 1, Name: "x", Type: typ}}}
		require.Equal(t, want, sql(t, s, text).String(), text)
	}
}

func TestResolve(t *testing.T) {
	_, s := testColumns()
	for _, parts := range [][]string{{"st", "a.b"}, {"st", "a", "b"}, {"ST", "A.B"}, {"St.a.B"}} {
		c, err := predicate.NewNames(s, true).Column(parts)
		require.NoError(t, err, "%q", parts)
		require.Equal(t, 1002, c.ID())
	}
	_, err := predicate.NewNames(s, false).Column([]string{"ST", "a.b"})
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
	require.Equal(t, `did you mean st."a.b"?`, fault.FixOf(err))
}

// TestEvaluatorIsShared: several goroutines may use one evaluator (run with -race).
func TestEvaluatorIsShared(t *testing.T) {
	r := seeded(t)
	cols, s := testColumns()
	cols = without(cols, "m.value")
	e := predicate.Compile(sql(t, s, `("c int" > 0 OR "c string" LIKE '%a%') AND NOT contains(strs, 'a') OR "c double" IN (1, 2, 3, 4, 5, 6, 7, 8)`))
	batch := randomBatch(r, cols).batch(e.Reads(), cols)
	want := e.Rows(batch)
	done := make(chan []uint64)
	for range 4 {
		go func() {
			for range 50 {
				done <- e.Rows(batch)
			}
		}()
	}
	for range 200 {
		require.Equal(t, want, <-done)
	}
}

func BenchmarkRows(b *testing.B) {
	const n = 4096
	longs := make([]int64, n)
	build := column.NewBuilder(column.Of(column.String))
	for i := range longs {
		longs[i] = int64(i * 7919 % 1000)
		build.Append(column.StringValue(textPool[i%len(textPool)]))
	}
	s := &column.Schema{Fields: []column.Field{{ID: 1, Name: "x", Type: column.Of(column.Long)}, {ID: 2, Name: "s", Type: column.Of(column.String)}}}
	vecs := map[int]*column.Vector{
		1: {Type: column.Of(column.Long), Len: n, Fixed: column.BytesOf(longs)},
		2: build.Finish(),
	}
	for _, text := range []string{"x < 500", "x IN (1, 2, 3)", "x IN (1, 2, 3, 4, 5, 6, 7, 8, 9)", "s = 'abc'", "s LIKE '%o_b%'", "x < 10 AND s LIKE '%o_b%'"} {
		tree, err := sqltext.Parse(text, s)
		if err != nil {
			b.Fatal(err)
		}
		e := predicate.Compile(tree)
		batch := &column.Batch{Rows: n}
		for _, p := range e.Reads() {
			batch.Cols = append(batch.Cols, vecs[p.Leaf().ID])
		}
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Rows(batch)
			}
		})
	}
}
