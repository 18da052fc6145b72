package plan

import (
	"encoding/hex"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// The vectors of the Iceberg specification, appendix B.
func TestBucketHashVectors(t *testing.T) {
	at := func(text string) int64 {
		x, err := time.Parse(time.RFC3339Nano, text)
		require.NoError(t, err)
		return x.UnixNano()
	}
	uuid, err := hex.DecodeString("f79c3e09677c4bbda4793f349cb785e7")
	require.NoError(t, err)
	for _, x := range []struct {
		v    column.Value
		want int32
	}{
		{integer(34), 2017239379},
		{long(34), 2017239379},
		{column.DecimalValue(0, 1420, 2), -500754589},
		{column.IntValue(column.Date, 17486), -653330422},
		{column.IntValue(column.Time, 81_068_000_000), -662762989},
		{timestamp(at("2017-11-16T22:31:08Z") / 1000), -2047944441},
		{timestamp(at("2017-11-16T22:31:08.000001Z") / 1000), -1207196810},
		{column.IntValue(column.TimestampTZ, at("2017-11-16T14:31:08-08:00")/1000), -2047944441},
		{column.IntValue(column.TimestampTZ, at("2017-11-16T14:31:08.000001-08:00")/1000), -1207196810},
		{column.IntValue(column.TimestampNS, at("2017-11-16T22:31:08Z")), -2047944441},
		{column.IntValue(column.TimestampNS, at("2017-11-16T22:31:08.000001001Z")), -1207196810},
		{column.IntValue(column.TimestampNZ, at("2017-11-16T14:31:08-08:00")), -2047944441},
		{column.IntValue(column.TimestampNZ, at("2017-11-16T14:31:08.000001001-08:00")), -1207196810},
		{str("iceberg"), 1210000089},
		{uuidOf(uuid), 1488055340},
		{column.BytesValue(column.Fixed, []byte{0, 1, 2, 3}), -188683207},
		{column.BytesValue(column.Binary, []byte{0, 1, 2, 3}), -188683207},
	} {
		require.Equal(t, []uint32{uint32(x.want)}, hashes(x.v), "%v", x.v)
		require.Equal(t, uint32(x.want), specHash(x.v), "the tests' own writer: %v", x.v)
	}
}

func TestNanosecondsBefore1970HashBothWays(t *testing.T) {
	v := column.IntValue(column.TimestampNS, -1500)
	require.ElementsMatch(t, []uint32{hashLong(-1), hashLong(-2)}, hashes(v))
	require.Equal(t, []uint32{hashLong(-1)}, hashes(column.IntValue(column.TimestampNS, -1000)))
}

// The examples of the specification, "Truncate Transform Details", turned round: which values have this partition value?
func TestTruncateIntervals(t *testing.T) {
	for _, x := range []struct {
		transform string
		of        column.Type
		p, lo, hi column.Value
		prefix    bool
	}{
		{"truncate[10]", column.Of(column.Int), integer(0), integer(0), integer(9), false},
		{"truncate[10]", column.Of(column.Int), integer(-10), integer(-10), integer(-1), false},
		{"truncate[10]", column.Of(column.Long), integer(-10), long(-10), long(-1), false}, // promoted
		{"truncate[50]", column.DecimalOf(9, 2), column.DecimalValue(0, 1050, 2), column.DecimalValue(0, 1050, 2), column.DecimalValue(0, 1099, 2), false},
		{"truncate[50]", column.DecimalOf(9, 2), decimalOf(big.NewInt(-50), 2), decimalOf(big.NewInt(-50), 2), decimalOf(big.NewInt(-1), 2), false},
		{"truncate[10]", column.DecimalOf(38, 0), bigDecimal("18446744073709551610"), bigDecimal("18446744073709551610"), bigDecimal("18446744073709551619"), false},
		{"truncate[10]", column.DecimalOf(38, 0), bigDecimal("-18446744073709551620"), bigDecimal("-18446744073709551620"), bigDecimal("-18446744073709551611"), false},
		{"truncate[3]", column.Of(column.String), str("ice"), str("ice"), str("ice"), true},
		{"truncate[3]", column.Of(column.String), str("ic"), str("ic"), str("ic"), false},
		{"truncate[3]", column.Of(column.String), str("éé"), str("éé"), str("éé"), true}, // three or four bytes: who counted what?
		{"truncate[3]", column.Of(column.Binary), column.BytesValue(column.Binary, []byte{1, 2, 3}), column.BytesValue(column.Binary, []byte{1, 2, 3}), column.BytesValue(column.Binary, []byte{1, 2, 3}), true},
	} {
		r, ok := parseTransform(x.transform, x.of).values(&x.p)
		require.True(t, ok, "%v", x)
		require.Equal(t, interval{lo: x.lo, hi: x.hi, hasLo: true, hasHi: true, prefix: x.prefix}, r, "%v", x)
	}
	last := long(math.MaxInt64 - 7)
	top, ok := parseTransform("truncate[10]", column.Of(column.Long)).values(&last)
	require.True(t, ok)
	require.Equal(t, 1, top.above(&last), "open at the end")
}

func bigDecimal(text string) column.Value {
	x, _ := new(big.Int).SetString(text, 10)
	return decimalOf(x, 0)
}

// A value that the transform cannot have made says nothing, whatever made it.
func TestImpossiblePartitionValues(t *testing.T) {
	for _, x := range []struct {
		transform string
		of        column.Type
		p         column.Value
	}{
		{"truncate[10]", column.Of(column.Int), integer(7)},
		{"truncate[10]", column.Of(column.Int), integer(2147483646)}, // wrapped round below the least int
		{"truncate[10]", column.DecimalOf(9, 2), column.DecimalValue(0, 11, 2)},
		{"truncate[10]", column.DecimalOf(9, 2), column.DecimalValue(0, 10, 1)},
		{"truncate[2]", column.Of(column.String), str("abc")},
		{"truncate[2]", column.Of(column.String), column.BytesValue(column.Binary, []byte("ab"))},
		{"truncate[2]", column.Of(column.Int), str("ab")},
		{"identity", column.Of(column.Float), double(0.1)},
		{"identity", column.Of(column.String), integer(7)},
		{"identity", column.Of(column.TimestampTZ), timestamp(7)},
		{"identity", column.Of(column.TimestampTZ), column.IntValue(column.Date, 7)},
		{"identity", column.DecimalOf(9, 2), column.DecimalValue(0, 10, 1)},
		{"identity", column.FixedOf(3), column.BytesValue(column.Fixed, []byte("ab"))},
		{"identity", column.Of(column.UUID), column.BytesValue(column.UUID, []byte("ab"))},
		{"year", column.Of(column.Date), column.IntValue(column.Date, 7)},
		{"hour", column.Of(column.Timestamp), long(7)},
		{"day", column.Of(column.Timestamp), timestamp(7)},
		{"day", column.Of(column.Timestamp), integer(1 << 40)},
		{"day", column.Of(column.Timestamp), column.Value{}},
	} {
		_, ok := parseTransform(x.transform, x.of).values(&x.p)
		require.False(t, ok, "%v", x)
	}
	p := path(column.Of(column.Int))
	s := snapshot(p, []string{"bucket[4]"}, file(1).in(1, integer(4)), file(1).in(1, integer(-1)), file(1).in(1, long(1)))
	requireAnswers(t, s, ask1(p, predicate.In, integer(1)), Maybe, Maybe, Maybe)
}

func TestTransformsThatSayNothing(t *testing.T) {
	for text, of := range map[string]column.Kind{
		"void": column.Int, "unknown": column.Int, "zorder[3]": column.Int, "bucket": column.Int, "bucket[0]": column.Int, "bucket[x]": column.Int,
		"bucket[-4]": column.Int, "bucket[4": column.Int, "bucket[99999999999]": column.Int, "identity[3]": column.Int, "day[1]": column.Date,
		"day": column.String, "hour": column.Date, "year": column.Time, "truncate[4]": column.UUID, "bucket[4]": column.Double,
		"identity": column.Variant, "": column.Int,
	} {
		require.Equal(t, opaque, parseTransform(text, column.Of(of)).kind, "%s of %s", text, of)
	}
	require.Equal(t, transform{kind: bucket, param: 16, of: column.Of(column.Int)}, parseTransform("BUCKET[16]", column.Of(column.Int)))
	p := path(column.Of(column.Int))
	s := snapshot(p, []string{"void", "zorder"}, file(1).inNull(1), file(1).in(2, integer(1)), file(1).inNull(2))
	requireAnswers(t, s, ask1(p, predicate.IsNull), Maybe, Maybe, Maybe)
	requireAnswers(t, s, ask1(p, predicate.Equal, integer(1)), Maybe, Maybe, Maybe)
}

// Partition values come in the column's latest type; a query of an older snapshot binds to an older one.
func TestPartitionValuesAfterALaterPromotion(t *testing.T) {
	p := path(column.Of(column.Int))
	s := snapshot(p, []string{"identity", "truncate[10]", "bucket[8]"}, file(1).in(1, long(7)), file(1).in(2, long(0)))
	requireAnswers(t, s, ask1(p, predicate.Equal, integer(7)), Whole, Maybe)
	requireAnswers(t, s, ask1(p, predicate.Equal, integer(10)), Out, Out)
	f := path(column.Of(column.Float))
	s = snapshot(f, []string{"identity"}, file(1).in(1, double(1.5)), file(1).in(1, double(math.NaN())))
	requireAnswers(t, s, ask1(f, predicate.Equal, float32Of(1.5)), Whole, Out)
	requireAnswers(t, s, ask1(f, predicate.IsNaN), Out, Whole)
	s = snapshot(p, []string{"bucket[8]"}, file(1).in(1, integer(int64(specHash(integer(7))%8))))
	s.Schemas[1] = &column.Schema{ID: 1, Fields: path(column.Of(column.Long))}
	miss := integer(0)
	for specHash(miss)%8 == specHash(integer(7))%8 {
		miss.Lo++
	}
	requireAnswers(t, s, ask1(p, predicate.Equal, miss), Out)
}

// Every year, month, day and hour must begin where the calendar of the time package says.
func TestPeriodsStartWithTheCalendar(t *testing.T) {
	r := rand.New(rand.NewPCG(seed(t), 1))
	for range 20_000 {
		at := time.Unix(r.Int64N(2e11)-1e11, 0).UTC()
		y, m := int64(at.Year()-1970), int64(at.Month())-1
		checkStart(t, year, y, time.Date(at.Year(), 1, 1, 0, 0, 0, 0, time.UTC))
		checkStart(t, month, y*12+m, time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC))
		day0 := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
		checkStart(t, day, day0.Unix()/86400, day0)
		checkStart(t, hour, day0.Unix()/3600+int64(at.Hour()), day0.Add(time.Duration(at.Hour())*time.Hour))
	}
}

