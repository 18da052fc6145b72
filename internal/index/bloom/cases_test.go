package bloom

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/cespare/xxhash/v2"
	sbbf "github.com/parquet-go/parquet-go/bloom"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

var (
	long   = column.Of(column.Long)
	double = column.Of(column.Double)
	str    = column.Of(column.String)
)

func TestO21SmallIntegersAreFound(t *testing.T) {
	narrow := column.Of(column.Int)
	x := it.Open(t, Kind{}, it.Of(narrow, 1, -2, 127))
	for _, v := range []int{1, -2, 127} {
		x.Keeps(it.Test(narrow, predicate.Equal, v), 0, 1, 2)
		x.Keeps(it.Test(long, predicate.Equal, v), 0, 1, 2)
	}
	x.Keeps(it.Test(long, predicate.Equal, 1<<32+1))
}

func TestO22RowGroupsKeepTheirOwnFilter(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(long, 1, 2, 3, 4), 0, 2)
	x.Keeps(it.Test(long, predicate.Equal, 4), 2, 3)
	x.Keeps(it.Test(long, predicate.In, 1, 4), 0, 1, 2, 3)
	x.Keeps(it.Test(long, predicate.In, 1, 2), 0, 1)
	x.Keeps(it.Test(long, predicate.In))
}

func TestO23NullTestsAreNotAnswered(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(double, 1.0, 2.0, nil))
	for _, op := range []predicate.Op{predicate.IsNull, predicate.IsNaN} {
		x.Keeps(it.Test(double, op), 0, 1, 2)
		x.Keeps(it.Not(it.Test(double, op)), 0, 1, 2)
	}
}

func TestNaNRowsPassForeignComparisons(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(double, 3.0, math.NaN(), 5.0, 5.0), 0, 2)
	x.Keeps(it.Test(double, predicate.Equal, 4.0))
	x.Keeps(it.In(predicate.Iceberg, it.Test(double, predicate.Equal, 4.0)), 0, 1)
	x.Keeps(it.Test(double, predicate.Equal, math.NaN()))
	x.Keeps(it.Not(it.Test(double, predicate.Equal, 3.0)), 0, 1, 2, 3)
}

func TestZerosAreOneKey(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(double, math.Copysign(0, -1)))
	x.Keeps(it.Test(double, predicate.Equal, 0.0), 0)
	x.Keeps(it.Test(double, predicate.Equal, math.Copysign(0, -1)), 0)
}

// An artifact whose rows no longer match what it is said to cover is refused, not asked.
func TestOtherRowCountIsRefused(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(long, 1, 2, 3))
	for _, rows := range []uint32{0, 2, 4} {
		if _, err := (Kind{}).Open(x.Root, rows); !fault.Is(err, fault.Corrupt) {
			t.Errorf("over %d rows: %v", rows, err)
		}
	}
}

// salts of the split-block filter, from the Parquet specification.
var salts = [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}

// specInsert is the specification's pseudo code, to judge what the builder wrote.
func specInsert(filter []uint32, hash uint64) {
	block := filter[8*((hash>>32)*uint64(len(filter)/8)>>32):]
	for i, salt := range salts {
		block[i] |= 1 << (uint32(hash) * salt >> 27)
	}
}

// The hash, the bytes of a value and the filter are pinned: other writers of the same format make the same bits.
func TestFilterIsParquets(t *testing.T) {
	if got := xxhash.Sum64([]byte("abc")); got != 0x44bc2cf5ad770999 {
		t.Fatalf("XXH64 of abc is %#x", got)
	}
	c := it.Column{Type: str}
	for i := range 500 {
		v := it.Lit(str, fmt.Sprintf("key-%d", i))
		c.Values = append(c.Values, &v)
	}
	x := it.Open(t, Kind{}, c)
	spec := make([]uint32, len(x.Body)/4)
	theirs := make(sbbf.SplitBlockFilter, len(x.Body)/blockSize)
	for _, v := range c.Values {
		specInsert(spec, xxhash.Sum64String(v.S))
		theirs.Insert(xxhash.Sum64String(v.S))
	}
	if got := string(x.Body); got != string(column.BytesOf(spec)) || got != string(theirs.Bytes()) {
		t.Error("the filter is not the one of the Parquet specification")
	}
}

func TestRateIsKept(t *testing.T) {
	r := it.Rand(t)
	for _, fpp := range []float64{0.001, 0.01, 0.1} {
		const n = 20000
		c := it.Column{Type: long}
		for range n {
			v := it.Lit(long, int(r.Uint64()>>2))
			c.Values = append(c.Values, &v)
		}
		spec := index.Spec{Columns: []column.Path{it.Path(long)}, Rows: n, RowGroups: []uint32{0}, Pages: []uint32{0}, Params: index.Params{"fpp": fmt.Sprint(fpp)}}
		a := it.Build(t, r, Kind{}, &c, spec, index.Budget{})
		x, err := Kind{}.Open(a.Root, n)
		if err != nil {
			t.Fatal(err)
		}
		passed := 0
		const probes = 40000
		for range probes {
			v, cost, err := it.Run(x.Probe(it.Test(long, predicate.Equal, -int(r.Uint64()>>2)-1)), a.Body)
			if err != nil || cost.Waves != 1 || cost.Bytes > unitSize {
				t.Fatalf("%+v, %v", cost, err)
			}
			if !v.May.Empty() {
				passed++
			}
		}
		if got := float64(passed) / probes; got > fpp*1.25+3*math.Sqrt(fpp/probes) || got < fpp/2 {
			t.Errorf("fpp=%v: %v of absent keys pass", fpp, got)
		}
	}
}

