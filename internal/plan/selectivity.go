package plan

import (
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/sketch"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Known is what is known of columns, by field id.
type Known map[int]*sketch.Summary

// Share estimates the part of the rows, 0 to 1, that pass a predicate. Columns are taken to be independent, but for the leaves of a
// conjunction on one column. known is false where a leaf could change the estimate much and nothing is known of its column.
func (k Known) Share(t *predicate.Tree) (share float64, known bool) {
	switch t.Kind {
	case predicate.True:
		return 1, true
	case predicate.False:
		return 0, true
	case predicate.Test:
		return k.leaf(t.Leaf)
	case predicate.And:
		return k.and(t)
	}
	fail := 1.0
	known = true
	for _, kid := range t.Kids {
		s, ok := k.Share(kid)
		known = known && ok
		fail *= 1 - s
	}
	return 1 - fail, known
}

// and multiplies the shares of columns; what is unknown can only lower the product.
func (k Known) and(t *predicate.Tree) (share float64, known bool) {
	share = 1
	byColumn := map[int][]*predicate.Leaf{}
	var order []int
	for _, kid := range t.Kids {
		if kid.Kind == predicate.Test {
			id := kid.Leaf.Column.ID()
			if byColumn[id] == nil {
				order = append(order, id)
			}
			byColumn[id] = append(byColumn[id], kid.Leaf)
			continue
		}
		if s, ok := k.Share(kid); ok {
			share *= s
		} else {
			return share, false
		}
	}
	for _, id := range order {
		s, ok := k.joint(byColumn[id])
		if !ok {
			return share, false
		}
		share *= s
	}
	return share, true
}

// joint is the share of rows that pass all of leaves, which are on one column or on several.
func (k Known) joint(leaves []*predicate.Leaf) (share float64, known bool) {
	share = 1
	byColumn := map[int][]*predicate.Leaf{}
	for _, l := range leaves {
		byColumn[l.Column.ID()] = append(byColumn[l.Column.ID()], l)
	}
	for _, group := range byColumn {
		s, ok := k.oneColumn(group)
		if !ok {
			return 0, false
		}
		share *= s
	}
	return share, true
}

// oneColumn is joint for leaves on one column: ranges are cut with each other.
func (k Known) oneColumn(leaves []*predicate.Leaf) (share float64, known bool) {
	s := k[leaves[0].Column.ID()]
	if s == nil || s.Rows == 0 {
		return 0, false
	}
	share = 1
	var in []index.Interval
	cut := false
	for _, l := range leaves {
		ask, ok := index.Asked(l, s.Encoding())
		if !ok || l.Negated || s.List || !ask.Exact || len(ask.In) == 0 {
			one, ok := k.leaf(l)
			if !ok {
				return 0, false
			}
			share *= one
			continue
		}
		if cut {
			in = index.Common(in, ask.In)
		} else {
			in, cut = ask.In, true
		}
	}
	if cut {
		part, ok := inside(s, in)
		if !ok {
			return 0, false
		}
		share *= part
	}
	return share, true
}

// leaf is the share of rows that one leaf passes.
func (k Known) leaf(l *predicate.Leaf) (share float64, known bool) {
	if len(l.Column.Path) == 0 {
		return 0, false
	}
	s := k[l.Column.ID()]
	if s == nil || s.Rows == 0 || s.List || l.Unknown {
		return 0, false
	}
	ask, ok := index.Asked(l, s.Encoding())
	if !ok {
		return 0, false
	}
	null, nan := float64(s.Nulls)/float64(s.Rows), float64(s.NaNs)/float64(s.Rows)
	switch {
	case l.Op == predicate.IsNull:
		share = null
	case l.Op == predicate.IsNaN:
		share = nan
	case !ask.Exact:
		return 0, false
	default:
		if share, known = inside(s, ask.In); !known {
			return 0, false
		}
	}
	if !l.Negated {
		return share, true
	}
	if l.Dialect == predicate.SQL && l.Op != predicate.IsNull {
		return max(0, 1-null-share), true
	}
	return 1 - share, true
}

// inside is the share of rows whose value lies in one of the intervals.
func inside(s *sketch.Summary, in []index.Interval) (float64, bool) {
	total := 0.0
	for _, iv := range in {
		part, ok := s.Share(iv)
		if !ok {
			return 0, false
		}
		total += part
	}
	return min(1, total) * float64(s.Values) / float64(s.Rows), true
}
