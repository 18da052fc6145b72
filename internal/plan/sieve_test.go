package plan

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// groupsOf is the facts of a snapshot as manifests of one spec each hold them, and the ordinal of every file in them.
func groupsOf(s *facts.Snapshot) (out []*facts.Group, ordinals [][]int) {
	for id := range s.Specs {
		var rows []int
		for i := range s.Files.Len() {
			if int(s.Files.SpecID[i]) == id {
				rows = append(rows, i)
			}
		}
		if len(rows) > 0 {
			out, ordinals = append(out, groupOf(s, int32(id), rows)), append(ordinals, rows)
		}
	}
	return out, ordinals
}

func groupOf(s *facts.Snapshot, spec int32, rows []int) *facts.Group {
	g := &facts.Group{N: len(rows), Spec: spec, Tuples: map[int]*facts.PartitionColumn{}, Columns: map[int]*facts.Metrics{}}
	type tuple [2]struct {
		known, null bool
		value       column.Value
	}
	var distinct []tuple
	var numbers []int64
	for _, i := range rows {
		var t tuple
		for k, f := range s.Specs[int(spec)].Fields {
			if c := s.Files.Partition[f.ID]; c != nil {
				t[k].known, t[k].null, t[k].value = c.Known[i], c.Null[i], c.Value[i]
			}
		}
		n := slices.Index(distinct, t)
		if n < 0 {
			n, distinct = len(distinct), append(distinct, t)
		}
		numbers = append(numbers, int64(n))
	}
	g.Tuple = facts.PackInts(numbers)
	for k, f := range s.Specs[int(spec)].Fields {
		c := &facts.PartitionColumn{}
		for _, t := range distinct {
			c.Known, c.Null, c.Value = append(c.Known, t[k].known), append(c.Null, t[k].null), append(c.Value, t[k].value)
		}
		g.Tuples[f.ID] = c
	}
	for id, c := range s.Files.Columns {
		pick := func(x []int64) (out []int64) {
			for _, i := range rows {
				out = append(out, at(full(x, s.Files.Len()), i))
			}
			return out
		}
		bound := func(x [][]byte) func(int) []byte {
			return func(k int) []byte {
				if x == nil {
					return nil
				}
				return x[rows[k]]
			}
		}
		g.Columns[id] = facts.PackMetrics(pick(c.Values), pick(c.Nulls), pick(c.NaNs), bound(c.Lower), bound(c.Upper))
	}
	return g
}

// TestSieveAgainstPrune: over tables of all types, written with and without care, the sieve rules out nothing that Prune keeps.
// What it is for, it does: of the plain cases it leaves little for Prune to rule out.
func TestSieveAgainstPrune(t *testing.T) {
	from := seed(t)
	worlds := 400
	if n, err := strconv.Atoi(os.Getenv("SKOMER_RANDOM_WORLDS")); err == nil {
		worlds = 20 * n
	}
	coarse, exact := 0, 0
	for n := range worlds {
		r := rand.New(rand.NewPCG(from, uint64(n)))
		typ, at := primitives[r.IntN(len(primitives))], shape(r.IntN(int(shapes)))
		if typ.Kind == column.Unknown {
			at = topLevel
		}
		w := newWorld(r, typ, at, 1+r.IntN(90))
		if r.IntN(8) == 0 {
			w.facts.NameMapping = []facts.MappedField{{ID: 99, Names: []string{"y"}}}
		}
		groups, ordinals := groupsOf(w.facts)
		for range 4 {
			tree := w.tree(2)
			sieve := NewSieve(w.facts, tree)
			want := Prune(w.facts, tree).Answers
			for k, g := range groups {
				left := sieve.Sift(nil, g)
				require.True(t, slices.IsSorted(left))
				for i, ordinal := range ordinals[k] {
					if want[ordinal] != Out {
						require.Contains(t, left, int32(i), "%s\n%s", tree, w.describe(tree, ordinal))
						continue
					}
					exact++
					if !slices.Contains(left, int32(i)) {
						coarse++
					}
				}
			}
			for i, keep := range sieve.Judge(w.facts) {
				require.Equal(t, want[i] != Out, keep)
			}
		}
	}
	require.Greater(t, coarse*50, exact, "%d of %d files that Prune rules out fell through the sieve", coarse, exact)
}