func checkStart(t *testing.T, kind transformKind, p int64, want time.Time) {
	t.Helper()
	v, ok := transform{kind: kind, of: column.Of(column.Timestamp)}.start(p)
	require.True(t, ok)
	if v != want.UnixMicro() {
		t.Fatalf("period %d of kind %d starts at %d, want %s", p, kind, v, want)
	}
}

// Periods beyond the reach of the column's type leave the interval open there.
func TestPeriodsBeyondTheType(t *testing.T) {
	ns := transform{kind: year, of: column.Of(column.TimestampNS)}
	last := ns.period(292) // 2262, where int64 nanoseconds end
	require.True(t, last.hasLo)
	require.False(t, last.hasHi)
	first := ns.period(-293)
	require.False(t, first.hasLo)
	require.True(t, first.hasHi)
	far := transform{kind: hour, of: column.Of(column.Timestamp)}.period(math.MaxInt32)
	require.True(t, far.hasLo && far.hasHi, "int32 hours fit microseconds")
	none := transform{kind: month, of: column.Of(column.Timestamp)}.period(math.MaxInt32)
	require.False(t, none.hasLo || none.hasHi)
}

// A file is asked under its own spec, even where v1 tables use a partition field id again for another transform.
func TestSpecEvolution(t *testing.T) {
	p := path(column.Of(column.Int))
	s := snapshot(p, []string{"bucket[8]", "identity"}, file(1).in(1, integer(5)), file(1).in(2, integer(3)), file(1))
	s.Specs[2].Fields[0].ID = partitionID + 1
	pc := s.Files.Partition[partitionID+1]
	pc.Known[1], pc.Value[1] = true, integer(3)
	inBucket, other := integer(10), integer(10)
	for specHash(inBucket)%8 != 5 {
		inBucket.Lo++
	}
	for specHash(other)%8 == 5 {
		other.Lo++
	}
	require.NotEqual(t, uint32(5), specHash(integer(3))%8)
	requireAnswers(t, s, ask1(p, predicate.Equal, integer(3)), Out, Whole, Maybe)
	requireAnswers(t, s, ask1(p, predicate.Equal, inBucket), Maybe, Out, Maybe)
	requireAnswers(t, s, ask1(p, predicate.Equal, other), Out, Out, Maybe)
	requireAnswers(t, s, ask1(p, predicate.In, inBucket, other), Maybe, Out, Maybe)
	requireAnswers(t, s, ask1(p, predicate.Less, integer(-100)), Maybe, Out, Maybe)
}

