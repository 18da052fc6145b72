package plan

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/index/sketch"
	"github.com/skomerdb/skomer/internal/predicate"
)

// summaryOf sketches a column.
func summaryOf(t *testing.T, r *rand.Rand, c *indextest.Column) *sketch.Summary {
	t.Helper()
	spec := indextest.SpecOf(r, c.Type, len(c.Values))
	a := indextest.Build(t, r, sketch.Kind{}, c, spec, index.Budget{})
	x, err := sketch.OpenRoot(a.Root)
	require.NoError(t, err)
	l := x.Load()
	var data [][]byte
	for _, s := range l.Need() {
		data = append(data, a.Body[s.Off:s.Off+s.Len])
	}
	require.NoError(t, l.Feed(data))
	s, err := l.Sketch().Summary()
	require.NoError(t, err)
	return &s
}

// TestEstimatesFollowTheRows: ranges and null tests on columns of any type and distribution are estimated within a tenth of the rows, and
// each further value of a list may be off by a little more; what
// cannot be estimated is unknown and no number.
func TestEstimatesFollowTheRows(t *testing.T) {
	r := indextest.Rand(t)
	known := 0
	for range 60 {
		typ := indextest.Types[r.IntN(len(indextest.Types))]
		c := indextest.DrawColumn(r, typ, 500+r.IntN(1500))
		k := Known{indextest.Path(typ)[0].ID: summaryOf(t, r, &c)}
		for range 20 {
			leaf := indextest.DrawLeaf(r, &c, typ)
			passing := 0
			for _, v := range c.Values {
				if indextest.Passes(leaf, v) {
					passing++
				}
			}
			got, ok := k.Share(&predicate.Tree{Kind: predicate.Test, Leaf: leaf})
			if !ok {
				continue
			}
			require.False(t, math.IsNaN(got) || got < 0 || got > 1, "%v of %s", got, indextest.Describe(leaf))
			if typ.Kind.Floating() || longest(&c) > 32 {
				continue // dialects differ about NaN; summaries see 32 bytes
			}
			known++
			require.InDelta(t, float64(passing)/float64(len(c.Values)), got, 0.1+0.08*float64(max(1, len(leaf.Values))-1), "%s of %s", indextest.Describe(leaf), typ)
		}
	}
	require.Greater(t, known, 200)
}

// longest is the bytes of the longest key.
func longest(c *indextest.Column) (n int) {
	for _, v := range c.Values {
		if v != nil {
			n = max(n, len(column.AppendKey(nil, *v)))
		}
	}
	return n
}

// uniform is what is known of a long column of the values 0 to n-1.
func uniform(t *testing.T, n int) *sketch.Summary {
	t.Helper()
	values := make([]any, n)
	for i := range values {
		values[i] = i
	}
	c := indextest.Of(column.Of(column.Long), values...)
	return summaryOf(t, rand.New(rand.NewPCG(1, 1)), &c)
}

func longLeaf(op predicate.Op, id int, values ...int64) *predicate.Leaf {
	l := &predicate.Leaf{Column: predicate.Column{Path: column.Path{{ID: id, Name: "x", Type: column.Of(column.Long)}}}, Op: op}
	for _, v := range values {
		l.Values = append(l.Values, column.IntValue(column.Long, v))
	}
	return l
}

func tree(kind predicate.Kind, leaves ...*predicate.Leaf) *predicate.Tree {
	t := &predicate.Tree{Kind: kind}
	for _, l := range leaves {
		t.Kids = append(t.Kids, &predicate.Tree{Kind: predicate.Test, Leaf: l})
	}
	return t
}

