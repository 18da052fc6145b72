package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
)

// TestJudgementsAreMonotone: the more rows match, the more asking takes and the less it saves, so that an index which is not asked about few
// rows is not asked about more; of a larger artifact more entries may be taken.
func TestJudgementsAreMonotone(t *testing.T) {
	rng := indextest.Rand(t)
	known := Known{1: uniform(t, 10000)}
	for range 500 {
		s := &Scene{
			Profile: []Profile{LocalStore, ObjectStore}[rng.IntN(2)], MinSelectivity: 0.5, Known: known, Files: 1 + rng.IntN(5000),
			Bytes: 1 + rng.Int64N(1<<40), Rows: 1 + rng.Int64N(1<<32), Columns: 1 + rng.IntN(50), Cores: rng.IntN(17), Tail: rng.Int64N(1 << 17),
			Shares: Shares{1: rng.Float64()},
		}
		o := Offer{Exact: rng.IntN(2) == 0, PerFile: rng.IntN(2) == 0, Values: 1 + rng.IntN(300), Listed: rng.IntN(3) == 0}
		low := 1 + rng.Int64N(9000)
		few, many := longLeaf(predicate.Less, 1, low), longLeaf(predicate.Less, 1, low+1+rng.Int64N(9999-low))
		for what, judge := range map[string]func(l *predicate.Leaf) Judgement{
			"index":    func(l *predicate.Leaf) Judgement { return s.Judge([]*predicate.Leaf{l}, o) },
			"file map": s.JudgeMap,
		} {
			a, b := judge(few), judge(many)
			require.LessOrEqual(t, a.Share, b.Share)
			require.LessOrEqual(t, a.Index.Seconds, b.Index.Seconds, "%s of %+v", what, s)
			require.GreaterOrEqual(t, a.Saved.Seconds, b.Saved.Seconds, "%s of %+v", what, s)
			require.True(t, a.Ask || !b.Ask, "%s of %+v", what, s)
			require.Equal(t, a.Ask, a.Why == "")
		}
		rows := rng.Int64N(s.Rows)
		require.LessOrEqual(t, s.MostEntries(rows/2, []*predicate.Leaf{few}), s.MostEntries(rows, []*predicate.Leaf{few}))
		require.GreaterOrEqual(t, s.MostEntries(rows, []*predicate.Leaf{few}), int64(0))
	}
	require.Positive(t, (&Scene{Profile: LocalStore}).MostEntries(5, nil), "where nothing is known nothing is stopped")
}

// TestMapsOfScatteredValuesAreNotAsked: where every granule of every file holds one of the values, a file map rules nothing out.
func TestMapsOfScatteredValuesAreNotAsked(t *testing.T) {
	s := &Scene{
		Profile: LocalStore, MinSelectivity: 0.5, Known: Known{1: uniform(t, 10000)}, Files: 20, Bytes: 20 << 20, Rows: 1_000_000, Columns: 5, Cores: 2,
	}
	require.True(t, s.JudgeMap(longLeaf(predicate.Equal, 2, 5)).Ask, "nothing is known of the column")
	require.False(t, s.JudgeMap(longLeaf(predicate.In, 1, 5, 900, 7000, 8000)).Ask, "some 400 rows in 20 files")
	s.Rows = 20_000
	s.Known = Known{1: uniform(t, 100_000)}
	require.True(t, s.JudgeMap(longLeaf(predicate.Equal, 1, 5)).Ask, "a row at most")
}

// TestScansAreWeighedByBytes: opening a file takes its tail, and columns weigh what manifests state of them, or as much as their values are
// wide; a file that is no longer than a tail is read whole by opening it.
func TestScansAreWeighedByBytes(t *testing.T) {
	schema := &column.Schema{Fields: []column.Field{
		{ID: 1, Name: "a", Type: column.Of(column.Long)}, {ID: 2, Name: "b", Type: column.Of(column.String)}, {ID: 3, Name: "c", Type: column.Of(column.Bool)},
	}}
	s := &facts.Snapshot{Schema: schema}
	require.InDelta(t, 8/24.125, SharesOf(s)[1], 1e-9)
	require.InDelta(t, 16/24.125, SharesOf(s)[2], 1e-9)
	s.Files.Stored = map[int]float64{1: 100, 2: 300}
	x := &Scene{Profile: LocalStore, Files: 10, Bytes: 10 << 20, Rows: 1000, Columns: 3, Shares: SharesOf(s), Tail: 64 << 10}
	one := tree(predicate.And, longLeaf(predicate.Equal, 1, 5), longLeaf(predicate.Less, 1, 9))
	require.InDelta(t, 10*(65536+(1<<20)/4), x.Scan(one).Bytes, 1)
	require.InDelta(t, 20, x.Scan(one).Requests, 1e-9)
	both := tree(predicate.Or, longLeaf(predicate.Equal, 1, 5), longLeaf(predicate.Equal, 2, 9))
	require.InDelta(t, 10*(65536+(1<<20)), x.Scan(both).Bytes, 1)
	x.Bytes = 166_000
	require.InDelta(t, 166_000, x.Scan(one).Bytes, 1)
	require.InDelta(t, 10, x.Scan(one).Requests, 1e-9)
}

// TestValueMapsAreAskedOfSelectiveRanges: a range that few rows pass is put to the file map, a negation that every file holds rows of is not.
func TestValueMapsAreAskedOfSelectiveRanges(t *testing.T) {
	for _, p := range []Profile{LocalStore, ObjectStore} {
		s := &Scene{Profile: p, Known: Known{1: uniform(t, 100_000)}, Files: 500, Bytes: 500 << 20, Rows: 100_000, Columns: 5, Cores: 2, Tail: 64 << 10}
		require.True(t, s.JudgeMap(longLeaf(predicate.Less, 1, 50)).Ask, "some 50 rows in 500 files")
		not := longLeaf(predicate.Equal, 1, 1)
		not.Negated = true
		require.False(t, s.JudgeMap(not).Ask)
		require.False(t, s.JudgeMap(longLeaf(predicate.Greater, 1, 1)).Ask)
	}
}