func TestSeveralFieldsOfOneColumnAddUp(t *testing.T) {
	p := path(column.Of(column.Timestamp))
	s := snapshot(p, []string{"day"}, file(1).in(1, integer(100)))
	s.Specs[1].Fields = append(s.Specs[1].Fields, facts.PartitionField{ID: 2000, SourceID: columnID, Name: "h", Transform: "hour"})
	s.Files.Partition[2000] = &facts.PartitionColumn{Known: []bool{true}, Null: []bool{false}, Value: []column.Value{integer(100*24 + 5)}}
	requireAnswers(t, s, ask1(p, predicate.Less, timestamp(100*microsPerDay+3600e6)), Out)
	requireAnswers(t, s, ask1(p, predicate.Less, timestamp(100*microsPerDay)), Out)
	requireAnswers(t, s, ask1(p, predicate.Less, timestamp(100*microsPerDay+6*3600e6)), Whole)
}

func TestBucketsOfPromotedColumns(t *testing.T) {
	now := path(column.Of(column.Long))
	s := snapshot(now, []string{"bucket[8]"}, file(1).in(1, integer(3)))
	s.Schemas[1] = &column.Schema{ID: 1, Fields: path(column.Of(column.Int))}
	miss := long(10)
	for specHash(miss)%8 == 3 {
		miss.Lo++
	}
	requireAnswers(t, s, ask1(now, predicate.Equal, miss), Out) // int and long hash alike

	ts := path(column.Of(column.Timestamp))
	s = snapshot(ts, []string{"bucket[8]"}, file(1).in(1, integer(3)))
	for miss = timestamp(10); specHash(miss)%8 == 3; miss.Lo++ {
	}
	requireAnswers(t, s, ask1(ts, predicate.Equal, miss), Out)
	s.Schemas[1] = &column.Schema{ID: 1, Fields: path(column.Of(column.Date))}
	requireAnswers(t, s, ask1(ts, predicate.Equal, miss), Maybe) // days and microseconds do not
	requireAnswers(t, s, ask1(ts, predicate.IsNull), Out)
}

