package plan

import (
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index/bloom"
	"github.com/skomerdb/skomer/internal/index/ordered"
	"github.com/skomerdb/skomer/internal/predicate"
)

// TestJoins: leaves are joined within a conjunction only, at any depth, and never a leaf that stands in two places.
func TestJoins(t *testing.T) {
	path := func(id int) column.Path { return column.Path{{ID: id, Name: "c", Type: column.Of(column.Long)}} }
	test := func(id int, op predicate.Op, v int64) *predicate.Tree {
		return predicate.Of(predicate.Leaf{Column: predicate.Column{Path: path(id)}, Op: op, Values: []column.Value{column.IntValue(column.Long, v)}})
	}
	sources := []Source{
		{Kind: bloom.Kind{}, Columns: []column.Path{path(1)}},
		{Kind: ordered.Kind{}, Columns: []column.Path{path(1), path(2)}},
		{Kind: ordered.Kind{}, Columns: []column.Path{path(2)}},
	}
	a, b, c := test(1, predicate.Equal, 1), test(2, predicate.Greater, 5), test(2, predicate.Less, 9)
	for what, x := range map[string]struct {
		tree *predicate.Tree
		want map[int]int // source: leaves joined
	}{
		"one leaf":      {a, nil},
		"conjunction":   {predicate.All(a, b), map[int]int{1: 2}},
		"range":         {predicate.All(b, c), map[int]int{2: 2}},
		"both":          {predicate.All(a, b, c), map[int]int{1: 3, 2: 2}},
		"disjunction":   {predicate.Any(a, b, c), nil},
		"below an OR":   {predicate.Any(test(3, predicate.Equal, 1), predicate.All(a, b)), map[int]int{1: 2}},
		"across an OR":  {predicate.All(a, predicate.Any(b, c)), nil},
		"in two places": {predicate.Any(predicate.All(a, b), predicate.All(a, c)), nil},
	} {
		got := map[int]int{}
		for _, j := range Joins(x.tree, sources) {
			got[j.Source] = len(j.Leaves)
		}
		if len(got) != len(x.want) {
			t.Errorf("%s: joins %v, want %v", what, got, x.want)
		}
		for s, n := range x.want {
			if got[s] != n {
				t.Errorf("%s: joins %v, want %v", what, got, x.want)
			}
		}
	}
}
