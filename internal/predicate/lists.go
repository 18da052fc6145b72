package predicate

import (
	"fmt"
	"math/bits"

	"github.com/skomerdb/skomer/internal/column"
)

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
	elems := lists.Kids[t.side].Descend(t.below)
	if elems == nil {
		panic(fmt.Sprintf("predicate: column %s is not in a vector of %s", t.leaf.Column.Name(), v.Type))
	}
	equal, null := s.take(words(elems.Len)), s.take(words(elems.Len))
	t.elements(elems, known, row, equal, null, s)
	hits := s.take(len(need))
	clear(hits)
	each(known, func(i int) {
		lo, hi := row(i)
		if anySet(equal, lo, hi) {
			hits[i>>6] |= 1 << (i & 63)
		} else if anySet(null, lo, hi) {
			known[i>>6] &^= 1 << (i & 63)
		}
	})
	t.negateLists(hits, known, need, out)
	s.give(equal, null, hits)
}

// elements sets, of the elements of the rows in known, those that are equal to the value and those that are null.
func (t *tester) elements(elems *column.Vector, known []uint64, row func(int) (lo, hi uint32), equal, null []uint64, s *scratch) {
	wanted, valid := s.take(len(equal)), s.take(len(equal))
	defer s.give(wanted, valid)
	clear(wanted)
	each(known, func(i int) {
		lo, hi := row(i)
		setRange(wanted, lo, hi)
	})
	validRows(elems, wanted, valid)
	t.equals.rows(elems, elems.Len, wanted, equal, s)
	for w := range null {
		null[w] = wanted[w] &^ valid[w]
	}
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
