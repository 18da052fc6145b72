package plan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// TestFoldJoint: with verdicts that are sound, alone and together, the result is sound; the rows that a joint verdict rules out are out, and
// evidence that contradicts itself is still seen.
func TestFoldJoint(t *testing.T) {
	const rows = 70
	rng := rand.New(rand.NewPCG(5, 5))
	set := func(p float64) *rowset.Set {
		var out []uint32
		for i := range uint32(rows) {
			if rng.Float64() < p {
				out = append(out, i)
			}
		}
		return rowset.FromRows(rows, out)
	}
	around := func(s *rowset.Set) rowset.Verdict {
		return rowset.Verdict{Must: rowset.And(s, set(0.6)), May: rowset.Or(s, set(0.3))}
	}
	sharper := 0
	for range 500 {
		truth, said := map[*predicate.Leaf]*rowset.Set{}, map[*predicate.Leaf]rowset.Verdict{}
		var kids []*predicate.Tree
		for i := range 2 + rng.IntN(3) {
			k := predicate.Of(predicate.Leaf{Column: predicate.Column{Path: column.Path{{ID: i, Type: column.Of(column.Long)}}}, Op: predicate.IsNull})
			truth[k.Leaf] = set(0.6)
			said[k.Leaf] = around(truth[k.Leaf])
			kids = append(kids, k)
		}
		tree := predicate.All(kids...)
		want, joined := rowset.All(rows), rowset.All(rows)
		n := 2 + rng.IntN(len(kids)-1)
		var leaves []*predicate.Leaf
		for i, k := range kids {
			want = rowset.And(want, truth[k.Leaf])
			if i < n {
				joined, leaves = rowset.And(joined, truth[k.Leaf]), append(leaves, k.Leaf)
			}
		}
		joint := around(joined)
		leaf := func(l *predicate.Leaf) rowset.Verdict { return said[l] }
		alone := Fold(tree, rows, leaf)
		got := FoldJoint(tree, rows, leaf, func(and *predicate.Tree) []Jointly { return []Jointly{{joint, leaves}} })
		if !rowset.AndNot(want, got.May).Empty() || !rowset.AndNot(got.Must, want).Empty() {
			t.Fatalf("must %s, may %s, want %s", got.Must, got.May, want)
		}
		if !rowset.AndNot(got.May, joint.May).Empty() || !rowset.AndNot(got.May, alone.May).Empty() || !rowset.AndNot(alone.Must, got.Must).Empty() {
			t.Fatal("the joint verdict made the answer vaguer")
		}
		if !got.May.Equal(alone.May) {
			sharper++
		}
		if n == len(kids) && joint.Exact() && !got.Exact() {
			t.Fatal("all leaves have an exact verdict together, and the answer is not exact")
		}
		wrong := FoldJoint(tree, rows, func(*predicate.Leaf) rowset.Verdict { return rowset.Exactly(rowset.All(rows)) },
			func(*predicate.Tree) []Jointly { return []Jointly{{rowset.Exactly(rowset.None(rows)), leaves}} })
		if rowset.AndNot(wrong.Must, wrong.May).Empty() {
			t.Fatal("a contradiction is hidden")
		}
	}
	if sharper == 0 {
		t.Error("joint verdicts never ruled anything out")
	}
}

// TestFoldJointOfTrees: over random trees whose conjunctions have verdicts on several sets of their leaves, overlapping ones too, sound evidence
// gives a sound result, never a contradiction, and nothing vaguer than the leaves alone.
func TestFoldJointOfTrees(t *testing.T) {
	const rows = 67
	rng := rand.New(rand.NewPCG(6, 6))
	set := func(p float64) *rowset.Set {
		out := []uint32{}
		for i := range uint32(rows) {
			if rng.Float64() < p {
				out = append(out, i)
			}
		}
		return rowset.FromRows(rows, out)
	}
	around := func(s *rowset.Set) rowset.Verdict {
		return rowset.Verdict{Must: rowset.And(s, set(0.7)), May: rowset.Or(s, set(0.2))}
	}
	sharper, id := 0, 0
	for range 2000 {
		truth, said := map[*predicate.Leaf]*rowset.Set{}, map[*predicate.Leaf]rowset.Verdict{}
		joints := map[*predicate.Tree][]Jointly{}
		var draw func(depth int) (*predicate.Tree, *rowset.Set)
		draw = func(depth int) (*predicate.Tree, *rowset.Set) {
			if depth == 0 || rng.IntN(4) == 0 {
				id++
				k := predicate.Of(predicate.Leaf{Column: predicate.Column{Path: column.Path{{ID: id, Type: column.Of(column.Long)}}}, Op: predicate.IsNull})
				truth[k.Leaf] = set(0.6)
				said[k.Leaf] = around(truth[k.Leaf])
				return k, truth[k.Leaf]
			}
			x := &predicate.Tree{Kind: []predicate.Kind{predicate.And, predicate.And, predicate.Or}[rng.IntN(3)]}
			var is *rowset.Set
			var leaves []*predicate.Leaf
			for i := range 2 + rng.IntN(3) {
				kid, of := draw(depth - 1)
				x.Kids = append(x.Kids, kid)
				switch {
				case i == 0:
					is = of
				case x.Kind == predicate.And:
					is = rowset.And(is, of)
				default:
					is = rowset.Or(is, of)
				}
				if kid.Kind == predicate.Test {
					leaves = append(leaves, kid.Leaf)
				}
			}
			for range rng.IntN(3) {
				if x.Kind != predicate.And || len(leaves) < 2 {
					break
				}
				rng.Shuffle(len(leaves), func(i, j int) { leaves[i], leaves[j] = leaves[j], leaves[i] })
				of, together := slices.Clone(leaves[:2+rng.IntN(len(leaves)-1)]), rowset.All(rows)
				for _, l := range of {
					together = rowset.And(together, truth[l])
				}
				joints[x] = append(joints[x], Jointly{around(together), of})
			}
			return x, is
		}
		tree, want := draw(3)
		leaf := func(l *predicate.Leaf) rowset.Verdict { return said[l] }
		got, alone := FoldJoint(tree, rows, leaf, func(and *predicate.Tree) []Jointly { return joints[and] }), Fold(tree, rows, leaf)
		if !rowset.AndNot(want, got.May).Empty() || !rowset.AndNot(got.Must, want).Empty() {
			t.Fatalf("must %s, may %s, want %s", got.Must, got.May, want)
		}
		if !rowset.AndNot(got.May, alone.May).Empty() || !rowset.AndNot(alone.Must, got.Must).Empty() {
			t.Fatalf("must %s, may %s; by the leaves alone %s, %s", got.Must, got.May, alone.Must, alone.May)
		}
		if !got.May.Equal(alone.May) || !got.Must.Equal(alone.Must) {
			sharper++
		}
	}
	if sharper < 300 {
		t.Errorf("joint verdicts told more %d times", sharper)
	}
}
