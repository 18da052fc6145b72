package mask

import (
	"context"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// Evidence tells where rows may be that satisfy a predicate, without reading data files.
type Evidence interface {
	// Where answers for data files, by their ordinals in s.
	Where(ctx context.Context, s *facts.Snapshot, t *predicate.Tree, files []int) ([]Where, error)
}

// Where is the rows of a data file that may satisfy a predicate, and the tag of the bytes it holds for. Nil Rows: anywhere.
type Where struct {
	Rows *rowset.Set
	Tag  store.Tag
}

// maxProbed is the distinct values of a key column that evidence is asked about.
const maxProbed = 256

// predicateOf is a predicate that every row equal to a key satisfies, nil if none is worth asking. Its floats compare as IEEE
// does, so that a zero finds zeros of either sign; null and NaN keys are tests of their own.
func (k *keySet) predicateOf(s *column.Schema) *predicate.Tree {
	var tests []*predicate.Tree
	for i, key := range k.cols {
		path, r := s.ByID(key.Leaf().ID), &k.ranges[i]
		if path == nil || path.Leaf().Type.Kind != key.Leaf().Type.Kind || r.many {
			continue
		}
		c := predicate.Column{Path: path}
		alternatives := []*predicate.Tree{predicate.Of(predicate.Leaf{Column: c, Op: predicate.In, Values: r.distinct, Dialect: predicate.SQL})}
		if r.null {
			alternatives = append(alternatives, predicate.Of(predicate.Leaf{Column: c, Op: predicate.IsNull, Dialect: predicate.SQL}))
		}
		if r.nan {
			alternatives = append(alternatives, predicate.Of(predicate.Leaf{Column: c, Op: predicate.IsNaN, Dialect: predicate.SQL}))
		}
		tests = append(tests, predicate.Any(alternatives...))
	}
	if len(tests) == 0 {
		return nil
	}
	return predicate.All(tests...)
}

// narrow asks evidence, once for all delete files with the same key columns, where their keys may be.
func (w *work) narrow(ctx context.Context, groups []*keyed) error {
	if w.Evidence == nil || !w.options.remembers() || w.bytesOf(groups) < w.EvidenceFrom {
		return nil
	}
	byColumns := map[string][]*keyed{}
	var order []string
	for _, k := range groups {
		text := k.pairs[0].key.Columns
		if byColumns[text] == nil {
			order = append(order, text)
		}
		byColumns[text] = append(byColumns[text], k)
	}
	for _, text := range order {
		if err := w.narrowSome(ctx, byColumns[text]); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) narrowSome(ctx context.Context, groups []*keyed) error {
	sets := map[*keySet]bool{}
	var trees []*predicate.Tree
	var files []int
	for _, k := range groups {
		files = append(files, k.pairs[0].of.Ordinal)
		for _, set := range k.sets {
			if sets[set] {
				continue
			}
			sets[set] = true
			t := set.predicateOf(w.scope.snapshot.Schema)
			if t == nil {
				return nil
			}
			trees = append(trees, t)
		}
	}
	either := predicate.Any(trees...)
	if !askable(either) {
		return nil
	}
	found, err := w.Evidence.Where(ctx, w.scope.snapshot, either, files)
	if err != nil {
		return err
	}
	for i, k := range groups {
		if f := found[i]; f.Rows != nil && f.Tag == k.tag && int64(f.Rows.Size()) == k.file.Rows() {
			k.may = f.Rows
		}
	}
	return nil
}

// askable reports whether a predicate is of a size and kind that evidence can speak to.
func askable(t *predicate.Tree) bool {
	return t.Check() == nil && t.Kind != predicate.True && t.Kind != predicate.False
}

// bytesOf is what reading the candidates takes.
func (w *work) bytesOf(groups []*keyed) (n int64) {
	for _, k := range groups {
		for _, s := range k.binding.Spans(w.candidates(k)) {
			n += s.Len
		}
	}
	return n
}
