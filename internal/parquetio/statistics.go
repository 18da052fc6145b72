package parquetio

import (
	"bytes"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/rowset"
)

// UnknownCount is the value of a count that the file does not state, or not credibly.
const UnknownCount int64 = -1

// Bounds is what a file says of one column over a range of its rows, in the table's type. The bounds never speak of nulls, nor of
// NaNs: without a NaN count assume some. Everything may be unknown; what is known has passed the rules of
// docs/format/parquet.md.
type Bounds struct {
	Rows rowset.Range // file positions
	// Min and Max are lower and upper bounds; nil: unknown. They hold for value order (column.Compare); a zero bound of a float
	// column is -0.0 as Min and 0.0 as Max.
	Min, Max *column.Value
	// MinExact and MaxExact say that the bound is a value of the rows. False is the rule.
	MinExact, MaxExact bool
	Nulls              int64 // rows without a value; UnknownCount
	NaNs               int64 // UnknownCount
}

// AllNull reports whether no row has a value.
func (b *Bounds) AllNull() bool { return b.Nulls == int64(b.Rows.Len()) }

// Statistics is the bounds of one column.
type Statistics struct {
	Groups []Bounds   // one per row group
	Pages  [][]Bounds // per row group one per page with rows; nil without a usable page index
}

// Statistics is what footer and loaded page indexes say about column i. A column that is a list, map or struct has bounds without
// any knowledge; an absent column has its default's.
func (b *Binding) Statistics(i int) *Statistics {
	c := b.cols[i]
	s := &Statistics{Pages: make([][]Bounds, len(b.file.meta.groups))}
	for g := range b.file.meta.groups {
		s.Groups = append(s.Groups, c.groupBounds(b.file, g))
		if c.flat {
			s.Pages[g] = b.pageBounds(c, g)
		}
	}
	return s
}

func unknown(rows rowset.Range) Bounds {
	return Bounds{Rows: rows, Nulls: UnknownCount, NaNs: UnknownCount}
}

func (c *bound) groupBounds(f *File, g int) Bounds {
	rows := f.group(g)
	b := unknown(rows)
	if c.plan.shape == shapeDefault && c.plan.reader < 0 {
		return defaultBounds(c.plan.field, rows)
	}
	if !c.flat {
		return b
	}
	r := c.readers[0]
	k := &f.meta.groups[g].chunks[r.leaf.leaf]
	b.Nulls = nullCount(r, k.nulls, rows)
	if r.conv.null {
		b.Nulls = int64(rows.Len())
		return b
	}
	j := judge{writer: f.writer, leaf: r.leaf, conv: r.conv, order: k.order}
	lo, hi, current := f.bytesOf(k.minValue), f.bytesOf(k.maxValue), true
	if lo == nil && hi == nil {
		lo, hi, current = f.bytesOf(k.min), f.bytesOf(k.max), false
	}
	b.Min, b.Max = j.bounds(lo, hi, current)
	b.MinExact, b.MaxExact = b.Min != nil && k.minExact, b.Max != nil && k.maxExact
	b.NaNs = j.nans(k.nans, rows)
	b.unzero()
	return b
}

// nullCount believes a null count that is possible. Under an optional struct writers differ on whether a null struct counts, so
// there only "all" is believed.
func nullCount(r readerPlan, nulls int64, rows rowset.Range) int64 {
	switch {
	case r.leaf.def == 0:
		return 0
	case nulls < 0 || nulls > int64(rows.Len()):
		return UnknownCount
	case optionalAbove(r.leaf) && nulls != int64(rows.Len()):
		return UnknownCount
	default:
		return nulls
	}
}

func optionalAbove(n *node) bool { return n.parent != nil && n.parent.def > 0 }

// defaultBounds is the bounds of a column that is not in the file.
func defaultBounds(f column.Field, rows rowset.Range) Bounds {
	b := unknown(rows)
	switch {
	case f.Initial == nil || f.Type.Kind == column.Unknown:
		b.Nulls = int64(rows.Len())
	case !f.Type.Kind.Nested():
		b.Nulls, b.NaNs = 0, 0
		if f.Initial.IsNaN() {
			b.NaNs = int64(rows.Len())
			return b
		}
		b.Min, b.Max = f.Initial, f.Initial
		b.MinExact, b.MaxExact = true, true
	}
	return b
}

