package predicate

import (
	"fmt"
	"math/bits"

	"github.com/skomerdb/skomer/internal/column"
)

// tester evaluates one leaf.
type tester struct {
	leaf   *Leaf
	col    int
	kernel kernel      // the plain test of non-null values
	nan    kernel      // finds the NaN rows that the Iceberg dialect keeps; nil elsewhere
	equals *tester     // Contains: the test of an element
	side   int         // Contains: which of the vector's Kids holds the elements
	below  column.Path // Contains: from an element that is a struct to the field compared
}

func newTester(l *Leaf, col int) *tester {
	t := &tester{leaf: l, col: col}
	if l.Op == Contains {
		elem := Of(Leaf{Column: l.Column, Op: Equal, Values: l.Values}).Leaf
		t.equals = newTester(elem, 0)
		at, _ := l.Column.Around()
		if around := l.Column.Path[at]; around.Type.Kind == column.Map && around.Type.Fields[1].ID == l.Column.Path[at+1].ID {
			t.side = 1
		}
		t.below = l.Column.Path[at+2:]
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
