package parquetio

import (
	"bytes"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/rowset"
	"github.com/skomerdb/skomer/internal/store"
)

// piece is a span of one chunk with the segment that it becomes.
type piece struct {
	span store.Span
	seg  segment // without data
}

// PageIndexSpans is where the page indexes lie that are not loaded yet, for the bound leaves of the row groups that hold any
// of rows; nil rows mean all. Hand what is fetched to LoadPageIndex.
func (b *Binding) PageIndexSpans(rows *rowset.Set) []store.Span {
	var out []store.Span
	b.eachIndex(rows, func(_, _ int, k *chunk) {
		offset, bounds, hasOffset, hasBounds := b.file.indexSpans(k)
		if hasBounds {
			out = append(out, bounds)
		}
		if hasOffset {
			out = append(out, offset)
		}
	})
	return out
}

// eachIndex visits every chunk whose page index is wanted and not loaded.
func (b *Binding) eachIndex(rows *rowset.Set, visit func(group, leaf int, k *chunk)) {
	for g := range b.file.meta.groups {
		if rows != nil && !rows.Intersects(b.file.group(g)) {
			continue
		}
		for _, leaf := range b.leaves {
			if b.chunkIndex(g, leaf) == nil {
				visit(g, leaf, &b.file.meta.groups[g].chunks[leaf])
			}
		}
	}
}

// chunkIndex is the binding's view of a chunk's page index; nil: not loaded. Only Bind, LoadPageIndex and DropPageIndex change it,
// so that spans and decoding agree whatever other bindings of the file load.
func (b *Binding) chunkIndex(group, leaf int) *chunkIndex {
	return b.index[group*len(b.file.leaves)+leaf]
}

// shareIndexes takes what other bindings have loaded already.
func (b *Binding) shareIndexes() {
	for g := range b.file.meta.groups {
		for _, leaf := range b.leaves {
			if x := b.file.index.get(g, leaf); x != nil {
				b.index[g*len(b.file.leaves)+leaf] = x
			}
		}
	}
}

// LoadPageIndex takes the bytes of PageIndexSpans(rows), in that order. A damaged or contradictory index counts as none. The
// fault is about data that does not belong to the spans.
func (b *Binding) LoadPageIndex(rows *rowset.Set, data [][]byte) error {
	at := 0
	var mismatch error
	take := func(s store.Span, has bool) []byte {
		if !has || mismatch != nil {
			return nil
		}
		if at >= len(data) || int64(len(data[at])) != s.Len {
			mismatch = fault.New(fault.Invalid, b.file.name, "page index bytes do not belong to the spans")
			return nil
		}
		at++
		return bytes.Clone(data[at-1])
	}
	type loaded struct {
		group, leaf int
		index       *chunkIndex
		size        int64
	}
	var all []loaded
	b.eachIndex(rows, func(g, leaf int, k *chunk) {
		offset, bounds, hasOffset, hasBounds := b.file.indexSpans(k)
		boundBytes := take(bounds, hasBounds)
		offsetBytes := take(offset, hasOffset)
		x := b.file.readIndex(g, leaf, offsetBytes, boundBytes)
		all = append(all, loaded{g, leaf, x, int64(len(offsetBytes)*4 + len(boundBytes)*4 + 64)})
	})
	if mismatch != nil {
		return mismatch
	}
	for _, l := range all {
		b.file.index.put(l.group, l.leaf, l.index, l.size)
		b.index[l.group*len(b.file.leaves)+l.leaf] = l.index
	}
	return nil
}

// readIndex parses both parts of a chunk's page index; bounds count only beside offsets.
func (f *File) readIndex(group, leaf int, offset, bounds []byte) *chunkIndex {
	x := &chunkIndex{}
	g := &f.meta.groups[group]
	if offset == nil {
		return x
	}
	o, err := f.parseOffsets(offset, &g.chunks[leaf], g.rows)
	if err != nil {
		return x
	}
	x.offsets = o
	if bounds == nil {
		return x
	}
	if p, err := parseBounds(bounds); err == nil && p.consistent(o, g, leaf, f.leaves[leaf]) {
		x.bounds = p
	}
	return x
}

