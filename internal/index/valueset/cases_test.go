package valueset

import (
	"math"
	"strings"
	"testing"

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

func TestO01NaNRowsSurviveNegatedSets(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(double, 3.0, nan, 3.0))
	x.Keeps(it.Not(it.Test(double, predicate.Equal, 3.0)), 0, 1, 2)
	x.Keeps(it.Test(double, predicate.Greater, 10.0))
	x.Keeps(it.In(predicate.Iceberg, it.Test(double, predicate.Greater, 10.0)), 0, 1, 2)
	it.Open(t, Kind{}, it.Of(double, 3.0, 3.0)).Finds(it.Not(it.Test(double, predicate.Equal, 3.0)))
	it.Open(t, Kind{}, it.Of(double, nan, nan)).Finds(it.Test(double, predicate.IsNaN), 0, 1)
}

func TestO03ZerosOfEitherSign(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(double, math.Copysign(0, -1), 0.0))
	x.Finds(it.Test(double, predicate.Equal, 0.0), 0, 1)
	x.Finds(it.Test(double, predicate.Equal, math.Copysign(0, -1)), 0, 1)
}

func TestO10NullsPassNegatedPrefixInIceberg(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(str, "abc", "abd", nil))
	not := it.Not(it.Test(str, predicate.StartsWith, "ab"))
	x.Keeps(it.In(predicate.Iceberg, not), 0, 1, 2)
	x.Keeps(not)
}

func TestO14PromotedColumns(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(column.Of(column.Int), 5, 6, 7, 9))
	x.Keeps(it.Test(long, predicate.Equal, 7), 0, 1, 2, 3)
	x.Finds(it.Test(long, predicate.Equal, 8))
	x.Finds(it.Test(long, predicate.Less, 1<<40), 0, 1, 2, 3)
	f := it.Open(t, Kind{}, it.Of(column.Of(column.Float), 0.5, 1.5))
	f.Finds(it.Test(double, predicate.Equal, 1.5000001))
}

func TestValuesThatAreMissingBetweenBounds(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(str, "failed", "ok", "ok", "ok", "failed", nil), 0, 2, 4, 5)
	x.Keeps(it.Test(str, predicate.Equal, "failed"), 0, 1, 4)
	x.Finds(it.Test(str, predicate.Equal, "good"))
	x.Finds(it.Test(str, predicate.In, "failed", "ok"), 0, 1, 2, 3, 4)
	x.Finds(it.Not(it.Test(str, predicate.In, "failed", "ok")))
	x.Finds(it.Test(str, predicate.IsNull), 5)
}

func TestLikeIsTriedOnEveryValue(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(str, "foo_bar", "fooxbar", "barfoo", "bar"), 0, 1, 2, 3)
	like := func(p string) *predicate.Leaf {
		l := it.Test(str, predicate.Like)
		l.Pattern = it.Pattern(p, '\\')
		return l
	}
	x.Finds(like(`foo\_bar`), 0)
	x.Finds(like(`foo_bar`), 0, 1)
	x.Finds(like(`%foo`), 2)
	x.Finds(it.Not(like(`%foo%`)), 3)
}

func TestTooManyIsMaybe(t *testing.T) {
	c := it.Of(long, 1, 2, 3, 4, 4, 4, nil)
	x := it.OpenWith(t, Kind{}, c, index.Params{index.ParamCap: "2"}, 0, 3, 6)
	x.Keeps(it.Test(long, predicate.Equal, 99), 0, 1, 2)
	x.Keeps(it.Test(long, predicate.Equal, 4), 0, 1, 2, 3, 4, 5)
	x.Keeps(it.Not(it.Test(long, predicate.Less, 100)), 0, 1, 2)
	x.Finds(it.Test(long, predicate.IsNull), 6)

	all := it.OpenWith(t, Kind{}, it.Of(long, 1, 2), index.Params{index.ParamCap: "2"})
	all.Finds(it.Test(long, predicate.Equal, 3))
	a, err := it.TryBuild(it.Rand(t), Kind{}, &c, index.Spec{
		Columns: []column.Path{it.Path(long)}, Params: index.Params{index.ParamCap: "2"}, Rows: 7, RowGroups: []uint32{0}, Pages: []uint32{0},
	}, index.Budget{})
	if err != nil || a.Root != nil || !strings.Contains(a.Reason, "more than 2 distinct values") {
		t.Errorf("kept %d bytes, %q, %v", len(a.Root), a.Reason, err)
	}
}

func TestLongValuesAreTooMany(t *testing.T) {
	big := strings.Repeat("x", byteCap(defaultCap)+1)
	x := it.Open(t, Kind{}, it.Of(str, big, "a"), 0, 1)
	x.Keeps(it.Test(str, predicate.Equal, "zz"), 0)
	x.Keeps(it.Test(str, predicate.Equal, "a"), 0, 1)
}

func TestCapIsChecked(t *testing.T) {
	path := []column.Path{it.Path(long)}
	for _, bad := range []string{"0", "-1", "x", "16385", "1.5"} {
		if err := (Kind{}).Check(path, index.Params{index.ParamCap: bad}); !fault.Is(err, fault.Invalid) {
			t.Errorf("cap=%s: %v", bad, err)
		}
	}
	if err := (Kind{}).Check(path, index.Params{index.ParamCap: "16384"}); err != nil {
		t.Error(err)
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
