package ordered

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

var (
	long    = column.Of(column.Long)
	double  = column.Of(column.Double)
	str     = column.Of(column.String)
	boolean = column.Of(column.Bool)
	nan     = math.NaN()
)

func TestO01NaNRowsSurviveNegatedComparisons(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(double, 3.0, nan, 3.0, nil))
	x.Finds(it.Not(it.Test(double, predicate.Equal, 3.0)), 1)
	x.Finds(it.Not(it.Test(double, predicate.Less, 10.0)), 1)
	x.Finds(it.Test(double, predicate.Less, 10.0), 0, 2)
	x.Finds(it.In(predicate.Iceberg, it.Test(double, predicate.Less, 10.0)), 0, 1, 2)
	x.Finds(it.In(predicate.Iceberg, it.Not(it.Test(double, predicate.Less, 10.0))), 1, 3)
	x.Finds(it.Test(double, predicate.IsNaN), 1)
	x.Finds(it.Not(it.Test(double, predicate.IsNaN)), 0, 2)
	x.Finds(it.In(predicate.Iceberg, it.Not(it.Test(double, predicate.IsNaN))), 0, 2, 3)
}

func TestO02NaNIsNotNull(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(double, nan, 1.5, 2.5))
	x.Finds(it.Test(double, predicate.Equal, 1.5), 1)
	x.Finds(it.Not(it.Test(double, predicate.IsNull)), 0, 1, 2)
	x.Finds(it.Test(double, predicate.Equal, nan))
}

func TestO03ZerosAreEqual(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(double, math.Copysign(0, -1), 1.0, 0.0, -1.0))
	for _, zero := range []float64{0, math.Copysign(0, -1)} {
		x.Finds(it.Test(double, predicate.Equal, zero), 0, 2)
		x.Finds(it.Test(double, predicate.Less, zero), 3)
		x.Finds(it.Test(double, predicate.GreaterEqual, zero), 0, 1, 2)
	}
}

func TestO04UnsignedBounds(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(long, 0, 4000000000, 7))
	x.Finds(it.Test(long, predicate.Equal, 4000000000), 1)
	x.Finds(it.Test(long, predicate.Greater, 3000000000), 1)
}

func TestO05DecimalsCompareByValue(t *testing.T) {
	d := column.DecimalOf(8, 0)
	x := it.Open(t, Kind{}, it.Of(d, 1, 300, -2, 128))
	x.Finds(it.Test(d, predicate.Equal, 300), 1)
	x.Finds(it.Test(d, predicate.Less, 0), 2)
	x.Finds(it.Test(column.DecimalOf(38, 0), predicate.Equal, 128), 3)
}

func TestO07StringsCompareAsUnsignedBytes(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(str, "aé", "az", "b"))
	x.Finds(it.Test(str, predicate.Equal, "az"), 1)
	x.Finds(it.Test(str, predicate.Greater, "az"), 0, 2)
}

func TestO08LongTextNextToTheSurrogates(t *testing.T) {
	for _, n := range []int{15, 1019, 1021, 1022, 1023, 1030} {
		s := strings.Repeat("a", n) + "\uD7FFz"
		x := it.Open(t, Kind{}, it.Of(str, s, "b"))
		x.Keeps(it.Test(str, predicate.Equal, s), 0)
		x.Keeps(it.Test(str, predicate.StartsWith, s[:n+2]), 0)
		x.Finds(it.Test(str, predicate.GreaterEqual, "b"), 1)
	}
}

func TestO10NullsPassNegatedPrefixInIceberg(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(str, "abc", "abd", nil))
	not := it.Not(it.Test(str, predicate.StartsWith, "ab"))
	x.Finds(it.In(predicate.Iceberg, not), 2)
	x.Finds(not)
}

func TestO11UnitsDoNotMix(t *testing.T) {
	micros := column.Of(column.Timestamp)
	x := it.Open(t, Kind{}, it.Of(micros, 1577836800000000))
	x.Finds(it.Test(micros, predicate.Greater, 631152000000000), 0)
	for _, other := range []column.Kind{column.TimestampNS, column.TimestampTZ, column.Date, column.Long} {
		for _, leaf := range it.Leaves(column.Of(other), it.Lit(column.Of(other), 5)) {
			if v, _, err := it.Run(x.Reader.Probe(leaf), x.Body); err != nil || !v.May.Full() || !v.Must.Empty() {
				t.Errorf("must %s, may %s, %v\n%s", v.Must, v.May, err, it.Describe(leaf))
			}
		}
	}
}

