package rowset_test

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/rowset"
)

func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay with SKOMER_SEED=%d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 3))
}

var sizes = []uint32{0, 1, 2, 63, 64, 65, 127, 128, 255, 256, 257, 1000, 4096, 4097, 10_000}

// oracle is a set as a map.
type oracle map[uint32]bool

// randomRows draws rows scattered or in runs, so that both forms of a set occur.
func randomRows(r *rand.Rand, size uint32) oracle {
	out := oracle{}
	if size == 0 {
		return out
	}
	switch r.IntN(5) {
	case 0: // few runs
		for range r.IntN(4) {
			start := r.Uint32N(size)
			for i := start; i < min(size, start+r.Uint32N(size)+1); i++ {
				out[i] = true
			}
		}
	case 1: // all
		for i := range size {
			out[i] = true
		}
	case 2: // every other
		for i := r.Uint32N(2); i < size; i += 2 {
			out[i] = true
		}
	default:
		share := []float64{0, 0.01, 0.5, 0.99}[r.IntN(4)]
		for i := range size {
			if r.Float64() < share {
				out[i] = true
			}
		}
	}
	return out
}

func (o oracle) rows() []uint32 {
	out := make([]uint32, 0, len(o))
	for i := range o {
		out = append(out, i)
	}
	slices.Sort(out)
	return out
}

// set builds the rows in one of the ways a set is built.
func (o oracle) set(r *rand.Rand, size uint32) *rowset.Set {
	rows := o.rows()
	switch r.IntN(3) {
	case 0:
		if len(rows) > 0 && r.IntN(2) == 0 {
			rows = append(rows, rows[len(rows)-1])
		}
		return rowset.FromRows(size, rows)
	case 1:
		words := make([]uint64, (int(size)+63)/64+r.IntN(2))
		for i := range len(words) * 64 {
			if o[uint32(i)] || uint32(i) >= size && r.IntN(2) == 0 {
				words[i/64] |= 1 << (i % 64)
			}
		}
		before := slices.Clone(words)
		s := rowset.FromBits(size, words)
		if !slices.Equal(before, words) {
			panic("FromBits wrote to its argument")
		}
		return s
	default:
		var ranges []rowset.Range
		for _, i := range rows {
			ranges = append(ranges, rowset.Range{Start: i, End: min(i+1, size)})
			if r.IntN(3) == 0 {
				ranges = append(ranges, rowset.Range{Start: i, End: i})
			}
		}
		r.Shuffle(len(ranges), func(i, j int) { ranges[i], ranges[j] = ranges[j], ranges[i] })
		return rowset.FromRanges(size, ranges)
	}
}

func requireSet(t *testing.T, want func(uint32) bool, size uint32, s *rowset.Set) {
	t.Helper()
	require.Equal(t, size, s.Size())
	var rows []uint32
	for i := range size {
		if want(i) {
			rows = append(rows, i)
		}
		if want(i) != s.Contains(i) {
			t.Fatalf("row %d of %s: contained is %v", i, s, s.Contains(i))
		}
	}
	require.False(t, s.Contains(size))
	require.False(t, s.Contains(math.MaxUint32))
	require.Equal(t, rows, s.Rows(nil))
	require.EqualValues(t, len(rows), s.Count())
	require.Equal(t, len(rows) == 0, s.Empty())
	require.Equal(t, len(rows) == int(size), s.Full())
	words := s.Words()
	require.Len(t, words, (int(size)+63)/64)
	for i := range len(words) * 64 {
		if got := words[i/64]>>(i%64)&1 == 1; got != (uint32(i) < size && want(uint32(i))) {
			t.Fatalf("bit %d of %s is %v", i, s, got)
		}
	}
	end := uint32(0)
	for i, x := range s.Ranges() {
		if x.Len() == 0 || i > 0 && x.Start <= end || x.End > size {
			t.Fatalf("range %v of %v", x, s.Ranges())
		}
		end = x.End
	}
	require.True(t, s.Equal(rowset.FromRows(size, rows)))
}

func TestSetsEqualTheOracle(t *testing.T) {
	r := seeded(t)
	for range 30 {
		for _, size := range sizes {
			x, y := randomRows(r, size), randomRows(r, size)
			a, b := x.set(r, size), y.set(r, size)
			requireSet(t, func(i uint32) bool { return x[i] }, size, a)
			requireSet(t, func(i uint32) bool { return x[i] && y[i] }, size, rowset.And(a, b))
			requireSet(t, func(i uint32) bool { return x[i] || y[i] }, size, rowset.Or(a, b))
			requireSet(t, func(i uint32) bool { return x[i] && !y[i] }, size, rowset.AndNot(a, b))
			requireSet(t, func(i uint32) bool { return !x[i] }, size, rowset.Not(a))
			requireSet(t, func(i uint32) bool { return x[i] }, size, a) // unchanged by all of it
			require.Equal(t, slices.Equal(x.rows(), y.rows()), a.Equal(b))
			for range 4 {
				start := r.Uint32N(size + 1)
				if r.IntN(2) == 0 {
					start &^= 63
				}
				end := start + r.Uint32N(size-start+1)
				requireSet(t, func(i uint32) bool { return x[start+i] }, end-start, rowset.Slice(a, start, end))
				hit := false
				for i := start; i < end; i++ {
					hit = hit || x[i]
				}
				require.Equal(t, hit, a.Intersects(rowset.Range{Start: start, End: end}), "%s at [%d, %d)", a, start, end)
			}
			require.Equal(t, len(x) > 0, a.Intersects(rowset.Range{Start: 0, End: math.MaxUint32}))
		}
	}
}

