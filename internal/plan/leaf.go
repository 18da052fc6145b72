package plan

import (
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/predicate"
)

// leafTest judges one leaf over every file of a snapshot.
type leafTest struct {
	meaning
	metrics metrics
	specID  []int32
	parts   []partTest
	quick   bool  // see prepareQuick
	point   int64 // the value
	sides   [3][3]Answer
}

// newLeafTest compiles a leaf. nil: metadata can never judge it.
func newLeafTest(s *facts.Snapshot, l *predicate.Leaf) *leafTest {
	if !judgeable(l) {
		return nil
	}
	lt := &leafTest{metrics: newMetrics(s, l.Column), specID: s.Files.SpecID}
	lt.ask(l)
	lt.prepareQuick()
	if !lt.repeats {
		lt.parts = newPartTests(s, l, &lt.q)
	}
	return lt
}

// answer judges file i by all evidence.
func (lt *leafTest) answer(i int) Answer {
	r := lt.start
	lt.metrics.count(i, &r)
	if lt.q.op > predicate.IsNaN {
		lt.bound(i, &r)
	}
	for k := range lt.parts {
		if p := &lt.parts[k]; lt.specID[i] == p.spec {
			p.look(i, lt, &r)
		}
	}
	return lt.conclude(&r)
}

// bound lets the column's bounds in file i speak about the rest.
func (lt *leafTest) bound(i int, r *rows) {
	lower, upper := lt.metrics.bounds(i)
	if lower == nil && upper == nil {
		return
	}
	if lt.quick {
		lt.proveQuick(decodeSpan(lt.metrics.t.Kind, lower, upper), r)
		return
	}
	in := decodeBounds(lt.metrics.t, lower, upper)
	if in.hasLo || in.hasHi {
		r.proves(signed(lt.q.over(&in), lt.leaf.Negated))
	}
}

func (lt *leafTest) proveQuick(in span, r *rows) {
	low, high := in.sides(lt.point)
	r.proves(lt.sides[low+1][high+1])
}

// prepareQuick sets up the short way for the most common leaf, a comparison of an integer-like column with one value: the
// answers for all relations that an interval can have with the value.
func (lt *leafTest) prepareQuick() {
	lt.quick = integerLike(lt.metrics.t.Kind) && len(lt.q.values) == 1
	if !lt.quick {
		return
	}
	lt.point = lt.q.values[0].Int64()
	for low := -1; low <= 1; low++ {
		for high := -1; high <= 1; high++ {
			lt.sides[low+1][high+1] = signed(lt.q.relate(low, high), lt.leaf.Negated)
		}
	}
}
