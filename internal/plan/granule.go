package plan

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Granule is what a data file states of one column over some of its rows: a row group or a page.
type Granule struct {
	Rows     int64
	Min, Max *column.Value // of the column's type; bounds of what is neither null nor NaN; nil: unknown
	Nulls    int64         // facts.Unknown if not stated, as NaNs
	NaNs     int64
}

// Judge answers one leaf from granules. It is not for leaves over lists, whose elements no granule speaks about.
type Judge struct{ test meaning }

// NewJudge prepares a leaf; nil when granules cannot speak about it.
func NewJudge(l *predicate.Leaf) *Judge {
	if l.Column.Path.Repeated() || !judgeable(l) {
		return nil
	}
	j := &Judge{}
	j.test.ask(l)
	return j
}

// Over is what the granule proves of its rows.
func (j *Judge) Over(g *Granule) Answer {
	r := j.test.start
	r.counted(g.Rows, g.Nulls, g.NaNs)
	if j.test.q.op > predicate.IsNaN && (g.Min != nil || g.Max != nil) {
		in := interval{hasLo: g.Min != nil, hasHi: g.Max != nil}
		if in.hasLo {
			in.lo = *g.Min
		}
		if in.hasHi {
			in.hi = *g.Max
		}
		r.proves(signed(j.test.q.over(&in), j.test.leaf.Negated))
	}
	return j.test.conclude(&r)
}
