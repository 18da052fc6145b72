package plan

import (
	"math/bits"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Sieve rules out files of compact facts, most of them by two comparisons of integers. It is coarse: what it rules out, Prune
// rules out as well, and not the other way round. What passes it is judged by Prune.
type Sieve struct {
	shell *facts.Snapshot
	tree  *predicate.Tree
	root  *mesh
}

// mesh is a predicate node. Its zero value keeps everything, as a leaf that integers cannot answer does.
type mesh struct {
	kind predicate.Kind // And, Or or Test; True keeps everything
	kids []*mesh
	leaf *strainer
}

// NewSieve compiles a predicate for a snapshot of which all but the files is given.
func NewSieve(shell *facts.Snapshot, t *predicate.Tree) *Sieve {
	s := &Sieve{shell: shell, tree: t}
	s.root = s.compile(t)
	return s
}

func (s *Sieve) compile(t *predicate.Tree) *mesh {
	m := &mesh{kind: predicate.True}
	switch t.Kind {
	case predicate.Test:
		if st := newStrainer(s.shell, t.Leaf); st != nil {
			m.kind, m.leaf = predicate.Test, st
		}
	case predicate.And:
		for _, k := range t.Kids {
			if kid := s.compile(k); kid.kind != predicate.True {
				m.kind = predicate.And
				m.join(kid)
			}
		}
	case predicate.Or:
		for _, k := range t.Kids {
			kid := s.compile(k)
			if kid.kind == predicate.True {
				return &mesh{kind: predicate.True}
			}
			m.kind, m.kids = predicate.Or, append(m.kids, kid)
		}
	}
	return m
}

// join adds a kid to a conjunction, or makes one of it and an elder one.
func (m *mesh) join(kid *mesh) {
	for _, elder := range m.kids {
		if kid.leaf == nil || elder.leaf == nil {
			continue
		}
		if both := elder.leaf.joined(kid.leaf); both != nil {
			elder.leaf = both
			return
		}
	}
	m.kids = append(m.kids, kid)
}

// Keys lists the schema fields whose keys Sift compares.
func (s *Sieve) Keys() []int { return s.root.fields(nil) }

func (m *mesh) fields(ids []int) []int {
	if m.leaf != nil {
		ids = append(ids, m.leaf.id)
	}
	for _, k := range m.kids {
		ids = k.fields(ids)
	}
	return ids
}

// Fields lists the schema fields of the whole predicate, whose metrics Judge looks at.
func (s *Sieve) Fields() (ids []int) {
	s.tree.Leaves(func(l *predicate.Leaf) { ids = append(ids, l.Column.ID()) })
	return ids
}

// Judge tells which files Prune keeps.
func (s *Sieve) Judge(files *facts.Snapshot) []bool {
	p := Prune(files, s.tree)
	keep := make([]bool, len(p.Answers))
	for i, a := range p.Answers {
		keep[i] = a != Out
	}
	return keep
}

// Sift appends to dst the files of g that are left, in ascending order. Files in none of whose words anything is left cost
// what the comparisons cost.
func (s *Sieve) Sift(dst []int32, g *facts.Group) []int32 {
	w := s.root.over(g)
	for at := 0; at < g.N; at += 64 {
		n := min(64, g.N-at)
		left := ^uint64(0) >> (64 - n)
		if w != nil {
			left &^= w.out(at, n)
		}
		for ; left != 0; left &= left - 1 {
			dst = append(dst, int32(at+bits.TrailingZeros64(left)))
		}
	}
	return dst
}

// web is a mesh over one group.
type web struct {
	kind predicate.Kind
	kids []*web
	leaf *strained
}

// over is the mesh over a group; nil keeps every file of it.
func (m *mesh) over(g *facts.Group) *web {
	w := &web{kind: m.kind}
	switch m.kind {
	case predicate.Test:
		w.leaf = m.leaf.over(g)
		if w.leaf == nil {
			return nil
		}
		return w
	case predicate.And, predicate.Or:
		for _, k := range m.kids {
			kid := k.over(g)
			if kid == nil && m.kind == predicate.Or {
				return nil
			}
			if kid != nil {
				w.kids = append(w.kids, kid)
			}
		}
		if len(w.kids) == 0 {
			return nil
		}
		return w
	default:
		return nil
	}
}

// out is which of the n files from at on are ruled out, as bits.
func (w *web) out(at, n int) uint64 {
	switch w.kind {
	case predicate.And:
		x, all := uint64(0), ^uint64(0)>>(64-n)
		for _, k := range w.kids {
			if x |= k.out(at, n); x&all == all {
				break
			}
		}
		return x
	case predicate.Or:
		x := ^uint64(0)
		for _, k := range w.kids {
			if x &= k.out(at, n); x == 0 {
				break
			}
		}
		return x
	default:
		return w.leaf.out(at, n)
	}
}