// overfull feeds a builder whose largest filter is far too small.
func overfull(t *testing.T, distinct ...int) it.Artifact {
	t.Helper()
	c, spec := it.Column{Type: long}, index.Spec{Columns: []column.Path{it.Path(long)}}
	for _, n := range distinct {
		spec.RowGroups = append(spec.RowGroups, uint32(len(c.Values)))
		for i := range n {
			v := it.Lit(long, i)
			c.Values = append(c.Values, &v)
		}
	}
	spec.Rows, spec.Pages = uint32(len(c.Values)), spec.RowGroups
	return it.Build(t, rand.New(rand.NewPCG(1, 1)), Kind{maxBlocks: 16}, &c, spec, index.Budget{})
}

func TestOverfullFilterIsNotKept(t *testing.T) {
	if a := overfull(t, 2000, 3000); a.Root != nil || a.Reason == "" || len(a.Body) > 0 {
		t.Errorf("kept %d + %d bytes, reason %q", len(a.Root), len(a.Body), a.Reason)
	}
	a := overfull(t, 2000, 100)
	x, err := Kind{}.Open(a.Root, 2100)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := it.Run(x.Probe(it.Test(long, predicate.Equal, -5)), a.Body)
	if err != nil || v.May.Count() != 2000 || v.May.Contains(2000) {
		t.Errorf("may %s, %v", v.May, err)
	}
}

func TestOverfullFilterIsNotBelieved(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(long, 1, 2, 3))
	at := 1 + 3 + 1 + 1 + 1 + 1 + 1 // version, encoding, body, row groups, rows, state, distinct
	x.Root[at], x.Root[at+1] = 0xff, 0xff
	reader, err := Kind{}.Open(x.Root, 3)
	if err != nil {
		t.Fatal(err)
	}
	if v, cost, _ := it.Run(reader.Probe(it.Test(long, predicate.Equal, 77)), x.Body); !v.May.Full() || cost.Waves != 0 {
		t.Errorf("a full filter says %s after %d waves", v.May, cost.Waves)
	}
}

func TestLongListStopsAtTheLimit(t *testing.T) {
	const n = 400000 // a filter of 480 KiB: 120 units
	c := it.Column{Type: long}
	for i := range n {
		v := it.Lit(long, i)
		c.Values = append(c.Values, &v)
	}
	x := it.Open(t, Kind{}, c, 0, n/4, n/2, n/4*3)
	list := it.Test(long, predicate.In)
	for i := range 2000 {
		list.Values = append(list.Values, it.Lit(long, -i-1))
	}
	_, cost, err := it.Run(x.Reader.Probe(list), x.Body)
	if err != nil || cost.Units > maxProbe || cost.Units == 0 {
		t.Errorf("%+v, %v", cost, err)
	}
}

// TestLongListsOverManyRowGroups: keys × row groups are bounded; what is not tested stays in doubt.
func TestLongListsOverManyRowGroups(t *testing.T) {
	const groups, rows = 200, 20
	c, starts := it.Column{Type: long}, []uint32{}
	for i := range groups * rows {
		v := it.Lit(long, i)
		c.Values = append(c.Values, &v)
		if i%rows == 0 {
			starts = append(starts, uint32(i))
		}
	}
	x := it.Open(t, Kind{}, c, starts...)
	for n, narrow := range map[int]bool{50: true, maxTests: false, maxTests + 1: false, 50_000: false} {
		list := it.Test(long, predicate.In, groups*rows-1)
		for i := range n - 1 {
			list.Values = append(list.Values, it.Lit(long, -i-1))
		}
		list = predicate.Of(*list).Leaf
		x.Reader.Probe(list)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p := x.Reader.Probe(list)
		runtime.ReadMemStats(&after)
		if a := after.TotalAlloc - before.TotalAlloc; a > 4<<20 {
			t.Errorf("a probe of %d values allocates %d bytes", n, a)
		}
		v, _, err := it.Run(p, x.Body)
		if last := (rowset.Range{Start: groups*rows - 1, End: groups * rows}); err != nil || !v.May.Intersects(last) || v.May.Full() == narrow {
			t.Errorf("%d values: %s, %v", n, v.May, err)
		}
	}
}

func TestConcurrentProbes(t *testing.T) {
	x := it.Open(t, Kind{}, it.Of(long, 1, 2, 3, 4), 0, 2)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { x.Keeps(it.Test(long, predicate.Equal, i%4+1), uint32(i%4)&^1, uint32(i%4)|1) })
	}
	wg.Wait()
}

func TestHashSetCountsDistinct(t *testing.T) {
	r := it.Rand(t)
	var s hashSet
	want := map[uint64]bool{}
	for range 20000 {
		h := r.Uint64N(9000) << (60 * r.Uint64N(2))
		s.add(h)
		want[h] = true
	}
	if s.len() != len(want) {
		t.Errorf("%d, want %d", s.len(), len(want))
	}
	seen := 0
	s.each(func(h uint64) {
		if !want[h] {
			t.Errorf("%#x was never added", h)
		}
		seen++
	})
	if seen != len(want) {
		t.Errorf("visited %d of %d", seen, len(want))
	}
}

func TestFillIsRoundedUp(t *testing.T) {
	f := make(sbbf.SplitBlockFilter, 1)
	f.Insert(12345)
	if n := bits.OnesCount64(uint64(f[0][0])); n != 1 {
		t.Fatalf("%d bits in a word", n)
	}
	if got := share(f); got != 8.0/256 || packFill(got) != 2048 {
		t.Errorf("share %v, packed %d", got, packFill(got))
	}
}
