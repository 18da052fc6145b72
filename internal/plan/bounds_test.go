package plan

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

func TestDecodeBound(t *testing.T) {
	for _, x := range []struct {
		t    column.Type
		b    []byte
		want column.Value
	}{
		{column.Of(column.Bool), []byte{0}, column.BoolValue(false)},
		{column.Of(column.Bool), []byte{7}, column.BoolValue(true)},
		{column.Of(column.Int), []byte{0xFE, 0xFF, 0xFF, 0xFF}, integer(-2)},
		{column.Of(column.Date), []byte{1, 0, 0, 0x80}, column.IntValue(column.Date, math.MinInt32+1)},
		{column.Of(column.Long), []byte{0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, long(-2)},
		{column.Of(column.Long), []byte{0xFE, 0xFF, 0xFF, 0xFF}, long(-2)},
		{column.Of(column.Float), []byte{0, 0, 0xC0, 0xBF}, float32Of(-1.5)},
		{column.Of(column.Double), []byte{0, 0, 0xC0, 0xBF}, double(-1.5)},
		{column.Of(column.Double), []byte{0, 0, 0, 0, 0, 0, 0xF8, 0xBF}, double(-1.5)},
		{column.DecimalOf(38, 2), []byte{0xFF}, decimalOfInt(-1, 2)},
		{column.DecimalOf(38, 2), []byte{0x00, 0xFF}, decimalOfInt(255, 2)},
		{column.DecimalOf(38, 2), []byte{0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, column.DecimalValue(math.MinInt64, 1, 2)},
		{column.Of(column.Time), []byte{1, 0, 0, 0, 1, 0, 0, 0}, column.IntValue(column.Time, 1<<32+1)},
		{column.Of(column.Timestamp), []byte{0xFF, 0xFF, 0xFF, 0xFF}, timestamp(-microsPerDay)},
		{column.Of(column.TimestampNS), []byte{2, 0, 0, 0}, column.IntValue(column.TimestampNS, 2*nanosPerDay)},
		{column.Of(column.String), []byte{}, str("")},
		{column.Of(column.String), []byte("é"), str("é")},
		{column.FixedOf(3), []byte{1, 2}, column.BytesValue(column.Fixed, []byte{1, 2})},
		{column.Of(column.UUID), make([]byte, 16), uuidOf(make([]byte, 16))},
	} {
		v, ok := decodeBound(x.t, x.b)
		require.True(t, ok, "%s %x", x.t, x.b)
		require.Equal(t, x.want, v, "%s %x", x.t, x.b)
	}
}

func decimalOfInt(x int64, scale int) column.Value {
	return column.DecimalValue(x>>63, uint64(x), scale)
}

// A literal that binding did not bring to the column's type is compared with nothing.
func TestLiteralsOfOtherTypes(t *testing.T) {
	p := path(column.Of(column.Long))
	one := serial(long(1))
	s := snapshot(p, nil, file(2).counts(2, 0).bounds(one, one))
	requireAnswers(t, s, ask1(p, predicate.Equal, integer(7)), Maybe)
	requireAnswers(t, s, ask1(p, predicate.StartsWith, str("7")), Maybe)
	requireAnswers(t, s, ask1(p, predicate.Equal), Maybe)
	d := path(column.DecimalOf(9, 2))
	s = snapshot(d, nil, file(2).counts(2, 0).bounds([]byte{1}, []byte{2}))
	requireAnswers(t, s, ask1(d, predicate.Equal, column.DecimalValue(0, 7, 1)), Maybe)
	requireAnswers(t, s, ask1(d, predicate.Equal, column.DecimalValue(0, 7, 2)), Out)
}

func TestNaNLiterals(t *testing.T) {
	p := path(column.Of(column.Double))
	one, nan := serial(double(1)), double(math.NaN())
	s := snapshot(p, nil, file(2).counts(2, 0).nanCount(0).bounds(one, one), file(2).counts(2, 0))
	requireAnswers(t, s, ask1(p, predicate.Equal, nan), Out, Out)
	requireAnswers(t, s, ask1(p, predicate.In, double(1), nan), Whole, Maybe)
	requireAnswers(t, s, negated(ask1(p, predicate.Equal, nan)), Whole, Whole)
	requireAnswers(t, s, iceberg(ask1(p, predicate.Equal, nan)), Out, Maybe)
	requireAnswers(t, s, ask1(p, predicate.Less, nan), Maybe, Maybe)
	requireAnswers(t, s, iceberg(ask1(p, predicate.Greater, nan)), Maybe, Maybe)
}

func TestColumnsOfUnknownTypeAreNull(t *testing.T) {
	p := path(column.Of(column.Unknown))
	s := snapshot(p, nil, file(2))
	requireAnswers(t, s, ask1(p, predicate.IsNull), Whole)
	requireAnswers(t, s, negated(ask1(p, predicate.IsNull)), Out)
}

// Facts that do not speak of every file are not read at all.
func TestShortFactsAreUnknown(t *testing.T) {
	p := path(column.Of(column.Int))
	s := snapshot(p, nil, file(1), file(1))
	s.Files.Columns[columnID] = &facts.ColumnFacts{
		Lower: [][]byte{{9, 0, 0, 0}}, Upper: [][]byte{{9, 0, 0, 0}}, Values: []int64{1}, Nulls: []int64{0}, NaNs: []int64{0},
	}
	requireAnswers(t, s, ask1(p, predicate.Equal, integer(7)), Maybe, Maybe)
	requireAnswers(t, s, ask1(p, predicate.IsNull), Maybe, Maybe)
	s = snapshot(p, []string{"identity"}, file(1).in(1, integer(7)), file(1).in(1, integer(7)))
	s.Files.Partition[partitionID+1].Null = []bool{false}
	requireAnswers(t, s, ask1(p, predicate.Equal, integer(8)), Maybe, Maybe)
}

// Widths that no type, and no type before a promotion, has.
func TestDecodeBoundRefusesOtherWidths(t *testing.T) {
	widths := map[column.Kind][]int{
		column.Bool: {1}, column.Int: {4}, column.Long: {4, 8}, column.Float: {4}, column.Double: {4, 8}, column.Date: {4}, column.Time: {8},
		column.Timestamp: {4, 8}, column.TimestampTZ: {8}, column.TimestampNS: {4, 8}, column.TimestampNZ: {8}, column.UUID: {16},
		column.Fixed: {1, 2, 3, 4, 5}, column.Decimal: {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		column.Unknown: {}, column.Struct: {}, column.List: {}, column.Map: {}, column.Variant: {}, column.Geometry: {}, column.Geography: {},
	}
	for kind, good := range widths {
		typ := column.Type{Kind: kind, Width: 5}
		for n := range 20 {
			_, ok := decodeBound(typ, make([]byte, n))
			require.Equal(t, slices.Contains(good, n), ok, "%s of %d bytes", kind, n)
		}
	}
	// Dates that no timestamp reaches.
	for _, kind := range []column.Kind{column.Timestamp, column.TimestampNS} {
		_, ok := decodeBound(column.Of(kind), []byte{0xFF, 0xFF, 0xFF, 0x7F})
		require.False(t, ok)
	}
}

func FuzzDecodeBounds(f *testing.F) {
	f.Add(uint8(2), 0, 0, []byte{1, 0, 0, 0}, []byte{2, 0, 0, 0})
	f.Add(uint8(6), 38, 10, []byte{0x80}, []byte{0x7F, 0xFF})
	f.Add(uint8(13), 0, 0, []byte("a\xF0\x9F"), []byte("\uFFFD"))
	f.Add(uint8(15), 3, 0, []byte{}, []byte{1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, kind uint8, width, scale int, lower, upper []byte) {
		typ := column.Type{Kind: column.Kind(kind), Width: width, Scale: scale & 63}
		r := decodeBounds(typ, lower, upper)
		if r.hasLo && r.hasHi && column.Compare(r.lo, r.hi) > 0 {
			t.Fatalf("%v: %x is above %x", typ, lower, upper)
		}
		if r.hasLo && r.lo.IsNaN() || r.hasHi && r.hi.IsNaN() {
			t.Fatalf("%v: NaN bound", typ)
		}
	})
}
