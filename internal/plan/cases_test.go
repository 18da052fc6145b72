package plan

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Known mistakes of other planners, each in the form that a manifest can show. The numbers are those of the project's list
// of public bug reports; each test names one.

func TestO01BoundsNeverSpeakAboutNaN(t *testing.T) { // ClickHouse#118110
	p := path(column.Of(column.Double))
	three := serial(double(3))
	unknown := file(3).counts(3, 0).bounds(three, three)
	some := unknown.nanCount(1)
	none := unknown.nanCount(0)
	s := snapshot(p, nil, unknown, some, none)
	requireAnswers(t, s, negated(ask1(p, predicate.Equal, double(3))), Maybe, Maybe, Out)
	requireAnswers(t, s, negated(ask1(p, predicate.Less, double(10))), Maybe, Maybe, Out)
	requireAnswers(t, s, ask1(p, predicate.Equal, double(3)), Maybe, Maybe, Whole)
	// Engines that order NaN above all numbers find it here.
	requireAnswers(t, s, iceberg(ask1(p, predicate.Greater, double(10))), Maybe, Maybe, Out)
}

func TestO02NaNBoundsAreUnusable(t *testing.T) { // iceberg#6517
	p := path(column.Of(column.Double))
	nan := serial(double(math.NaN()))
	s := snapshot(p, nil,
		file(3).counts(3, 0).bounds(serial(double(1.5)), nan),
		file(3).counts(3, 0).bounds(nan, serial(double(2.5))),
		file(3).counts(3, 0).bounds(nan, nan))
	requireAnswers(t, s, ask1(p, predicate.Equal, double(1.5)), Maybe, Maybe, Maybe)
	requireAnswers(t, s, ask1(p, predicate.Greater, double(7)), Maybe, Maybe, Maybe)
	requireAnswers(t, s, ask1(p, predicate.Less, double(1)), Maybe, Maybe, Maybe)
	requireAnswers(t, s, negated(ask1(p, predicate.IsNull)), Whole, Whole, Whole)
	f := path(column.Of(column.Float))
	nan32 := serial(float32Of(float32(math.NaN())))
	requireAnswers(t, snapshot(f, nil, file(1).bounds(serial(float32Of(2)), nan32)), ask1(f, predicate.Less, float32Of(1)), Maybe)
}

func TestO03ZeroBoundsHaveNoSign(t *testing.T) { // arrow-rs#5047
	p := path(column.Of(column.Double))
	zero, minus := serial(double(0)), serial(double(math.Copysign(0, -1)))
	s := snapshot(p, nil,
		file(2).counts(2, 0).nanCount(0).bounds(zero, serial(double(1))),   // holds -0.0
		file(2).counts(2, 0).nanCount(0).bounds(serial(double(-1)), minus)) // holds +0.0
	for _, v := range []column.Value{double(0), double(math.Copysign(0, -1))} {
		requireAnswers(t, s, ask1(p, predicate.Equal, v), Maybe, Maybe)
		requireAnswers(t, s, iceberg(ask1(p, predicate.Equal, v)), Maybe, Maybe)
		requireAnswers(t, s, ask1(p, predicate.Less, v), Out, Maybe)
		requireAnswers(t, s, ask1(p, predicate.Greater, v), Maybe, Out)
		// Java orders -0.0 below 0.0.
		requireAnswers(t, s, iceberg(ask1(p, predicate.Less, v)), Maybe, Maybe)
		requireAnswers(t, s, iceberg(ask1(p, predicate.Greater, v)), Maybe, Maybe)
		requireAnswers(t, s, iceberg(ask1(p, predicate.GreaterEqual, v)), Maybe, Maybe)
	}
}

func TestO04CrossedBoundsAreUnknown(t *testing.T) { // hardwood#1144: unsigned 0 and 4000000000 as signed
	p := path(column.Of(column.Int))
	s := snapshot(p, nil, file(3).counts(3, 0).bounds([]byte{0, 0, 0, 0}, []byte{0x00, 0x28, 0x6B, 0xEE}))
	requireAnswers(t, s, ask1(p, predicate.Equal, integer(7)), Maybe)
	requireAnswers(t, s, ask1(p, predicate.Greater, integer(5)), Maybe)
	requireAnswers(t, s, ask1(p, predicate.Less, integer(-5)), Maybe)
}