func TestNullPartitionMeansNullRows(t *testing.T) {
	for _, text := range []string{"identity", "bucket[4]", "truncate[4]"} {
		p := path(column.Of(column.String))
		s := snapshot(p, []string{text}, file(1).inNull(1), file(1).in(1, map[string]column.Value{"bucket[4]": integer(1)}[text]))
		s.Files.Partition[partitionID+1].Value[1] = map[bool]column.Value{true: integer(1), false: str("a")}[text == "bucket[4]"]
		requireAnswers(t, s, ask1(p, predicate.IsNull), Whole, Out)
		requireAnswers(t, s, negated(ask1(p, predicate.IsNull)), Out, Whole)
		eq := ask1(p, predicate.Equal, str("zzz"))
		require.Equal(t, Out, Prune(s, eq).Answers[0])
		require.Equal(t, Out, Prune(s, negated(eq)).Answers[0])
		require.Equal(t, Whole, Prune(s, iceberg(negated(eq))).Answers[0])
	}
}

func TestUnknownPartitionValuesSayNothing(t *testing.T) {
	p := path(column.Of(column.Int))
	s := snapshot(p, []string{"identity"}, file(1), file(1))
	s.Files.SpecID[0], s.Files.SpecID[1] = 1, 1
	pc := s.Files.Partition[partitionID+1]
	pc.Null[0], pc.Value[1] = true, integer(7)
	requireAnswers(t, s, ask1(p, predicate.Equal, integer(7)), Maybe, Maybe)
	requireAnswers(t, s, ask1(p, predicate.IsNull), Maybe, Maybe)
}

func TestContradictionsProveNothing(t *testing.T) {
	p := path(column.Of(column.Int))
	five, nine := serial(integer(5)), serial(integer(9))
	s := snapshot(p, []string{"identity"},
		file(2).counts(2, 0).bounds(five, nine).in(1, integer(100)), // value outside its bounds
		file(2).counts(2, 0).inNull(1),                              // null partition, no nulls
		file(2).counts(2, 2).in(1, integer(7)),                      // all null, and 7
		file(2).counts(1, 1),                                        // a count that leaves out rows
		file(2).counts(3, 3),
		file(0).counts(0, 0))
	requireAnswers(t, s, ask1(p, predicate.Equal, integer(7)), Out, Maybe, Maybe, Maybe, Maybe, Out)
	requireAnswers(t, s, ask1(p, predicate.Greater, integer(50)), Maybe, Maybe, Maybe, Maybe, Maybe, Out)
	requireAnswers(t, s, ask1(p, predicate.IsNull), Out, Maybe, Maybe, Maybe, Maybe, Out)
	require.Equal(t, "ruled out by the file has no rows", Prune(s, ask1(p, predicate.IsNull)).Reason(5).String())
}
