package predicate

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/skomerdb/skomer/internal/column"
)

// Evaluator tests batches of rows. It may be used by several goroutines at once.
type Evaluator struct {
	root  node
	reads []column.Path
	pool  sync.Pool // *scratch
}

type node struct {
	kind Kind
	kids []node
	test *tester
	cost int
}

// Compile prepares a tree for batches.
func Compile(t *Tree) *Evaluator {
	e := &Evaluator{pool: sync.Pool{New: func() any { return &scratch{} }}}
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
		read := t.Leaf.Column.Read()
		key := pathKey(read)
		at, ok := byPath[key]
		if !ok {
			at = len(e.reads)
			byPath[key] = at
			e.reads = append(e.reads, read)
		}
		n.test = newTester(t.Leaf, at)
	}
	n.cost = n.work()
	slices.SortStableFunc(n.kids, func(a, b node) int { return a.cost - b.cost })
	return n
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
	case l.Op == IsNull || l.Unknown:
		return 0
	case l.Op == Contains:
		return 40
	case l.Op == Like:
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
		n.test.rows(b.Cols[n.test.col], b.Rows, need, out, s)
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

// scratch lends bitmaps of unspecified content.
type scratch struct{ free [][]uint64 }

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

// tester evaluates one leaf.
type tester struct {
	leaf   *Leaf
	col    int
	kernel kernel  // the plain test of non-null values
	nan    kernel  // finds the NaN rows that the Iceberg dialect keeps; nil elsewhere
	equals *tester // Contains: the test of an element
	side   int     // Contains: which of the vector's Kids holds the elements
}

func newTester(l *Leaf, col int) *tester {
	t := &tester{leaf: l, col: col}
	if l.Op == Contains {
		elem := Of(Leaf{Column: l.Column, Op: Equal, Values: l.Values}).Leaf
		t.equals = newTester(elem, 0)
		if around := l.Column.Path[len(l.Column.Path)-2]; around.Type.Kind == column.Map && around.Type.Fields[1].ID == l.Column.ID() {
			t.side = 1
		}
		return t
	}
	if l.Op == IsNull {
		return t
	}
	t.kernel = newKernel(l)
	if l.Dialect == Iceberg && l.Column.Type().Kind.Floating() && isFloatTest(l.Op) {
		t.nan = newKernel(&Leaf{Column: l.Column, Op: IsNaN})
	}
	return t
}

func isFloatTest(op Op) bool { return isComparison(op) || op == In }

func (t *tester) rows(v *column.Vector, rows int, need, out []uint64, s *scratch) {
	if t.leaf.Op == Contains {
		t.lists(v, need, out, s)
		return
	}
	if t.leaf.Unknown {
		clear(out)
		return
	}
	known := s.take(len(need)) // needed and not null
	defer s.give(known)
	validRows(v, need, known)
	if t.leaf.Op == IsNull {
		for w := range out {
			if t.leaf.Negated {
				out[w] = known[w]
			} else {
				out[w] = need[w] &^ known[w]
			}
		}
		return
	}
	t.mustFit(v)
	hits := s.take(len(need))
	defer s.give(hits)
	test(t.kernel, v, rows, known, hits, s)
	for w := range hits {
		switch {
		case !t.leaf.Negated:
			out[w] = hits[w]
		case t.leaf.Dialect == SQL:
			out[w] = known[w] &^ hits[w]
		default:
			out[w] = need[w] &^ hits[w]
		}
	}
	if t.nan != nil {
		test(t.nan, v, rows, known, hits, s)
		for w := range hits {
			out[w] |= hits[w]
		}
	}
}

// mustFit guards the unchecked views of the kernels against a vector of another type, which is a mistake of the reader.
func (t *tester) mustFit(v *column.Vector) {
	if want := t.leaf.Column.Type(); v.Type.Kind != want.Kind && v.Type.Kind != column.Unknown {
		panic(fmt.Sprintf("predicate: column %s is a %s, its vector a %s", t.leaf.Column.Name(), want, v.Type))
	}
}

// validRows sets known to the rows of need that are not null.
func validRows(v *column.Vector, need, known []uint64) {
	switch {
	case v.Type.Kind == column.Unknown:
		clear(known)
		return
	case v.Valid == nil:
		copy(known, need)
	default:
		for w := range known {
			known[w] = need[w] & v.Valid[w]
		}
	}
	if v.Dict == nil || v.Dict.Valid == nil {
		return
	}
	for w := range known {
		for rest := known[w]; rest != 0; rest &= rest - 1 {
			i := w<<6 | bits.TrailingZeros64(rest)
			if v.Dict.Null(int(v.Idx[i])) {
				known[w] &^= rest & -rest
			}
		}
	}
}