func TestO05DecimalBoundsAreSignExtended(t *testing.T) { // arrow-rs#10860
	p := path(column.DecimalOf(8, 0))
	s := snapshot(p, nil,
		file(4).counts(4, 0).bounds([]byte{0xFE}, []byte{0x01, 0x2C}),             // -2 to 300
		file(4).counts(4, 0).bounds([]byte{0x01, 0x2C}, []byte{0xFE}),             // compared as bytes: crossed
		file(4).counts(4, 0).bounds([]byte{0x00, 0x80}, []byte{0x00, 0x00, 0xFF})) // 128 to 255, not the shortest form
	requireAnswers(t, s, ask1(p, predicate.Equal, unscaled(300)), Maybe, Maybe, Out)
	requireAnswers(t, s, ask1(p, predicate.Less, unscaled(0)), Maybe, Maybe, Out)
	requireAnswers(t, s, ask1(p, predicate.Greater, unscaled(300)), Out, Maybe, Out)
	requireAnswers(t, s, ask1(p, predicate.Less, unscaled(-2)), Out, Maybe, Out)
}

func TestO06TwelveByteTimestampBoundsAreUnknown(t *testing.T) { // trino#5083: INT96
	p := path(column.Of(column.Timestamp))
	late, early := make([]byte, 12), make([]byte, 12)
	late[0], early[11] = 0xFF, 0xFF
	s := snapshot(p, nil, file(2).counts(2, 0).bounds(early, late))
	requireAnswers(t, s, ask1(p, predicate.GreaterEqual, timestamp(1577836800000000)), Maybe)
	requireAnswers(t, s, ask1(p, predicate.Less, timestamp(0)), Maybe)
}

func TestO07SignedStringBoundsAreCrossed(t *testing.T) { // datafusion#24525: as signed bytes, é is below a
	p := path(column.Of(column.String))
	s := snapshot(p, nil, file(3).counts(3, 0).bounds([]byte("é"), []byte("b")))
	requireAnswers(t, s, ask1(p, predicate.Equal, str("az")), Maybe)
}

func TestO08UpperBoundBeforeTheSurrogates(t *testing.T) { // iceberg-go#1645
	p := path(column.Of(column.String))
	head := strings.Repeat("a", 15)
	value := head + "\uD7FF" + "z"
	lower := []byte(head + "\uD7FF")
	s := snapshot(p, nil,
		file(1).bounds(lower, []byte(head+"\uE000")),       // skips the surrogates
		file(1).bounds(lower, []byte(head+"\xED\xA0\x80")), // an unpaired surrogate
		file(1).bounds(lower, []byte(head+"?")),            // what an encoder makes of one
		file(1).bounds(lower, nil))
	requireAnswers(t, s, ask1(p, predicate.Equal, str(value)), Maybe, Maybe, Maybe, Maybe)
	requireAnswers(t, s, ask1(p, predicate.Greater, str("b")), Out, Maybe, Maybe, Maybe)
	require.Equal(t, head+"\uE000", string(cutUpper(column.String, value, 16)), "the tests' own writer")
}

func TestCarelesslyCutStringsAreUnknown(t *testing.T) {
	p := path(column.Of(column.String))
	s := snapshot(p, nil,
		file(1).bounds([]byte("a"), []byte("a\xF0\x9F")), // cut inside 😀, not raised
		file(1).bounds([]byte("a"), []byte("a\uFFFD")),   // the same, repaired
		file(1).bounds([]byte("a\uFFFD"), []byte("b")),   // é repaired upwards
		file(1).bounds([]byte(""), []byte("")))           // cut to nothing
	requireAnswers(t, s, ask1(p, predicate.Equal, str("a😀")), Maybe, Maybe, Maybe, Maybe)
	requireAnswers(t, s, ask1(p, predicate.Equal, str("aé")), Maybe, Maybe, Maybe, Maybe)
	b := path(column.Of(column.Binary))
	requireAnswers(t, snapshot(b, nil, file(1).bounds([]byte{}, []byte{})), ask1(b, predicate.Equal, column.BytesValue(column.Binary, []byte{1})), Maybe)
}