func TestO12UUIDsCompareAsBigEndianBytes(t *testing.T) {
	u := column.Of(column.UUID)
	a, b := "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"
	x := it.Open(t, Kind{}, it.Of(u, a, b))
	x.Finds(it.Test(u, predicate.Equal, a), 0)
	x.Finds(it.Test(u, predicate.Equal, b), 1)
	x.Finds(it.Test(u, predicate.Greater, a), 1)
}

func TestO14PromotedColumns(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(column.Of(column.Int), 5, 6, 7, 9))
	x.Finds(it.Test(long, predicate.Equal, 7), 2)
	x.Finds(it.Test(long, predicate.Greater, 100))
	x.Finds(it.Test(long, predicate.Less, 1<<40), 0, 1, 2, 3)
	f := it.Open(t, Kind{}, it.Of(column.Of(column.Float), 0.5, 0.1))
	f.Finds(it.Test(double, predicate.Equal, float64(float32(0.1))), 1)
	f.Finds(it.Test(double, predicate.Equal, 0.1))
}

func TestO35NegationLeavesNullsOut(t *testing.T) {
	b := it.Open(t, Kind{}, it.Of(boolean, true, false, nil))
	b.Finds(it.Not(it.Test(boolean, predicate.Equal, true)), 1)
	x := it.Open(t, Kind{}, it.Of(long, 1, 5, nil))
	x.Finds(it.Not(it.Test(long, predicate.Less, 2)), 1)
	x.Finds(it.In(predicate.Iceberg, it.Not(it.Test(long, predicate.Less, 2))), 1, 2)
}

func TestO36EqualColumnsGiveEqualBytes(t *testing.T) {
	c := it.Of(long, 1, 2, 3, nil, nil, 2)
	a, b := it.Open(t, Kind{}, c), it.Open(t, Kind{}, c)
	if !bytes.Equal(a.Root, b.Root) || !bytes.Equal(a.Body, b.Body) {
		t.Error("two builds differ")
	}
}

// Null rows of every batch are part of the artifact, through spills too.
func TestNullRowsOfEveryBatch(t *testing.T) {
	r := it.Rand(t)
	c := it.Column{Type: long}
	for i := range 20000 {
		v := it.Lit(long, i%977)
		if c.Values = append(c.Values, &v); i%7 == 0 {
			c.Values[i] = nil
		}
	}
	spec := it.SpecOf(r, long, len(c.Values))
	dir := t.TempDir()
	a := it.Build(t, r, Kind{}, &c, spec, index.Budget{Memory: 1, TempDir: dir})
	whole := it.Build(t, r, Kind{}, &c, spec, index.Budget{TempDir: dir})
	if !bytes.Equal(a.Root, whole.Root) || !bytes.Equal(a.Body, whole.Body) {
		t.Error("spilling changes the bytes")
	}
	x, err := Kind{}.Open(a.Root, spec.Rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range it.Leaves(long, it.Lit(long, 500)) {
		v, _, err := it.Run(x.Probe(leaf), a.Body)
		if bad := it.Wrong(leaf, &c, v); err != nil || bad != "" || !v.Exact() {
			t.Errorf("%s, %v, exact %v\n%s", bad, err, v.Exact(), it.Describe(leaf))
		}
	}
}

func TestUnderscoreOfLikeIsAWildcard(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(str, "foo_bar", "fooxbar", "foo", "fo"))
	like := it.Test(str, predicate.Like)
	like.Pattern = it.Pattern("foo_bar", 0)
	x.Keeps(like, 0, 1, 2)
	if v := x.Ask(like); !v.Must.Empty() {
		t.Errorf("claims %s", v.Must)
	}
	like.Pattern = it.Pattern(`foo\_%`, '\\')
	x.Keeps(like, 0)
}