func TestConstants(t *testing.T) {
	for _, size := range sizes {
		requireSet(t, func(uint32) bool { return false }, size, rowset.None(size))
		requireSet(t, func(uint32) bool { return true }, size, rowset.All(size))
	}
	huge := rowset.All(math.MaxUint32)
	require.EqualValues(t, math.MaxUint32, huge.Count())
	require.True(t, rowset.Not(huge).Empty())
	require.True(t, huge.Intersects(rowset.Range{Start: math.MaxUint32 - 1, End: math.MaxUint32}))
	last := rowset.FromRows(math.MaxUint32, []uint32{math.MaxUint32 - 1})
	require.EqualValues(t, math.MaxUint32-1, rowset.Not(last).Count())
	require.Panics(t, func() { rowset.FromRows(3, []uint32{3}) })
	require.Panics(t, func() { rowset.FromRanges(3, []rowset.Range{{Start: 0, End: 4}}) })
	require.Panics(t, func() { rowset.And(rowset.All(3), rowset.All(4)) })
	require.Panics(t, func() { rowset.Slice(rowset.All(3), 2, 4) })
}

// randomVerdict draws a true answer and a verdict that brackets it.
func randomVerdict(r *rand.Rand, answer oracle, size uint32) rowset.Verdict {
	must, may := oracle{}, oracle{}
	sure := []float64{0, 0.5, 1}[r.IntN(3)]
	for i := range size {
		if answer[i] && r.Float64() < sure {
			must[i] = true
		}
		if answer[i] || r.Float64() >= sure {
			may[i] = true
		}
	}
	return rowset.Verdict{Must: must.set(r, size), May: may.set(r, size)}
}

func requireBrackets(t *testing.T, v rowset.Verdict, size uint32, answer func(uint32) bool) {
	t.Helper()
	for i := range size {
		if v.Must.Contains(i) && !answer(i) || answer(i) && !v.May.Contains(i) {
			t.Fatalf("row %d: must %v, answer %v, may %v", i, v.Must.Contains(i), answer(i), v.May.Contains(i))
		}
	}
	require.Equal(t, v.Exact(), v.Unsure().Empty())
}

// TestVerdictsStayTrue: whatever verdicts are put together, must ⊆ answer ⊆ may.
func TestVerdictsStayTrue(t *testing.T) {
	r := seeded(t)
	for range 40 {
		for _, size := range sizes {
			x, y, domain := randomRows(r, size), randomRows(r, size), randomRows(r, size)
			a, a2, b := randomVerdict(r, x, size), randomVerdict(r, x, size), randomVerdict(r, y, size)
			requireBrackets(t, rowset.Both(a, b), size, func(i uint32) bool { return x[i] && y[i] })
			requireBrackets(t, rowset.Either(a, b), size, func(i uint32) bool { return x[i] || y[i] })
			tight := rowset.Tighten(a, a2)
			requireBrackets(t, tight, size, func(i uint32) bool { return x[i] })
			require.True(t, rowset.AndNot(tight.May, a.May).Empty() && rowset.AndNot(a.Must, tight.Must).Empty())
			known := oracle{} // a predicate is true inside of its domain only
			for i := range x {
				if domain[i] {
					known[i] = true
				}
			}
			v := randomVerdict(r, known, size)
			requireBrackets(t, rowset.Negate(v, domain.set(r, size)), size, func(i uint32) bool { return domain[i] && !x[i] })
			requireBrackets(t, rowset.Negate(v, nil), size, func(i uint32) bool { return domain[i] && !x[i] })
			requireBrackets(t, rowset.Maybe(size), size, func(i uint32) bool { return x[i] })
			requireBrackets(t, rowset.AtMost(a.May), size, func(i uint32) bool { return x[i] })
			require.True(t, rowset.Exactly(x.set(r, size)).Exact())
			start := r.Uint32N(size + 1)
			end := start + r.Uint32N(size-start+1)
			requireBrackets(t, rowset.SliceVerdict(a, start, end), end-start, func(i uint32) bool { return x[start+i] })
		}
	}
}

func TestString(t *testing.T) {
	require.Equal(t, "none of 5", rowset.None(5).String())
	require.Equal(t, "all of 5", rowset.All(5).String())
	require.Equal(t, "[{1 3}] of 5", rowset.FromRows(5, []uint32{1, 2}).String())
	rows := make([]uint32, 0, 500)
	for i := uint32(0); i < 1000; i += 2 {
		rows = append(rows, i)
	}
	require.Equal(t, "500 of 1000 in 500 ranges", rowset.FromRows(1000, rows).String())
}