func TestO09MissingStatisticsAreUnknown(t *testing.T) { // datafusion#18241
	p := path(column.Of(column.Int))
	s := snapshot(p, nil, file(3))
	delete(s.Files.Columns, columnID)
	for _, tree := range []*predicate.Tree{ask1(p, predicate.IsNull), negated(ask1(p, predicate.IsNull)), ask1(p, predicate.Equal, integer(10))} {
		requireAnswers(t, s, tree, Maybe)
		requireAnswers(t, snapshot(p, nil, file(3)), tree, Maybe)
	}
	s.Files.Columns[columnID] = &facts.ColumnFacts{} // nothing stated for any file
	requireAnswers(t, s, ask1(p, predicate.IsNull), Maybe)
}

func TestO10NotStartsWithKeepsNulls(t *testing.T) { // iceberg#17656
	p := path(column.Of(column.String))
	s := snapshot(p, nil,
		file(3).counts(3, 1).bounds([]byte("abc"), []byte("abd")),
		file(2).counts(2, 0).bounds([]byte("abc"), []byte("abd")),
		file(2).bounds([]byte("abc"), []byte("abd")))
	not := negated(ask1(p, predicate.StartsWith, str("ab")))
	requireAnswers(t, s, iceberg(not), Maybe, Out, Maybe)
	requireAnswers(t, s, not, Out, Out, Out) // SQL: a null passes neither
	requireAnswers(t, s, ask1(p, predicate.StartsWith, str("ab")), Maybe, Whole, Maybe)
}

func TestO11BoundsAreInTheColumnsUnit(t *testing.T) { // iceberg#18173
	for _, x := range []struct {
		kind column.Kind
		unit int64 // a second
	}{{column.Timestamp, 1e6}, {column.TimestampTZ, 1e6}, {column.TimestampNS, 1e9}, {column.TimestampNZ, 1e9}} {
		p := path(column.Of(x.kind))
		v := column.IntValue(x.kind, 1577836800*x.unit)
		s := snapshot(p, nil, file(1).counts(1, 0).bounds(serial(v), serial(v)))
		limit := column.IntValue(x.kind, 631152000*x.unit)
		requireAnswers(t, s, ask1(p, predicate.Greater, limit), Whole)
		requireAnswers(t, s, ask1(p, predicate.Less, limit), Out)
	}
}

func TestO12UUIDsCompareAsUnsignedBytes(t *testing.T) { // ClickHouse#118366
	p := path(column.Of(column.UUID))
	low, err := hex.DecodeString("00112233445566778899aabbccddeeff")
	require.NoError(t, err)
	high, err := hex.DecodeString("80000000000000000000000000000001")
	require.NoError(t, err)
	s := snapshot(p, nil, file(2).counts(2, 0).bounds(low, high), file(2).bounds(high, low))
	requireAnswers(t, s, ask1(p, predicate.Equal, uuidOf(low)), Maybe, Maybe)
	requireAnswers(t, s, ask1(p, predicate.Equal, uuidOf(high)), Maybe, Maybe)
	above := append([]byte{0x80}, make([]byte, 15)...)
	above[15] = 2
	requireAnswers(t, s, ask1(p, predicate.Equal, uuidOf(above)), Out, Maybe)
}

func TestO13NullStructsHideInCounts(t *testing.T) { // iceberg#18069
	leaf := column.Field{ID: columnID, Name: "m", Type: column.Of(column.Double), Required: true}
	outer := column.Field{ID: aroundID, Name: "s", Type: column.Type{Kind: column.Struct, Fields: []column.Field{leaf}}}
	p := column.Path{outer, leaf}
	s := snapshot(p, nil,
		file(2).counts(1, 0).nanCount(0).bounds(serial(double(34)), serial(double(34))),
		file(2).counts(2, 0).nanCount(0).bounds(serial(double(34)), serial(double(34))),
		file(2).counts(facts.Unknown, 0).nanCount(0),
		file(2).counts(1, 1))
	requireAnswers(t, s, ask1(p, predicate.IsNull), Maybe, Out, Maybe, Maybe)
	requireAnswers(t, s, negated(ask1(p, predicate.IsNull)), Maybe, Whole, Maybe, Maybe)
	requireAnswers(t, s, ask1(p, predicate.Equal, double(34)), Maybe, Whole, Maybe, Maybe)
	required := column.Path{outer, leaf}
	required[0].Required = true
	requireAnswers(t, s, ask1(required, predicate.IsNull), Maybe, Out, Out, Maybe)
}

