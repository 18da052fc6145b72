package zonemap

import (
	"math"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
)

var (
	double = column.Of(column.Double)
	long   = column.Of(column.Long)
	str    = column.Of(column.String)
	nan    = math.NaN()
)

func TestO01NaNRowsSurviveNegatedBounds(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(double, 3.0, nan, 3.0))
	x.Keeps(it.Not(it.Test(double, predicate.Equal, 3.0)), 0, 1, 2)
	x.Keeps(it.Not(it.Test(double, predicate.Less, 10.0)), 0, 1, 2)
	x.Keeps(it.Test(double, predicate.Greater, 10.0))
	x.Keeps(it.In(predicate.Iceberg, it.Test(double, predicate.Greater, 10.0)), 0, 1, 2)
	plain := it.Open(t, Kind{}, it.Of(double, 3.0, 3.0))
	plain.Finds(it.Not(it.Test(double, predicate.Equal, 3.0)))
}

func TestO02NaNIsNeitherBoundNorNull(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(double, nan, 1.5, 2.5))
	x.Keeps(it.Test(double, predicate.Equal, 1.5), 0, 1, 2)
	x.Finds(it.Not(it.Test(double, predicate.IsNull)), 0, 1, 2)
	it.Open(t, Kind{}, it.Of(double, nan, nan)).Finds(it.Not(it.Test(double, predicate.IsNull)), 0, 1)
}

func TestO03ZerosOfEitherSign(t *testing.T) {
	for _, c := range []it.Column{it.Of(double, math.Copysign(0, -1), 1.0), it.Of(double, -1.0, 0.0), it.Of(double, math.Copysign(0, -1), math.Copysign(0, -1))} {
		x := it.Open(t, Kind{}, c)
		x.Keeps(it.Test(double, predicate.Equal, 0.0), 0, 1)
		x.Keeps(it.Test(double, predicate.Equal, math.Copysign(0, -1)), 0, 1)
	}
}

func TestO04UnsignedBounds(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(long, 0, 4000000000, 7))
	x.Keeps(it.Test(long, predicate.Equal, 4000000000), 0, 1, 2)
	x.Keeps(it.Test(long, predicate.Greater, 3000000000), 0, 1, 2)

	swapped := &bytescan.Writer{}
	z := zone{rows: 3, min: column.AppendKey(nil, it.Lit(long, 7)), max: column.AppendKey(nil, it.Lit(long, 0))}
	z.append(swapped, index.Encoding{Kind: column.Long})
	r := bytescan.NewReader("zone", swapped.Buf)
	if readZone(r, index.Encoding{Kind: column.Long}, 0, 3); !fault.Is(r.Err(), fault.Corrupt) {
		t.Errorf("min above max: %v", r.Err())
	}
}

func TestO05DecimalsCompareByValue(t *testing.T) {
	d := column.DecimalOf(8, 0)
	x := it.Open(t, Kind{}, it.Of(d, 1, 300, -2, 128))
	x.Keeps(it.Test(d, predicate.Equal, 300), 0, 1, 2, 3)
	x.Keeps(it.Test(d, predicate.Less, 0), 0, 1, 2, 3)
	x.Keeps(it.Test(d, predicate.Less, -2))
	x.Keeps(it.Test(d, predicate.Greater, 300))
}

func TestO07StringsCompareAsUnsignedBytes(t *testing.T) {
	it.Open(t, Kind{}, it.Of(str, "aé", "az", "b")).Keeps(it.Test(str, predicate.Equal, "az"), 0, 1, 2)
	it.Open(t, Kind{}, it.Of(str, "aé")).Keeps(it.Test(str, predicate.Equal, "az"))
}

func TestO08CutUpperBoundStaysAbove(t *testing.T) {
	for n := 55; n < 70; n++ {
		for _, tail := range []string{"\uD7FFz", "\U0010FFFFz", "\x7fz"} {
			s := strings.Repeat("a", n) + tail
			it.Open(t, Kind{}, it.Of(str, s)).Keeps(it.Test(str, predicate.Equal, s), 0)
		}
	}
	high := strings.Repeat("\xff", 80)
	binary := column.Of(column.Binary)
	x := it.Open(t, Kind{}, it.Of(binary, high))
	x.Keeps(it.Test(binary, predicate.Equal, high), 0)
	x.Keeps(it.Test(binary, predicate.Greater, high+"\xff"), 0) // there is no upper bound to say no
	x.Keeps(it.Test(binary, predicate.Less, "\xff"))
}