func TestLongKeysAreDoubtful(t *testing.T) {
	w := strings.Repeat("w", maxKey)
	x := it.Open(t, Kind{}, it.Of(str, w, w+"a", w+"b", "x", strings.Repeat("v", 3000)))
	x.Finds(it.Test(str, predicate.Equal, w), 0)
	x.Keeps(it.Test(str, predicate.Equal, w+"a"), 1, 2)
	x.Keeps(it.Test(str, predicate.Less, w+"b"), 0, 1, 2, 4)
	x.Finds(it.Test(str, predicate.Greater, w), 1, 2, 3)
	x.Finds(it.Test(str, predicate.StartsWith, w), 0, 1, 2)
	if v := x.Ask(it.Test(str, predicate.Less, w+"b")); v.Must.Count() != 2 {
		t.Errorf("claims %s", v.Must)
	}
}

// step lies between the values of large, wide enough that they share few bytes.
const step = 1 << 38

// large builds n rows, the multiples of step, whose directory has two levels.
func large(t testing.TB, n int) ([]byte, *it.Body, index.Reader) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	perm := r.Perm(n)
	root, body := build(t, longs(n, func(i int) int64 { return int64(perm[i]) * step }), 8192, 0)
	x, err := Kind{}.Open(root, uint32(n))
	if err != nil {
		t.Fatal(err)
	}
	return root, body, x
}

