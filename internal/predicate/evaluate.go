package predicate

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/expression"
)

// Evaluator tests batches of rows. It may be used by several goroutines at once.
type Evaluator struct {
	root    node
	reads   []column.Path
	derived []derived
	pool    sync.Pool // *scratch
}

// derived is an expression that leaves ask: its path, and which of the columns read it is made of.
type derived struct {
	path column.Path
	read int
}

type node struct {
	kind Kind
	kids []node
	test *tester
	cost int
}

// Compile prepares a tree for batches.
func Compile(t *Tree) *Evaluator {
	e := &Evaluator{}
	e.pool.New = func() any { return &scratch{of: e, derived: make([]*column.Vector, len(e.derived))} }
	byPath := map[string]int{}
	e.root = e.compile(t, byPath)
	return e
}

func (e *Evaluator) compile(t *Tree, byPath map[string]int) node {
	n := node{kind: t.Kind}
	for _, k := range t.Kids {
		n.kids = append(n.kids, e.compile(k, byPath))
	}
	if t.Kind == Test {
		n.test = newTester(t.Leaf, e.column(t.Leaf.Column, byPath))
	}
	n.cost = n.work()
	slices.SortStableFunc(n.kids, func(a, b node) int { return a.cost - b.cost })
	return n
}

// column numbers what a leaf asks: a column read from 0 on, an expression from -1 down.
func (e *Evaluator) column(c Column, byPath map[string]int) int {
	read := c.Read()
	at, ok := byPath[pathKey(read)]
	if !ok {
		at = len(e.reads)
		byPath[pathKey(read)] = at
		e.reads = append(e.reads, read)
	}
	if !c.Path.Derived() {
		return at
	}
	path := c.Path[:len(c.Path.Base())+1]
	key := "=" + pathKey(path)
	if _, ok := byPath[key]; !ok {
		e.derived = append(e.derived, derived{path, at})
		byPath[key] = -len(e.derived)
	}
	return byPath[key]
}

// work ranks a node by what it costs a row: what is cheap is asked first, the rest only of the rows still in doubt.
func (n *node) work() int {
	most := 0
	for _, k := range n.kids {
		most = max(most, k.cost+1)
	}
	if n.kind != Test {
		return most
	}
	switch l := n.test.leaf; {
	case l.Unknown || l.Op == IsNull && !l.Column.Path.Derived():
		return 0
	case l.Column.Path.Derived():
		return 80
	case l.Op == Contains:
		return 40
	case l.Op == Match:
		return 60
	case l.Op == Like || l.Op == ILike:
		return 30
	case l.Column.Type().Size() == 0 && l.Column.Type().Kind != column.Bool:
		return 20
	case l.Op == In:
		return 10
	default:
		return 1
	}
}

func pathKey(p column.Path) string {
	var key []byte
	for _, f := range p {
		key = binary.AppendVarint(key, int64(f.ID))
	}
	return string(key)
}

// Reads is the distinct columns that Rows wants, in the order of Batch.Cols. Do not write to it.
func (e *Evaluator) Reads() []column.Path { return e.reads }

// Rows returns one bit a row, least significant first, set where the row passes; bits past the last row are zero.
// b.Cols runs parallel to Reads. The slice is the caller's.
func (e *Evaluator) Rows(b *column.Batch) []uint64 {
	out := make([]uint64, words(b.Rows))
	for i := range out {
		out[i] = lanes(b.Rows, i)
	}
	s := e.pool.Get().(*scratch)
	e.root.rows(b, out, out, s)
	clear(s.derived)
	e.pool.Put(s)
	return out
}

func words(n int) int { return (n + 63) / 64 }

// lanes is the used bits of word w of n bits.
func lanes(n, w int) uint64 {
	if rest := n - w*64; rest < 64 {
		return 1<<rest - 1
	}
	return ^uint64(0)
}

// rows sets out to the rows of need that pass. need and out may be the same slice.
func (n *node) rows(b *column.Batch, need, out []uint64, s *scratch) {
	switch n.kind {
	case True:
		copy(out, need)
	case False:
		clear(out)
	case Test:
		n.test.rows(s.column(b, n.test.col), b.Rows, need, out, s)
	case And:
		for i := range n.kids {
			n.kids[i].rows(b, need, out, s)
			if need = out; empty(out) {
				return
			}
		}
	case Or:
		rest, hits, got := s.take(len(need)), s.take(len(need)), s.take(len(need))
		copy(rest, need)
		clear(hits)
		for i := range n.kids {
			n.kids[i].rows(b, rest, got, s)
			for w := range got {
				hits[w] |= got[w]
				rest[w] &^= got[w]
			}
			if empty(rest) {
				break
			}
		}
		copy(out, hits)
		s.give(rest, hits, got)
	}
}

func empty(w []uint64) bool {
	for _, x := range w {
		if x != 0 {
			return false
		}
	}
	return true
}

// scratch lends bitmaps of unspecified content, and keeps what expressions made of the batch at hand.
type scratch struct {
	of      *Evaluator
	derived []*column.Vector
	free    [][]uint64
}

// column is a column of the batch or an expression of one, made when it is first asked for.
func (s *scratch) column(b *column.Batch, col int) *column.Vector {
	if col >= 0 {
		return b.Cols[col]
	}
	v := &s.derived[-1-col]
	if *v == nil {
		d := s.of.derived[-1-col]
		made, err := expression.Apply(d.path, b.Cols[d.read])
		if err != nil { // as a column of another type would be: a mistake of the reader
			panic("predicate: " + err.Error())
		}
		*v = made
	}
	return *v
}

func (s *scratch) take(words int) []uint64 {
	if n := len(s.free); n > 0 {
		buf := s.free[n-1]
		s.free = s.free[:n-1]
		if cap(buf) >= words {
			return buf[:words]
		}
	}
	return make([]uint64, words)
}

func (s *scratch) give(bufs ...[]uint64) { s.free = append(s.free, bufs...) }