// TestSieveKeys: every kind that keys serve is ruled out by bounds that lie apart, on either side, and kept when they meet.
func TestSieveKeys(t *testing.T) {
	for _, x := range []struct {
		t                   column.Type
		low, middle, high   column.Value
		op                  predicate.Op
		below, meets, above bool
	}{
		{column.Of(column.Long), long(1), long(5), long(9), predicate.Equal, false, true, false},
		{column.Of(column.Long), long(1), long(5), long(9), predicate.Less, true, false, false},
		{column.Of(column.Long), long(1), long(5), long(9), predicate.GreaterEqual, false, true, true},
		{column.Of(column.Int), integer(-1), integer(0), integer(1), predicate.Equal, false, true, false},
		{column.Of(column.Double), column.DoubleValue(-2), column.DoubleValue(-1), column.DoubleValue(0.5), predicate.Equal, false, true, false},
		{column.Of(column.Float), column.FloatValue(-2), column.FloatValue(0), column.FloatValue(0.5), predicate.Greater, false, false, true},
		{column.Of(column.String), str("a"), str("longer than eight"), str("z"), predicate.Equal, false, true, false},
		{column.Of(column.String), str("a"), str("mm"), str("z"), predicate.StartsWith, false, true, false},
	} {
		leaf := &predicate.Leaf{Column: predicate.Column{Path: column.Path{{ID: 1, Name: "x", Type: x.t}}}, Op: x.op, Values: []column.Value{x.middle}}
		s := &facts.Snapshot{Specs: map[int]*facts.Spec{0: {}}}
		bounds := [][]byte{serial(x.low), serial(x.middle), serial(x.high)}
		of := func(i int) []byte { return bounds[i] }
		unknown := []int64{facts.Unknown, facts.Unknown, facts.Unknown}
		g := &facts.Group{N: 3, Columns: map[int]*facts.Metrics{1: facts.PackMetrics(unknown, unknown, unknown, of, of)}}
		var want []int32
		for i, keep := range []bool{x.below, x.meets, x.above} {
			if keep {
				want = append(want, int32(i))
			}
		}
		require.Equal(t, want, NewSieve(s, &predicate.Tree{Kind: predicate.Test, Leaf: leaf}).Sift(nil, g), "%v %v", x.t, x.op)
	}
}

// TestListedAgainstPrune: a manifest whose summary rules it out holds no file that Prune keeps.
func TestListedAgainstPrune(t *testing.T) {
	from := seed(t)
	out, all := 0, 0
	for n := range 400 {
		r := rand.New(rand.NewPCG(from, uint64(n)))
		typ := primitives[r.IntN(len(primitives)-1)]
		w := newWorld(r, typ, shape(r.IntN(2)), 1+r.IntN(4))
		w.facts.Files.Columns = nil // what bounds and counts contradict, Prune does not believe
		for id, spec := range w.facts.Specs {
			l := &facts.Listed{Spec: int32(id)}
			for _, f := range spec.Fields {
				l.Fields = append(l.Fields, w.summary(int32(id), f))
			}
			for range 6 {
				tree := w.tree(1)
				sieve, answers := NewSieve(w.facts, tree), Prune(w.facts, tree).Answers
				all++
				if sieve.Listed(l) {
					continue
				}
				out++
				for i, a := range answers {
					require.False(t, int(w.facts.Files.SpecID[i]) == id && a != Out && w.statedTuple(i), "%s", tree)
				}
			}
		}
	}
	require.Greater(t, out*200, all)
}

// statedTuple reports whether every partition value of a file is stated, and no two of them contradict each other.
func (w *world) statedTuple(i int) bool {
	for _, f := range w.facts.Specs[int(w.facts.Files.SpecID[i])].Fields {
		c := w.facts.Files.Partition[f.ID]
		if !c.Known[i] || c.Null[i] {
			return false
		}
	}
	return len(w.facts.Specs[int(w.facts.Files.SpecID[i])].Fields) < 2
}

// summary is what a list states of a partition field: nothing, unless every value of it is stated and of one kind.
func (w *world) summary(spec int32, f facts.PartitionField) (sum facts.Summary) {
	c := w.facts.Files.Partition[f.ID]
	var least, most *column.Value
	for i := range w.facts.Files.Len() {
		switch {
		case w.facts.Files.SpecID[i] != spec:
		case !c.Known[i]:
			return facts.Summary{}
		case c.Null[i]:
			sum.Null = true
		case c.Value[i].IsNaN():
			sum.NaN = true
		default:
			v := &c.Value[i]
			if least != nil && v.Kind != least.Kind {
				return facts.Summary{}
			}
			if least == nil || column.Compare(*v, *least) < 0 {
				least = v
			}
			if most == nil || column.Compare(*v, *most) > 0 {
				most = v
			}
		}
	}
	if least != nil {
		sum.Lower, sum.Upper = serial(*least), serial(*most)
	}
	return sum
}
