package plan

import (
	"fmt"
	"strings"

	"github.com/skomerdb/skomer/internal/predicate"
)

// Origin is where the evidence behind an answer comes from.
type Origin uint8

// The origins that manifests offer.
const (
	FromPredicate Origin = iota // the predicate alone: it is constant, or passes no value of the column
	FromRecords                 // the file has no rows
	FromCounts                  // value, null and NaN counts
	FromBounds                  // lower and upper bounds
	FromPartition               // a partition value
)

// Evidence is one thing that the metadata states of a file.
type Evidence struct {
	Leaf   *predicate.Leaf // what it was held against; nil for FromRecords and constants
	Origin Origin
	Of     string // the column, or the partition field with its transform
	States string // for people: "5 to 9", "10 nulls among 10 values"
}

// String reads like "bounds of id: 5 to 9".
func (e Evidence) String() string {
	switch e.Origin {
	case FromRecords:
		return "the file has no rows"
	case FromCounts:
		return "counts of " + e.Of + ": " + e.States
	case FromBounds:
		return "bounds of " + e.Of + ": " + e.States
	case FromPartition:
		return "partition " + e.Of + " = " + e.States
	default:
		return "the predicate alone"
	}
}

// Reason is why a file got its answer. A Maybe has no evidence.
type Reason struct {
	Answer  Answer
	Because []Evidence
}

// String is one line for explain.
func (r Reason) String() string {
	parts := make([]string, len(r.Because))
	for i, e := range r.Because {
		parts[i] = e.String()
	}
	if len(parts) == 0 {
		return r.Answer.String()
	}
	return r.Answer.String() + " by " + strings.Join(parts, "; ")
}

// Reason finds the evidence behind the answer for one file. It judges the file again, so that Prune keeps none.
func (p *Pruning) Reason(file int) Reason {
	if p.empty(file) {
		return Reason{Answer: Out, Because: []Evidence{{Origin: FromRecords}}}
	}
	r := p.root.reason(file)
	if r.Answer == Maybe {
		r.Because = nil
	}
	return r
}

func (n *node) reason(i int) Reason {
	switch n.kind {
	case predicate.True:
		return Reason{Answer: Whole, Because: []Evidence{{Origin: FromPredicate}}}
	case predicate.False:
		return Reason{Answer: Out, Because: []Evidence{{Origin: FromPredicate}}}
	case predicate.And:
		return n.joint(i, Out, Whole)
	case predicate.Or:
		return n.joint(i, Whole, Out)
	default:
		if n.leaf == nil {
			return Reason{Answer: Maybe}
		}
		return n.leaf.reason(i)
	}
}

// joint explains AND and OR: one kid is enough for the settling answer, all are needed for the other.
func (n *node) joint(i int, settling, unanimous Answer) Reason {
	all := Reason{Answer: unanimous}
	for _, k := range n.kids {
		r := k.reason(i)
		if r.Answer == settling {
			return r
		}
		if r.Answer == Maybe {
			all.Answer = Maybe
		}
		all.Because = append(all.Because, r.Because...)
	}
	return all
}

// witness is one evidence together with what it alone does to the rows.
type witness struct {
	evidence Evidence
	narrow   func(*rows)
}

// reason names the first evidence that is enough by itself, else all that narrowed anything.
func (lt *leafTest) reason(i int) Reason {
	out := Reason{Answer: lt.answer(i)}
	if out.Answer == Maybe {
		return out
	}
	start := lt.start
	if lt.conclude(&start) == out.Answer {
		out.Because = []Evidence{{Leaf: lt.leaf, Origin: FromPredicate}}
		return out
	}
	for _, w := range lt.witnesses(i) {
		r := lt.start
		w.narrow(&r)
		if lt.conclude(&r) == out.Answer {
			out.Because = []Evidence{w.evidence}
			return out
		}
		if r != lt.start {
			out.Because = append(out.Because, w.evidence)
		}
	}
	return out
}

func (lt *leafTest) witnesses(i int) []witness {
	var out []witness
	for k := range lt.parts {
		if p := &lt.parts[k]; lt.specID[i] == p.spec && p.column.Known[i] {
			out = append(out, witness{
				Evidence{Leaf: lt.leaf, Origin: FromPartition, Of: p.name(), States: p.states(i)},
				func(r *rows) { p.look(i, lt, r) },
			})
		}
	}
	name := lt.leaf.Column.Name()
	return append(out,
		witness{Evidence{Leaf: lt.leaf, Origin: FromCounts, Of: name, States: lt.metrics.countStates(i)}, func(r *rows) { lt.metrics.count(i, r) }},
		witness{Evidence{Leaf: lt.leaf, Origin: FromBounds, Of: name, States: lt.metrics.boundStates(i)}, func(r *rows) { lt.bound(i, r) }})
}

func (p *partTest) name() string { return fmt.Sprintf("%s (%s)", p.field.Name, p.field.Transform) }

func (p *partTest) states(i int) string {
	if p.column.Null[i] {
		return "null"
	}
	return p.t.show(p.column.Value[i])
}

func (m *metrics) countStates(i int) string {
	parts := []string{}
	add := func(n int64, what string) {
		if n >= 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(at(m.nulls, i), "nulls")
	add(at(m.nans, i), "NaNs")
	add(at(m.values, i), "values")
	return strings.Join(parts, ", ")
}

func (m *metrics) boundStates(i int) string {
	lower, upper := m.bounds(i)
	in := decodeBounds(m.t, lower, upper)
	lo, hi := "…", "…"
	if in.hasLo {
		lo = show(in.lo)
	}
	if in.hasHi {
		hi = show(in.hi)
	}
	return lo + " to " + hi
}
