package ordered

import (
	"bytes"
	"slices"

	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
)

// span is the parts of one column from lo on, below hi. A point is one part: lo is it and hi is it and ff.
type span struct {
	lo, hi []byte
	point  bool
}

// spans is ascending and disjoint.
type spans []span

// spansOf is where a leaf, sign and dialect included, is true; sure is false where it may be false of parts in them. ok is false where
// nothing is known.
func spansOf(leaf *predicate.Leaf, e index.Encoding) (in spans, sure, ok bool) {
	if len(leaf.Values) > maxListed {
		return nil, false, false
	}
	ask, ok := index.Asked(leaf, e)
	if !ok || leaf.Unknown || leaf.Op == predicate.ILike || leaf.Op == predicate.Match || leaf.Negated && !ask.Exact {
		return nil, false, false
	}
	nulls, nans := span{lo: []byte{partNull}, hi: []byte{partNull, partEnd}, point: true}, span{lo: []byte{partNaN}, hi: []byte{partNaN, partEnd}, point: true}
	values := span{lo: []byte{partValue}, hi: []byte{partNaN}}
	iceberg := leaf.Dialect == predicate.Iceberg
	switch {
	case leaf.Op == predicate.IsNull && !leaf.Negated:
		return spans{nulls}, true, true
	case leaf.Op == predicate.IsNull:
		return spans{values, nans}, true, true
	case leaf.Op == predicate.IsNaN && !leaf.Negated:
		return spans{nans}, true, true
	case leaf.Op == predicate.IsNaN && iceberg:
		return spans{nulls, values}, true, true
	case leaf.Op == predicate.IsNaN:
		return spans{values}, true, true
	}
	for _, iv := range ask.In {
		if x := spanOf(iv, e); bytes.Compare(x.lo, x.hi) < 0 {
			in = append(in, x)
		}
	}
	sure = ask.Exact
	if leaf.Negated {
		in = in.without(values)
		if iceberg {
			in = slices.Insert(in, 0, nulls)
		}
	}
	if leaf.Negated || index.PassesNaN(leaf) {
		in = append(in, nans)
		sure = sure && (leaf.Negated || len(leaf.Values) > 0) // of "in ()" the evaluator decides
	}
	return in, sure, true
}

// spanOf is an interval of keys as parts.
func spanOf(iv index.Interval, e index.Encoding) span {
	lo, hi := []byte{partValue}, []byte{partNaN}
	switch {
	case iv.LoOpen:
		lo = append(appendWhole(lo, e, iv.Lo), partEnd)
	case iv.Point():
		lo = appendWhole(lo, e, iv.Lo)
	case iv.Lo != nil:
		lo = appendKey(lo, e, iv.Lo)
	}
	switch {
	case iv.NoHi:
	case iv.HiOpen:
		hi = appendKey([]byte{partValue}, e, iv.Hi)
	default:
		hi = append(appendWhole([]byte{partValue}, e, iv.Hi), partEnd)
	}
	return span{lo: lo, hi: hi, point: iv.Point()}
}

// without is the parts of a span that are not in s, which lies in it.
func (s spans) without(whole span) spans {
	var out spans
	at := whole.lo
	for _, x := range s {
		if bytes.Compare(at, x.lo) < 0 {
			out = append(out, span{lo: at, hi: x.lo})
		}
		at = x.hi
	}
	if bytes.Compare(at, whole.hi) < 0 {
		out = append(out, span{lo: at, hi: whole.hi})
	}
	return out
}

// and is the parts in both.
func (s spans) and(t spans) spans {
	var out spans
	for i, j := 0, 0; i < len(s) && j < len(t); {
		a, b := s[i], t[j]
		x := span{lo: later(a.lo, b.lo), hi: earlier(a.hi, b.hi), point: a.point || b.point}
		if bytes.Compare(x.lo, x.hi) < 0 {
			out = append(out, x)
		}
		if bytes.Compare(a.hi, b.hi) < 0 {
			i++
		} else {
			j++
		}
	}
	return out
}

func later(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return b
	}
	return a
}

func earlier(a, b []byte) []byte {
	if bytes.Compare(a, b) < 0 {
		return a
	}
	return b
}

// points reports whether every span is one part.
func (s spans) points() bool { return !slices.ContainsFunc(s, func(x span) bool { return !x.point }) }

// A probe looks up at most maxPrefixes equal starts of tuples, and with them at most maxIntervals intervals: those of tuples are made for each
// artifact.
const (
	maxPrefixes  = 1024
	maxIntervals = 1 << 12
	maxListed    = maxIntervals - 3 // a negated list has one more interval, null and NaN
)

// conjunction is the tuples that leaves leave.
type conjunction struct {
	in   []index.Interval
	used []*predicate.Leaf
	sure bool // of leaves used: a tuple in the intervals passes them
}

// conjunctionOf works through the parts: as long as those before have a few equal values, the leaves on the next narrow too.
func conjunctionOf(leaves []*predicate.Leaf, parts []part) conjunction {
	out := conjunction{sure: true}
	prefixes := [][]byte{nil}
	for _, c := range parts {
		in, used, sure := oneColumn(leaves, c)
		if len(used) == 0 || len(prefixes)*len(in) > maxIntervals {
			break
		}
		out.used, out.sure = append(out.used, used...), out.sure && sure
		out.in = nil
		for _, p := range prefixes {
			for _, x := range in {
				out.in = append(out.in, index.Interval{Lo: slices.Concat(p, x.lo), Hi: slices.Concat(p, x.hi), HiOpen: true})
			}
		}
		if !in.points() || len(out.in) > maxPrefixes {
			break
		}
		prefixes = nil
		for _, iv := range out.in {
			prefixes = append(prefixes, iv.Lo)
		}
	}
	return out
}

// oneColumn is what the leaves on one column leave of its parts together.
func oneColumn(leaves []*predicate.Leaf, c part) (in spans, used []*predicate.Leaf, sure bool) {
	sure = true
	for _, l := range leaves {
		if len(l.Column.Path) == 0 || l.Column.ID() != c.id {
			continue
		}
		x, exactly, ok := spansOf(l, c.enc)
		if !ok {
			continue
		}
		if len(used) == 0 {
			in = x
		} else {
			in = in.and(x)
		}
		used, sure = append(used, l), sure && exactly
	}
	return in, used, sure
}