// Spans is exactly the bytes that Decode of the same rows needs: per chunk with wanted rows the whole chunk or, where an
// offset index is loaded and some pages are not wanted, the dictionary's region and the wanted pages, neighbours in one span.
// nil rows mean all.
func (b *Binding) Spans(rows *rowset.Set) []store.Span {
	var out []store.Span
	_ = b.eachGroup(rows, func(g int, wanted []rowset.Range) error {
		for _, leaf := range b.leaves {
			for _, p := range b.pieces(g, leaf, wanted) {
				out = append(out, p.span)
			}
		}
		return nil
	})
	return out
}

// eachGroup visits the row groups that hold any of rows, with the wanted ranges within the group.
func (b *Binding) eachGroup(rows *rowset.Set, visit func(group int, wanted []rowset.Range) error) error {
	all := []rowset.Range{{Start: 0, End: uint32(b.file.Rows())}}
	if rows != nil {
		all = rows.Ranges()
	}
	for g := range b.file.meta.groups {
		group := b.file.group(g)
		var wanted []rowset.Range
		for len(all) > 0 && all[0].Start < group.End {
			if s, e := max(all[0].Start, group.Start), min(all[0].End, group.End); s < e {
				wanted = append(wanted, rowset.Range{Start: s - group.Start, End: e - group.Start})
			}
			if all[0].End > group.End {
				break
			}
			all = all[1:]
		}
		if len(wanted) == 0 {
			continue
		}
		if err := visit(g, wanted); err != nil {
			return err
		}
	}
	return nil
}

// pieces is what to fetch of one chunk for the wanted rows of its group.
func (b *Binding) pieces(group, leaf int, wanted []rowset.Range) []piece {
	k := &b.file.meta.groups[group].chunks[leaf]
	span, _ := b.file.chunkSpan(k) // checked when bound
	whole := []piece{{span: span, seg: segment{whole: true}}}
	x := b.chunkIndex(group, leaf)
	if x == nil || x.offsets == nil {
		return whole
	}
	pages := x.offsets.pages
	var out []piece
	if first := pages[0].offset; first > span.Off {
		out = append(out, piece{span: store.Span{Off: span.Off, Len: first - span.Off}})
	}
	taken, last := 0, -2
	for i, p := range pages {
		end := pageEnd(pages, i, b.file.meta.groups[group].rows)
		if !overlaps(&wanted, p.row, end) && !(p.row == end && last == i-1) {
			continue
		}
		if last != i-1 {
			out = append(out, piece{span: store.Span{Off: p.offset}, seg: segment{row: p.row, starts: []int64{p.row}}})
		}
		o := &out[len(out)-1]
		o.span.Len += int64(p.size)
		o.seg.starts, o.seg.sizes = append(o.seg.starts, end), append(o.seg.sizes, p.size)
		last, taken = i, taken+1
	}
	if taken == len(pages) {
		return whole
	}
	return out
}

func pageEnd(pages []pageLocation, i int, rows int64) int64 {
	if i+1 < len(pages) {
		return pages[i+1].row
	}
	return rows
}

// overlaps reports whether a wanted range meets [start, end), and drops ranges that end before start.
func overlaps(wanted *[]rowset.Range, start, end int64) bool {
	for len(*wanted) > 0 && int64((*wanted)[0].End) <= start {
		*wanted = (*wanted)[1:]
	}
	return len(*wanted) > 0 && int64((*wanted)[0].Start) < end && start < end
}

// DropPageIndex forgets the page indexes for this binding and for the file: spans are whole chunks from now on. It is the
// answer to PageIndexWrong.
func (b *Binding) DropPageIndex() {
	for g := range b.file.meta.groups {
		for _, leaf := range b.leaves {
			x := &chunkIndex{}
			b.file.index.put(g, leaf, x, 0)
			b.index[g*len(b.file.leaves)+leaf] = x
		}
	}
}

// PageStarts is the first row of every page of column i's leaf, as file positions in ascending order; the starts of row groups
// where there is no page index. It is nil for a column without a leaf.
func (b *Binding) PageStarts(i int) []uint32 {
	c := b.cols[i]
	if len(c.readers) == 0 {
		return nil
	}
	leaf := c.readers[0].leaf.leaf
	var out []uint32
	for g := range b.file.meta.groups {
		r := b.file.group(g)
		if r.Len() == 0 {
			continue
		}
		x := b.chunkIndex(g, leaf)
		if x == nil || x.offsets == nil {
			out = append(out, r.Start)
			continue
		}
		for j, p := range x.offsets.pages {
			if pageEnd(x.offsets.pages, j, int64(r.Len())) > p.row {
				out = append(out, r.Start+uint32(p.row))
			}
		}
	}
	return out
}
