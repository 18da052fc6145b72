package bitmap

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
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

func TestO01NaNRowsSurviveNegation(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(double, 3.0, nan, 3.0, nil))
	not := it.Not(it.Test(double, predicate.Equal, 3.0))
	x.Finds(not, 1)
	x.Finds(it.In(predicate.Iceberg, not), 1, 3)
	x.Finds(it.Not(it.Test(double, predicate.Less, 10.0)), 1)
	x.Finds(it.In(predicate.Iceberg, it.Test(double, predicate.Greater, 10.0)), 1)
}

func TestO02NaNIsNotNull(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(double, nan, 1.5, nil))
	x.Finds(it.Test(double, predicate.IsNaN), 0)
	x.Finds(it.Not(it.Test(double, predicate.IsNaN)), 1)
	x.Finds(it.Not(it.Test(double, predicate.IsNull)), 0, 1)
	x.Finds(it.In(predicate.Iceberg, it.Not(it.Test(double, predicate.IsNaN))), 1, 2)
}

func TestO03ZerosOfEitherSign(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(double, math.Copysign(0, -1), 0.0, 1.0))
	x.Finds(it.Test(double, predicate.Equal, 0.0), 0, 1)
	x.Finds(it.Test(double, predicate.Equal, math.Copysign(0, -1)), 0, 1)
}

func TestO10NullsPassNegatedPrefixInIceberg(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(str, "abc", "abd", nil, "b"))
	not := it.Not(it.Test(str, predicate.StartsWith, "ab"))
	x.Finds(it.In(predicate.Iceberg, not), 2, 3)
	x.Finds(not, 3)
}

func TestO14PromotedColumns(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(column.Of(column.Int), 5, 6, 7, 9))
	x.Finds(it.Test(long, predicate.Equal, 7), 2)
	x.Finds(it.Test(long, predicate.Less, 1<<40), 0, 1, 2, 3)
}

// The bytes depend on the values alone, not on the order in which an encoder meets them.
func TestO36EqualColumnsGiveEqualBytes(t *testing.T) {
	var c it.Column
	c.Type = str
	for i := range 200000 {
		v := column.StringValue(fmt.Sprint("v", i*i%97))
		c.Values = append(c.Values, &v)
	}
	spec := index.Spec{Columns: []column.Path{it.Path(str)}, Rows: uint32(len(c.Values)), RowGroups: []uint32{0}, Pages: []uint32{0}}
	a := it.Build(t, rand.New(rand.NewPCG(1, 1)), Kind{}, &c, spec, index.Budget{})
	b := it.Build(t, rand.New(rand.NewPCG(2, 2)), Kind{}, &c, spec, index.Budget{Memory: 1})
	if !bytes.Equal(a.Root, b.Root) || !bytes.Equal(a.Body, b.Body) {
		t.Error("two builds differ")
	}
}

func TestLikeIsExact(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(str, "foo_bar", "fooxbar", "barfoo", nil, "bar"))
	like := func(p string) *predicate.Leaf {
		l := it.Test(str, predicate.Like)
		l.Pattern = it.Pattern(p, '\\')
		return l
	}
	x.Finds(like(`foo\_bar`), 0)
	x.Finds(like(`foo_bar`), 0, 1)
	x.Finds(like(`%foo`), 2)
	x.Finds(it.Not(like(`%foo%`)), 4)
	x.Finds(it.In(predicate.Iceberg, it.Not(like(`%foo%`))), 3, 4)
}

// Only the row sets that a question needs are read: those asked for, or all the others where these are smaller.
func TestReadsTheSmallerSide(t *testing.T) {
	c := it.Column{Type: long}
	r := rand.New(rand.NewPCG(3, 3))
	for range 50000 {
		v := column.IntValue(column.Long, int64(r.IntN(10)))
		c.Values = append(c.Values, &v)
	}
	x := it.Open(t, Kind{}, c)
	read := func(l *predicate.Leaf) int64 {
		_, cost, err := it.Run(x.Reader.Probe(l), x.Body)
		if err != nil {
			t.Fatal(err)
		}
		return cost.Bytes
	}
	one := read(it.Test(long, predicate.Equal, 3))
	if one == 0 || one > int64(len(x.Body))/8 {
		t.Errorf("one of ten values reads %d of %d bytes", one, len(x.Body))
	}
	if nine := read(it.Test(long, predicate.Less, 9)); nine > int64(len(x.Body))/8 {
		t.Errorf("nine of ten values read %d of %d bytes", nine, len(x.Body))
	}
	if all := read(it.Test(long, predicate.GreaterEqual, 0)); all != 0 {
		t.Errorf("all values read %d bytes", all)
	}
	if none := read(it.Test(long, predicate.Equal, 99)); none != 0 {
		t.Errorf("an absent value reads %d bytes", none)
	}
}

func TestTooManyIsMaybe(t *testing.T) {
	c := it.Of(long, 1, 2, 3, nil)
	x := it.OpenWith(t, Kind{}, c, index.Params{index.ParamCap: "2"})
	if v := x.Ask(it.Test(long, predicate.Equal, 99)); v.May.Count() < 3 || !v.Must.Empty() {
		t.Errorf("must %s, may %s", v.Must, v.May)
	}
	x.Keeps(it.Not(it.Test(long, predicate.Equal, 1)), 0, 1, 2)
	x.Finds(it.Test(long, predicate.IsNull), 3)
	it.OpenWith(t, Kind{}, c, index.Params{index.ParamCap: "3"}).Finds(it.Test(long, predicate.Equal, 99))
	long := strings.Repeat("x", byteCap(defaultCap)+1)
	y := it.Open(t, Kind{}, it.Of(str, long, "a", nil))
	y.Finds(it.Test(str, predicate.IsNull), 2)
	if v := y.Ask(it.Test(str, predicate.Equal, "b")); v.May.Empty() {
		t.Error("a value longer than the cap is missed")
	}
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