func TestO14WidthTellsTheTypeOfABound(t *testing.T) { // iceberg-python#3744
	p := path(column.Of(column.Long))
	narrow := file(5).counts(5, 0).bounds([]byte{5, 0, 0, 0}, []byte{9, 0, 0, 0})
	odd := file(5).counts(5, 0).bounds([]byte{5, 0, 0}, []byte{9, 0, 0, 0, 0})
	negative := file(5).counts(5, 0).bounds([]byte{0xFE, 0xFF, 0xFF, 0xFF}, []byte{9, 0, 0, 0})
	s := snapshot(p, nil, narrow, odd, negative)
	requireAnswers(t, s, ask1(p, predicate.Equal, long(7)), Maybe, Maybe, Maybe)
	requireAnswers(t, s, ask1(p, predicate.Greater, long(100)), Out, Maybe, Out)
	requireAnswers(t, s, ask1(p, predicate.Less, long(0)), Out, Maybe, Maybe)
	d := path(column.Of(column.Double))
	s = snapshot(d, nil, file(2).bounds(serial(float32Of(-1.5)), serial(float32Of(2.5))))
	requireAnswers(t, s, ask1(d, predicate.Equal, double(2)), Maybe)
	requireAnswers(t, s, ask1(d, predicate.Greater, double(2.5)), Out)
	ts := path(column.Of(column.Timestamp))
	s = snapshot(ts, nil, file(2).bounds([]byte{10, 0, 0, 0}, []byte{20, 0, 0, 0}))
	requireAnswers(t, s, ask1(ts, predicate.Equal, timestamp(15*microsPerDay)), Maybe)
	requireAnswers(t, s, ask1(ts, predicate.Greater, timestamp(20*microsPerDay)), Out)
}

func TestO15UnknownAndFalse(t *testing.T) { // hudi#10389
	p := path(column.Of(column.Int))
	attrs := column.Path{{ID: 99, Name: "color", Type: column.Of(column.String)}}
	s := snapshot(p, nil,
		file(1).counts(1, 0).bounds(serial(integer(1)), serial(integer(1))),
		file(1).counts(1, 0).bounds(serial(integer(2)), serial(integer(2))))
	unknown := ask1(attrs, predicate.Equal, str("red"))
	id := func(x int64) *predicate.Tree { return ask1(p, predicate.Equal, integer(x)) }
	requireAnswers(t, s, and(id(1), unknown), Maybe, Out)
	requireAnswers(t, s, and(unknown, id(1)), Maybe, Out)
	requireAnswers(t, s, or(id(9), unknown), Maybe, Maybe)
	requireAnswers(t, s, or(id(1), unknown), Whole, Maybe)
	requireAnswers(t, s, or(unknown, id(1)), Whole, Maybe)
	requireAnswers(t, s, or(id(9), id(1)), Whole, Out)
	requireAnswers(t, s, and(or(id(1), id(2)), or(unknown, id(1))), Whole, Maybe)
	requireAnswers(t, s, or(and(id(1), unknown), and(id(2), id(2))), Maybe, Whole)
	requireAnswers(t, s, &predicate.Tree{Kind: predicate.True}, Whole, Whole)
	requireAnswers(t, s, &predicate.Tree{Kind: predicate.False}, Out, Out)
}

func TestO16ColumnsAreFieldIDs(t *testing.T) { // auron#2321
	dropped := path(column.Of(column.String))
	s := snapshot(dropped, nil, file(1).counts(1, 0).bounds([]byte("old"), []byte("old")))
	added := column.Path{{ID: 8, Name: "x", Type: column.Of(column.String)}} // same name, new id
	requireAnswers(t, s, ask1(added, predicate.IsNull), Maybe)
	requireAnswers(t, s, ask1(added, predicate.Equal, str("new")), Maybe)
	renamed := column.Path{{ID: columnID, Name: "new_name", Type: column.Of(column.String)}}
	requireAnswers(t, s, ask1(renamed, predicate.Equal, str("old")), Whole)
	requireAnswers(t, s, ask1(renamed, predicate.Equal, str("new")), Out)
}