// test sets hits to the rows of known whose value passes k, asking a dictionary's values once.
func test(k kernel, v *column.Vector, rows int, known, hits []uint64, s *scratch) {
	if v.Dict == nil {
		for w, lanes := range known {
			if hits[w] = 0; lanes != 0 {
				base := w << 6
				hits[w] = k.word(v, base, min(64, rows-base), lanes) & lanes
			}
		}
		return
	}
	values := s.take(words(v.Dict.Len))
	clear(values)
	for w := range known {
		for rest := known[w]; rest != 0; rest &= rest - 1 {
			x := v.Idx[w<<6|bits.TrailingZeros64(rest)]
			values[x>>6] |= 1 << (x & 63)
		}
	}
	test(k, v.Dict, v.Dict.Len, values, values, s)
	for w := range known {
		var hit uint64
		for rest := known[w]; rest != 0; rest &= rest - 1 {
			i := bits.TrailingZeros64(rest)
			x := v.Idx[w<<6|i]
			hit |= values[x>>6] >> (x & 63) & 1 << i
		}
		hits[w] = hit
	}
	s.give(values)
}

// lists evaluates Contains: true where an element equals, else unknown where an element is null.
func (t *tester) lists(v *column.Vector, need, out []uint64, s *scratch) {
	known := s.take(len(need))
	defer s.give(known)
	validRows(v, need, known)
	if empty(known) {
		t.negateLists(known, known, need, out)
		return
	}
	lists := v
	row := func(i int) (lo, hi uint32) { return lists.Off[i], lists.Off[i+1] }
	if v.Dict != nil {
		lists = v.Dict
		row = func(i int) (lo, hi uint32) { return lists.Off[v.Idx[i]], lists.Off[v.Idx[i]+1] }
	}
	elems := lists.Kids[t.side]
	n := words(elems.Len)
	wanted, valid, equal := s.take(n), s.take(n), s.take(n)
	clear(wanted)
	each(known, func(i int) {
		lo, hi := row(i)
		setRange(wanted, lo, hi)
	})
	validRows(elems, wanted, valid)
	t.equals.rows(elems, elems.Len, wanted, equal, s)
	for w := range wanted {
		wanted[w] &^= valid[w] // now the null elements
	}
	hits, doubt := s.take(len(need)), s.take(len(need))
	clear(hits)
	clear(doubt)
	each(known, func(i int) {
		lo, hi := row(i)
		if anySet(equal, lo, hi) {
			hits[i>>6] |= 1 << (i & 63)
		} else if anySet(wanted, lo, hi) {
			doubt[i>>6] |= 1 << (i & 63)
		}
	})
	for w := range known {
		known[w] &^= doubt[w]
	}
	t.negateLists(hits, known, need, out)
	s.give(wanted, valid, equal, hits, doubt)
}

// negateLists applies the leaf's sign to hits; known is the rows on which contains is true or false.
func (t *tester) negateLists(hits, known, need, out []uint64) {
	for w := range out {
		hit := hits[w]
		switch {
		case !t.leaf.Negated:
			out[w] = hit & known[w]
		case t.leaf.Dialect == SQL:
			out[w] = known[w] &^ hit
		default:
			out[w] = need[w] &^ hit
		}
	}
}

func each(set []uint64, visit func(i int)) {
	for w, rest := range set {
		for ; rest != 0; rest &= rest - 1 {
			visit(w<<6 | bits.TrailingZeros64(rest))
		}
	}
}

func setRange(set []uint64, lo, hi uint32) {
	for lo < hi {
		w := lo >> 6
		end := min(hi, (w+1)<<6)
		set[w] |= ^uint64(0) >> (64 - (end - lo)) << (lo & 63)
		lo = end
	}
}

func anySet(set []uint64, lo, hi uint32) bool {
	for lo < hi {
		w := lo >> 6
		end := min(hi, (w+1)<<6)
		if set[w]&(^uint64(0)>>(64-(end-lo))<<(lo&63)) != 0 {
			return true
		}
		lo = end
	}
	return false
}