// unzero widens zero bounds of floats, which may have been written with either sign.
func (b *Bounds) unzero() {
	if b.Min != nil && b.Min.Kind.Floating() && b.Min.Float64() == 0 {
		b.Min, b.MinExact = signedZero(b.Min.Kind, true), false
	}
	if b.Max != nil && b.Max.Kind.Floating() && b.Max.Float64() == 0 {
		b.Max, b.MaxExact = signedZero(b.Max.Kind, false), false
	}
}

func signedZero(k column.Kind, negative bool) *column.Value {
	v := column.Value{Kind: k}
	if negative {
		v.Lo = 1 << 63
		if k == column.Float {
			v.Lo = 1 << 31
		}
	}
	return &v
}

// pageBounds is the bounds of the pages of a chunk; nil without a usable index.
func (b *Binding) pageBounds(c *bound, g int) []Bounds {
	r := c.readers[0]
	x := b.chunkIndex(g, r.leaf.leaf)
	if x == nil || x.bounds == nil || x.offsets == nil || r.conv.null {
		return nil
	}
	k := &b.file.meta.groups[g].chunks[r.leaf.leaf]
	j := judge{writer: b.file.writer, leaf: r.leaf, conv: r.conv, order: k.order}
	group := b.file.group(g)
	// A writer that leaves a chunk without bounds has none for its pages either: parquet-go's SkipPageBounds fills the column
	// index with zeros.
	unbounded := b.file.bytesOf(k.minValue) == nil && b.file.bytesOf(k.maxValue) == nil
	var out []Bounds
	for i, p := range x.offsets.pages {
		end := pageEnd(x.offsets.pages, i, int64(group.Len()))
		if end == p.row {
			continue
		}
		rows := rowset.Range{Start: group.Start + uint32(p.row), End: group.Start + uint32(end)}
		page := j.page(x.bounds, i, rows, r)
		if unbounded {
			page.Min, page.Max = nil, nil
		}
		out = append(out, page)
	}
	return out
}

func (j judge) page(p *pageBounds, i int, rows rowset.Range, r readerPlan) Bounds {
	b := unknown(rows)
	if p.nullPages[i] {
		b.Nulls = int64(rows.Len())
		return b
	}
	stated := UnknownCount
	if p.nulls != nil {
		stated = p.nulls[i]
	}
	b.Nulls = nullCount(r, stated, rows)
	b.Min, b.Max = j.bounds(p.min[i], p.max[i], true)
	stated = UnknownCount
	if p.nans != nil {
		stated = p.nans[i]
	}
	b.NaNs = j.nans(stated, rows)
	b.unzero()
	return b
}

// consistent holds a column index against the offset index and the chunk's own statistics. One contradiction, such as a page of
// nulls that has none, makes all of it unusable.
func (p *pageBounds) consistent(o *offsets, g *rowGroup, leaf int, n *node) bool {
	pages := len(o.pages)
	if len(p.nullPages) != pages || len(p.min) != pages || len(p.max) != pages ||
		p.nulls != nil && len(p.nulls) != pages || p.nans != nil && len(p.nans) != pages {
		return false
	}
	if n.rep > 0 {
		return true
	}
	sum := int64(0)
	for i, at := range o.pages {
		rows := pageEnd(o.pages, i, g.rows) - at.row
		if p.nulls == nil {
			if p.nullPages[i] && n.def == 0 && rows > 0 {
				return false
			}
			continue
		}
		nulls := p.nulls[i]
		if nulls < 0 || nulls > rows || rows > 0 && p.nullPages[i] != (nulls == rows) {
			return false
		}
		sum += nulls
	}
	stated := g.chunks[leaf].nulls
	return p.nulls == nil || stated < 0 || stated == sum
}

// sameBytes reports whether both bounds are there and equal: then all values are, in whatever order they were compared.
func sameBytes(lo, hi []byte) bool { return lo != nil && hi != nil && bytes.Equal(lo, hi) }