func TestO17AddedColumnIsUnknown(t *testing.T) { // iceberg#16690: it may have an initial default
	p := path(column.Of(column.String))
	us := str("US")
	p[0].Initial = &us
	before := file(1) // written before the column existed
	after := file(1).counts(1, 0).bounds([]byte("US"), []byte("US"))
	s := snapshot(p, nil, before, after)
	requireAnswers(t, s, ask1(p, predicate.Equal, us), Maybe, Whole)
	requireAnswers(t, s, negated(ask1(p, predicate.IsNull)), Maybe, Whole)
	requireAnswers(t, s, ask1(p, predicate.Equal, str("CA")), Maybe, Out)
	requireAnswers(t, s, ask1(p, predicate.IsNull), Maybe, Out)
}

func TestO18NotStartsWithOverTruncate(t *testing.T) { // iceberg-go#1192
	p := path(column.Of(column.String))
	s := snapshot(p, []string{"truncate[2]", "identity"},
		file(2).in(1, str("ab")), file(2).in(1, str("zz")), file(2).in(1, str("a")), file(2).in(2, str("abc1")))
	not := negated(ask1(p, predicate.StartsWith, str("abc")))
	requireAnswers(t, s, not, Maybe, Whole, Whole, Out)
	requireAnswers(t, s, iceberg(not), Maybe, Whole, Whole, Out)
	requireAnswers(t, s, ask1(p, predicate.StartsWith, str("abc")), Maybe, Out, Out, Whole)
	requireAnswers(t, s, negated(ask1(p, predicate.StartsWith, str("ab"))), Out, Whole, Whole, Out)
	requireAnswers(t, s, ask1(p, predicate.Equal, str("ab")), Maybe, Out, Out, Out)
	requireAnswers(t, s, negated(ask1(p, predicate.Equal, str("a"))), Whole, Whole, Out, Whole)
}

func TestO19HoursBefore1970(t *testing.T) { // iceberg-go#924
	p := path(column.Of(column.TimestampTZ))
	at := func(seconds int64) column.Value { return column.IntValue(column.TimestampTZ, seconds*1e6) }
	s := snapshot(p, []string{"hour"}, file(1).in(1, integer(-1)), file(1).in(1, integer(0)), file(1).in(1, integer(1)), file(1).in(1, integer(-2)))
	requireAnswers(t, s, ask1(p, predicate.Less, at(0)), Whole, Maybe, Out, Whole)
	// Early Java writers rounded -1.0003 hours to -1 as well as -0.0003 to 0.
	requireAnswers(t, s, ask1(p, predicate.Equal, at(-3601)), Maybe, Out, Out, Maybe)
	requireAnswers(t, s, ask1(p, predicate.Equal, at(-1)), Maybe, Maybe, Out, Out)
	requireAnswers(t, s, ask1(p, predicate.GreaterEqual, at(3600)), Out, Out, Whole, Out)
	for _, transform := range []string{"year", "month", "day"} {
		border := snapshot(p, []string{transform}, file(1).in(1, integer(0)))
		requireAnswers(t, border, ask1(p, predicate.Equal, at(-1)), Maybe)
		requireAnswers(t, border, negated(ask1(p, predicate.GreaterEqual, at(0))), Maybe)
	}
	d := path(column.Of(column.Date))
	day := func(x int64) column.Value { return column.IntValue(column.Date, x) }
	days := snapshot(d, []string{"day", "month"}, file(1).in(1, day(0)), file(1).in(2, integer(0)))
	requireAnswers(t, days, ask1(d, predicate.Equal, day(-1)), Out, Maybe)
}

func TestO20PartitionValuesAreNotPaths(t *testing.T) { // iceberg#7612
	p := path(column.Of(column.String))
	s := snapshot(p, []string{"identity"}, file(1).in(1, str("11/12/13")))
	s.Files.Path[0] = "data/s=11%2F12%2F13/f.parquet"
	requireAnswers(t, s, ask1(p, predicate.Equal, str("11/12/13")), Whole)
	requireAnswers(t, s, ask1(p, predicate.Equal, str("11%2F12%2F13")), Out)
}
