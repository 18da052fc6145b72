package scan

import (
	"slices"

	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// offer is a question that a source could answer.
type offer struct {
	source int             // position in the sources
	of     *predicate.Tree // the conjunction whose leaves are asked together; nil: one leaf
	leaves []*predicate.Leaf
	exact  bool
	dear   bool // the cost rule is against it
}

// leaf is the one leaf of an offer that is not of a conjunction.
func (o *offer) leaf() *predicate.Leaf {
	if o.of != nil {
		return nil
	}
	return o.leaves[0]
}

// matters reports whether the answer can change the verdict on the file.
func (o *offer) matters(use map[*predicate.Leaf]plan.Use) bool {
	return !o.dear && slices.ContainsFunc(o.leaves, func(l *predicate.Leaf) bool { return use[l].Rules || o.exact && use[l].Proves })
}

// offers is the questions that sources answer. indexOf is the index of a source, choose picks those that are asked about a leaf.
func (e *evidence) offers(sources []plan.Source, indexOf func(source int) int, choose func(*predicate.Leaf, []plan.Source) []int) (out []offer) {
	type asking struct {
		source int
		leaf   *predicate.Leaf
	}
	joined := map[asking]bool{}
	for _, j := range plan.Joins(e.plan.Predicate, sources) {
		for _, l := range j.Leaves {
			joined[asking{j.Source, l}] = true
		}
		out = append(out, offer{j.Source, j.Of, j.Leaves, true, !e.worth(indexOf(j.Source), j.Leaves)})
	}
	e.plan.Predicate.Leaves(func(l *predicate.Leaf) {
		for _, k := range choose(l, sources) {
			if !joined[asking{k, l}] {
				one := []*predicate.Leaf{l}
				exact := sources[k].Kind.Says(sources[k].Columns, l) == index.Exact
				out = append(out, offer{k, nil, one, exact, !e.worth(indexOf(k), one)})
			}
		}
	})
	return out
}

// matter finds the leaves about which the offers can change the verdict on a file. Proofs alone save little but where they settle all rows of
// a file: its columns are read for the others anyway.
func (e *evidence) matter(f *File, offers []offer) map[*predicate.Leaf]plan.Use {
	best := map[*predicate.Leaf]plan.Best{}
	for _, o := range offers {
		if o.dear {
			continue
		}
		for _, l := range o.leaves {
			b := best[l]
			b.Rules, b.Proves = true, b.Proves || o.exact && e.couldBeWhole(f, l)
			best[l] = b
		}
	}
	return plan.Matter(e.plan.Predicate, func(l *predicate.Leaf) plan.Best {
		b := best[l]
		b.Settled = e.settled(f, l)
		return b
	})
}

// settled is what manifests prove of a leaf.
func (e *evidence) settled(f *File, l *predicate.Leaf) plan.Answer {
	if e.pruning == nil {
		return plan.Maybe
	}
	return e.pruning.Leaf(l, f.Ordinal)
}

// stated is settled as a verdict.
func (e *evidence) stated(f *File, l *predicate.Leaf) rowset.Verdict {
	switch e.settled(f, l) {
	case plan.Out:
		return rowset.Exactly(rowset.None(f.Records))
	case plan.Whole:
		return rowset.Exactly(rowset.All(f.Records))
	default:
		return rowset.Maybe(f.Records)
	}
}

// couldBeWhole guesses whether all rows of a file may pass a leaf. Where manifests do not tell, single values are taken not to fill a file.
func (e *evidence) couldBeWhole(f *File, l *predicate.Leaf) bool {
	if e.pruning != nil {
		if could, known := e.pruning.CouldBeWhole(l, f.Ordinal); known {
			return could
		}
	}
	return l.Negated || l.Op != predicate.Equal && l.Op != predicate.In
}

// promising reports whether any index could change the verdict on any file left, if it covered all of them. Where none could, none is asked.
func (e *evidence) promising() bool {
	var sources []plan.Source
	var of []int
	for i := range e.indexes {
		if u := &e.indexes[i]; u.ok {
			sources, of = append(sources, plan.Source{Kind: u.kind, Columns: u.columns}), append(of, i)
		}
	}
	offers := e.offers(sources, func(k int) int { return of[k] }, plan.Speaking)
	if slices.ContainsFunc(offers, func(o offer) bool { return o.dear }) {
		return true // which are is told when they are refused
	}
	return slices.ContainsFunc(e.plan.Files, func(f File) bool {
		use := e.matter(&f, offers)
		return slices.ContainsFunc(offers, func(o offer) bool { return o.matters(use) })
	})
}

// inVain is why an index was not asked whose answers could change nothing.
const inVain = "whatever it answers changes nothing: "

// vain reports the indexes that were not asked because their answers could change nothing.
func (e *evidence) vain() {
	for i, d := range e.version.Indexes() {
		u := &e.indexes[i]
		known := func(x Unasked) bool { return x.Index == d.ID }
		if u.ok && u.vain && !u.asked && !slices.ContainsFunc(e.plan.Report.Unasked, known) {
			why := inVain + "the table's metadata settles what it could tell"
			if anyOr(e.plan.Predicate) && e.unsettled(u) {
				why = inVain + "nothing rules out the other side of an OR"
			}
			e.plan.Report.Unasked = append(e.plan.Report.Unasked, Unasked{Index: d.ID, Why: why})
		}
	}
}

// unsettled tells that an index could say of some file left what manifests do not.
func (e *evidence) unsettled(u *usable) (some bool) {
	e.plan.Predicate.Leaves(func(l *predicate.Leaf) {
		some = some || u.kind.Says(u.columns, l) != index.Nothing && slices.ContainsFunc(e.plan.Files, func(f File) bool {
			return e.settled(&f, l) == plan.Maybe
		})
	})
	return some
}

func anyOr(t *predicate.Tree) bool {
	return t.Kind == predicate.Or || slices.ContainsFunc(t.Kids, anyOr)
}