func TestLookUpReadsOnePageAndOneBlock(t *testing.T) {
	const n = 3 << 20
	root, body, x := large(t, n)
	if x.(*reader).level != levelPages {
		t.Fatalf("%d rows have a directory of one level in a root of %d bytes", n, len(root))
	}
	r := it.Rand(t)
	for range 200 {
		key := r.IntN(n)*step + r.IntN(2)
		v, cost, err := it.Run(x.Probe(it.Test(long, predicate.Equal, key)), body.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		want := int64(0)
		if key%step == 0 {
			want = 1
		}
		if v.May.Count() != want || !v.Exact() || cost.Waves != 2 || cost.Units != 2 || cost.Bytes > 40<<10 {
			t.Errorf("key %d: %s, %+v", key, v.May, cost)
		}
	}
	for key, want := range map[int]int64{-1: 0, n * step: 0} {
		if v, cost, _ := it.Run(x.Probe(it.Test(long, predicate.Equal, key)), body.Bytes()); v.May.Count() != want || cost.Waves != 0 {
			t.Errorf("key %d outside the values: %s, %+v", key, v.May, cost)
		}
	}
}

func TestWideRangesAreReadFromTheirOtherSideOrNotAtAll(t *testing.T) {
	const n = 3 << 20
	_, body, x := large(t, n)
	for bound, exact := range map[int]bool{0: true, 1000 * step: true, n / 2 * step: false, (n-5)*step + 1: true, n * step: true} {
		for _, op := range []predicate.Op{predicate.Less, predicate.LessEqual, predicate.Greater, predicate.GreaterEqual} {
			v, cost, err := it.Run(x.Probe(it.Test(long, op, bound)), body.Bytes())
			if err != nil || v.Exact() != exact || cost.Bytes > maxProbe+1<<20 {
				t.Errorf("op %d %d: exact %v, %+v, %v", op, bound, v.Exact(), cost, err)
			}
			below := int64((bound + step - 1) / step)
			if exact && op == predicate.Less && v.May.Count() != below || exact && op == predicate.GreaterEqual && v.May.Count() != n-below {
				t.Errorf("op %d %d: %d rows", op, bound, v.May.Count())
			}
			if !exact && (!v.May.Full() || !v.Must.Empty()) {
				t.Errorf("op %d %d: capped and says %s", op, bound, v.May)
			}
		}
	}
}

func TestSmallDirectoryIsOneWave(t *testing.T) {
	root, body := build(t, longs(200000, func(i int) int64 { return int64(i) }), 5000, 0)
	x, err := Kind{}.Open(root, 200000)
	if err != nil {
		t.Fatal(err)
	}
	v, cost, err := it.Run(x.Probe(it.Test(long, predicate.Equal, 77777)), body.Bytes())
	if err != nil || cost.Waves != 1 || cost.Units != 1 || !slices.Equal(v.May.Rows(nil), []uint32{77777}) {
		t.Errorf("%s, %+v, %v", v.May, cost, err)
	}
}

func TestKeyWithManyRowsSpansBlocks(t *testing.T) {
	const n = 100000
	root, body := build(t, longs(n, func(i int) int64 { return int64(i % 3) }), 7000, 0)
	x, err := Kind{}.Open(root, n)
	if err != nil {
		t.Fatal(err)
	}
	for key := range 3 {
		v, _, err := it.Run(x.Probe(it.Test(long, predicate.Equal, key)), body.Bytes())
		if want := int64((n + 2 - key) / 3); err != nil || v.May.Count() != want || !v.Exact() {
			t.Errorf("key %d: %d rows, %v", key, v.May.Count(), err)
		}
	}
}

func TestClusteredValuesTakeRuns(t *testing.T) {
	const n = 1 << 20
	_, body := build(t, longs(n, func(i int) int64 { return int64(i >> 14) }), 8192, 0)
	if body.Len() > 4096 {
		t.Errorf("%d rows of 64 clustered values take %d bytes", n, body.Len())
	}
}

func TestBuildErrors(t *testing.T) {
	spec := index.Spec{Columns: []column.Path{it.Path(str)}, Rows: 4000}
	bad := index.Budget{Memory: 1, TempDir: "/nonexistent/folder"}
	b, err := Kind{}.NewBuilder(spec, bad)
	if err != nil {
		t.Fatal(err)
	}
	v := texts(4000, func(i int) string { return fmt.Sprintf("%020d", i) })
	if err := b.Add([]*column.Vector{v}); !fault.Is(err, fault.Exhausted) {
		t.Errorf("no folder to spill to: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	b, _ = Kind{}.NewBuilder(spec, index.Budget{})
	if err := b.Add([]*column.Vector{texts(4001, func(int) string { return "" })}); !fault.Is(err, fault.Invalid) {
		t.Errorf("too many rows: %v", err)
	}
	if err := b.Add([]*column.Vector{longs(1, func(int) int64 { return 1 })}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("a vector of another type: %v", err)
	}
	if _, _, err := b.Finish(&it.Body{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("too few rows: %v", err)
	}
}

func TestCloseRemovesSpills(t *testing.T) {
	dir := t.TempDir()
	b, err := Kind{}.NewBuilder(index.Spec{Columns: []column.Path{it.Path(long)}, Rows: 5000}, index.Budget{Memory: 1, TempDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Add([]*column.Vector{longs(5000, func(i int) int64 { return int64(-i) })}); err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Fatalf("%d files before Close", len(files))
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("%d files after Close", len(files))
	}
}

// TestLongLists: a list of a hundred thousand values costs its memory once, not once an artifact, and finds what a scan finds, in one block and
// over both levels of the directory.
func TestLongLists(t *testing.T) {
	long, r := column.Of(column.Long), it.Rand(t)
	c := it.Column{Type: long}
	for range 5000 {
		v := column.IntValue(column.Long, int64(r.IntN(1_000_000)))
		c.Values = append(c.Values, &v)
	}
	list := it.Test(long, predicate.In)
	for i := range 100_000 {
		list.Values = append(list.Values, column.IntValue(column.Long, int64(i)*9+2))
	}
	list = predicate.Of(*list).Leaf
	var want []uint32
	for i, v := range c.Values {
		if x := int64(v.Lo); x%9 == 2 && x < 900_000 {
			want = append(want, uint32(i))
		}
	}
	for _, k := range []Kind{{}, {sizes{block: 60, page: 300, runs: 3}}} {
		s := it.Open(t, k, c)
		v, _, err := it.Run(s.Reader.Probe(list), s.Body)
		if err != nil || !v.Exact() || !v.May.Equal(rowset.FromRows(5000, want)) {
			t.Fatalf("must %d, may %d rows, want %d, %v", v.Must.Count(), v.May.Count(), len(want), err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		const probes = 50
		for range probes {
			s.Reader.Probe(list)
		}
		runtime.ReadMemStats(&after)
		if a := (after.TotalAlloc - before.TotalAlloc) / probes; a > 1<<20 {
			t.Errorf("a probe allocates %d bytes", a)
		}
	}
	if got := (Kind{}).Says([]column.Path{it.Path(long), pathOf(0, long)}, list); got != index.Nothing {
		t.Errorf("of two columns it says %s", got)
	}
}
