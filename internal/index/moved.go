package index

import (
	"fmt"
	"slices"

	"github.com/skomerdb/skomer/internal/rowset"
)

// Moved is rows of one granule of a source that lie together in a merged artifact.
type Moved struct {
	Source, Granule int
	Old             uint32       // rows of the granule in its source
	At              rowset.Range // new ordinals
}

// Moves lists where the granules of the sources went, in the order of the new ordinals, which they cover without a gap. granules is, per
// source, the granules that cut its rows. What is kept of a granule is true of any part of it, only less telling, so there is a reason
// not to merge when the rows of granules are scattered or most of them are gone. wanted is the granules that the new segment has of its
// own.
func Moves(m *OrdinalMap, granules [][]Granule, wanted int) (moved []Moved, reason string) {
	limit := 2 * wanted
	for _, g := range granules {
		limit += 2 * len(g)
	}
	touched := uint64(0)
	for s, list := range granules {
		for i, g := range list {
			first := len(moved)
			m.Each(s, g.Range(), func(_, to rowset.Range) {
				if n := len(moved); n > first && moved[n-1].At.End == to.Start {
					moved[n-1].At.End = to.End
				} else if n <= limit {
					moved = append(moved, Moved{Source: s, Granule: i, Old: g.Rows, At: to})
				}
			})
			if len(moved) > first {
				touched += uint64(g.Rows)
			}
			if len(moved) > limit {
				return nil, fmt.Sprintf("the rows of its granules were scattered over more than %d places", limit)
			}
		}
	}
	if touched > 2*uint64(m.Rows()) {
		return nil, fmt.Sprintf("only %d of the %d rows of its granules are left", m.Rows(), touched)
	}
	slices.SortFunc(moved, func(a, b Moved) int { return int(int64(a.At.Start) - int64(b.At.Start)) })
	joined := moved[:0]
	for _, x := range moved {
		if n := len(joined); n > 0 && joined[n-1].Source == x.Source && joined[n-1].Granule == x.Granule {
			joined[n-1].At.End = x.At.End
		} else {
			joined = append(joined, x)
		}
	}
	return joined, ""
}

// Counts is what is known of the rows of a granule that a merge made: how many of them are null and NaN, at least and at most, and how
// many are neither.
type Counts struct {
	Rows                        uint32
	minNull, minNaN, minValue   uint32
	mayNull, mayNaN, mayBeValue bool
}

// Part is what is known of some of the granule's rows: all of it if they are all.
func (g Granule) Part(rows uint32) Counts {
	gone, values := g.Rows-rows, g.Rows-g.Nulls-g.NaNs
	least := func(n uint32) uint32 { return n - min(n, gone) }
	return Counts{
		Rows: rows, minNull: least(g.Nulls), minNaN: least(g.NaNs), minValue: least(values),
		mayNull: g.Nulls > 0 && rows > 0, mayNaN: g.NaNs > 0 && rows > 0, mayBeValue: values > 0 && rows > 0,
	}
}

// Add joins the rows of d.
func (c *Counts) Add(d Counts) {
	c.Rows += d.Rows
	c.minNull, c.minNaN, c.minValue = c.minNull+d.minNull, c.minNaN+d.minNaN, c.minValue+d.minValue
	c.mayNull, c.mayNaN, c.mayBeValue = c.mayNull || d.mayNull, c.mayNaN || d.mayNaN, c.mayBeValue || d.mayBeValue
}

// Granule states the counts, which are right where they are 0 or all rows, and exact if they are known. Where it is not known whether
// some row is null, one is counted, so that the granule is in doubt. ok is false where there are too few rows to state that.
func (c *Counts) Granule(start uint32) (g Granule, ok bool) {
	g = Granule{Start: start, Rows: c.Rows, Nulls: c.minNull, NaNs: c.minNaN}
	value := c.minValue
	for _, x := range []struct {
		n   *uint32
		may bool
	}{{&g.Nulls, c.mayNull}, {&g.NaNs, c.mayNaN}, {&value, c.mayBeValue}} {
		if x.may {
			*x.n = max(*x.n, 1)
		}
	}
	for over := uint64(g.Nulls) + uint64(g.NaNs) + uint64(value); over > uint64(c.Rows); over-- {
		most := &g.Nulls
		for _, n := range []*uint32{&g.NaNs, &value} {
			if *n > *most {
				most = n
			}
		}
		if *most <= 1 {
			return g, false
		}
		*most--
	}
	if !c.mayBeValue { // every row is null or NaN
		if rest := c.Rows - g.Nulls - g.NaNs; c.mayNull {
			g.Nulls += rest
		} else {
			g.NaNs += rest
		}
	}
	return g, true
}

// GroupOf is the row group that rows [start, end) lie in, -1 if they lie in several; the last of starts closes the row groups.
func GroupOf(starts []uint32, start, end uint32) int {
	i, ok := slices.BinarySearch(starts, start)
	if !ok {
		i--
	}
	if i >= 0 && i+1 < len(starts) && end <= starts[i+1] {
		return i
	}
	return -1
}