// TestLeavesOfAConjunctionAreCut: two halves that overlap in a hundredth are a hundredth, not a quarter; columns multiply; what nothing is
// known of makes the whole unknown.
func TestLeavesOfAConjunctionAreCut(t *testing.T) {
	k := Known{1: uniform(t, 10000), 2: uniform(t, 10000)}
	low, high := longLeaf(predicate.GreaterEqual, 1, 5000), longLeaf(predicate.Less, 1, 5100)
	share, ok := k.Share(tree(predicate.And, low, high))
	require.True(t, ok)
	require.InDelta(t, 0.01, share, 0.01)
	share, ok = k.Share(tree(predicate.And, low, longLeaf(predicate.Less, 2, 1000)))
	require.True(t, ok)
	require.InDelta(t, 0.05, share, 0.02)
	share, ok = k.Share(tree(predicate.Or, low, high))
	require.True(t, ok)
	require.InDelta(t, 0.75, share, 0.03, "as if independent")
	_, ok = k.Share(tree(predicate.And, low, longLeaf(predicate.Less, 3, 1000)))
	require.False(t, ok)
}

// TestU18BroadFiltersAreScanned: an index that would be slower than the scan is not asked, and one that saves is; of what nothing is known
// the indexes are asked.
func TestU18BroadFiltersAreScanned(t *testing.T) {
	s := &Scene{
		Profile: LocalStore, MinSelectivity: 0.5, Known: Known{1: uniform(t, 10000)}, Files: 100, Bytes: 1 << 30, Rows: 10_000_000, Columns: 10,
	}
	_, _, why := s.Broad(tree(predicate.And, longLeaf(predicate.Less, 1, 9000)))
	require.Contains(t, why, "a scan is cheaper")
	_, _, why = s.Broad(tree(predicate.And, longLeaf(predicate.Less, 1, 900)))
	require.Empty(t, why)
	exact, superset := Offer{Exact: true, Values: 1}, Offer{PerFile: true, Values: 1}
	for share, want := range map[int64]bool{1: true, 100: true, 4000: false} {
		j := s.Judge([]*predicate.Leaf{longLeaf(predicate.Less, 1, share)}, exact)
		require.Equal(t, want, j.Ask, "%d of 10000: %+v", share, j)
		require.Equal(t, !want, j.Why != "")
	}
	require.False(t, s.Judge([]*predicate.Leaf{longLeaf(predicate.Less, 1, 100)}, superset).Ask, "a match in every file")
	require.True(t, s.Judge([]*predicate.Leaf{longLeaf(predicate.Less, 7, 100)}, superset).Ask, "nothing is known")
	s.MinSelectivity = 0
	_, _, why = s.Broad(tree(predicate.And, longLeaf(predicate.Less, 1, 9000)))
	require.Empty(t, why)
}

// TestOverlapsCountGranules holds OverlapOf against counting.
func TestOverlapsCountGranules(t *testing.T) {
	r := indextest.Rand(t)
	for range 200 {
		var bounds []Bound
		for range r.IntN(20) {
			a, b := byte(r.IntN(50)), byte(r.IntN(50))
			x := Bound{Low: []byte{min(a, b)}, High: []byte{max(a, b)}, Rows: int64(r.IntN(9)), Empty: r.IntN(9) == 0}
			if r.IntN(9) == 0 {
				x.Low = nil
			}
			bounds = append(bounds, x)
		}
		points := [][]byte{{byte(r.IntN(50))}, {byte(r.IntN(50))}, {byte(r.IntN(50))}}
		want := Overlap{Granules: len(bounds)}
		for _, b := range bounds {
			want.Rows += float64(b.Rows)
			if !b.Empty && b.Low == nil {
				want.Unbounded++
			}
			for _, p := range points {
				if !b.Empty && (b.Low == nil || b.Low[0] <= p[0] && p[0] <= b.High[0]) {
					want.Kept += 1.0 / 3
					want.KeptRows += float64(b.Rows) / 3
				}
			}
		}
		got := OverlapOf(bounds, points)
		require.InDelta(t, want.Kept, got.Kept, 1e-9)
		require.InDelta(t, want.KeptRows, got.KeptRows, 1e-9)
		got.Kept, got.KeptRows, want.Kept, want.KeptRows = 0, 0, 0, 0
		require.Equal(t, want, got)
	}
}