func TestO09NullsAreCountedNotAssumed(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(long, 10, 20, nil, nil, 7), 0, 2, 3, 4)
	x.Finds(it.Test(long, predicate.IsNull), 2, 3)
	x.Finds(it.Not(it.Test(long, predicate.IsNull)), 0, 1, 4)
	mixed := it.Open(t, Kind{}, it.Of(long, 10, 20, nil))
	mixed.Keeps(it.Test(long, predicate.IsNull), 0, 1, 2)
	mixed.Keeps(it.Not(it.Test(long, predicate.IsNull)), 0, 1, 2)
}

func TestO10NullsPassNegatedPrefixInIceberg(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(str, "abc", "abd", nil))
	not := it.Not(it.Test(str, predicate.StartsWith, "ab"))
	x.Keeps(it.In(predicate.Iceberg, not), 0, 1, 2)
	x.Keeps(not)
}

func TestO11UnitsDoNotMix(t *testing.T) {
	micros, nanos := column.Of(column.Timestamp), column.Of(column.TimestampNS)
	x := it.Open(t, Kind{}, it.Of(micros, 1577836800000000))
	x.Finds(it.Test(micros, predicate.Greater, 631152000000000), 0)
	x.Finds(it.Test(micros, predicate.Less, 631152000000000))
	if v, _, err := it.Run(x.Reader.Probe(it.Test(nanos, predicate.Less, 631152000000000)), x.Body); err != nil || !v.May.Full() || !v.Must.Empty() {
		t.Errorf("a microsecond artifact answers nanoseconds: %v, %v", v, err)
	}
}

func TestO12UUIDsCompareAsBigEndianBytes(t *testing.T) {
	u := column.Of(column.UUID)
	a, b := "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"
	x := it.Open(t, Kind{}, it.Of(u, a, b))
	x.Keeps(it.Test(u, predicate.Equal, a), 0, 1)
	x.Keeps(it.Test(u, predicate.Equal, b), 0, 1)
	x.Keeps(it.Test(u, predicate.Equal, "\xff"+a[1:]))
}

func TestO14PromotedColumns(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(column.Of(column.Int), 5, 6, 7, 9))
	x.Keeps(it.Test(long, predicate.Equal, 7), 0, 1, 2, 3)
	x.Finds(it.Test(long, predicate.Greater, 100))
	x.Finds(it.Test(long, predicate.Less, 1<<40), 0, 1, 2, 3)
	f := it.Open(t, Kind{}, it.Of(column.Of(column.Float), 0.5, 1.5))
	f.Keeps(it.Test(double, predicate.Equal, 1.5), 0, 1)
	f.Finds(it.Test(double, predicate.Greater, 1.5000001))
}

// Null rows found by a null test must not be dropped by a map that calls its answer exact.
func TestNullTestOfMixedPageIsNotExact(t *testing.T) {
	v := it.Open(t, Kind{}, it.Of(long, nil, 4)).Ask(it.Test(long, predicate.IsNull))
	if v.Exact() || !v.May.Full() {
		t.Errorf("must %s, may %s", v.Must, v.May)
	}
}

func TestUnderscoreOfLikeIsAWildcard(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(str, "foo_bar", "fooxbar", "foo"), 0, 1, 2)
	like := it.Test(str, predicate.Like)
	like.Pattern = it.Pattern("foo_bar", 0)
	x.Keeps(like, 0, 1, 2)
	if v := x.Ask(like); !v.Must.Empty() {
		t.Errorf("claims %s", v.Must)
	}
}

func TestDateArtifactIsSilentForTimestamps(t *testing.T) {
	date, ts := column.Of(column.Date), column.Of(column.Timestamp)
	x := it.Open(t, Kind{}, it.Of(date, 1, 2))
	for _, leaf := range it.Leaves(ts, it.Lit(ts, 5)) {
		if v, _, _ := it.Run(x.Reader.Probe(leaf), x.Body); !v.May.Full() || !v.Must.Empty() {
			t.Errorf("must %s, may %s\n%s", v.Must, v.May, it.Describe(leaf))
		}
	}
}
