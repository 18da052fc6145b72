package parquetio

import (
	"math"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Layout is what reading pages of a file needs of its footer and page index: how its columns are found and decoded, and where their pages
// lie. It has names of columns and no values: no bounds, no counts of nulls. Files of one writer and schema have one Shape.
//
//	shape   uv length, created_by as in the footer
//	        uv length, the list of schema elements as in the footer: Thrift's compact protocol
//	        u8 codec            per leaf
//	places  uv row groups       none of them empty
//	        per row group
//	          uv rows
//	          per leaf
//	            zigzag uv       from the end of the chunk before, at first from byte 4, to where this one begins
//	            uv              bytes before its first page of rows: the dictionary
//	            uv values       only of leaves that a list repeats
//	            uv pages        0: there is no offset index
//	            uv bytes        of the pages of rows; only where pages = 0
//	            uv rows         of each page but the last, which has the rest; 0: they differ; only where pages > 1
//	            per page
//	              uv bytes      header included
//	              uv rows       only where they differ
//
// uv is an unsigned LEB128 varint.
type Layout struct{ Shape, Places []byte }

const (
	// maxShape and maxPlaces bound a layout: of files with more columns or pages the footer is read.
	maxShape  = 32 << 10
	maxPlaces = 4 << 10
)

// LayoutSpans is where the offset indexes lie that Layout needs and that are not loaded.
func (f *File) LayoutSpans() (out []store.Span) {
	for g := range f.meta.groups {
		for i := range f.meta.groups[g].chunks {
			span, _, has, _ := f.indexSpans(&f.meta.groups[g].chunks[i])
			if has && f.index.get(g, i) == nil {
				out = append(out, span)
			}
		}
	}
	return out
}

// Layout is that of the file; held has the bytes of LayoutSpans. ok is false for files that have none: of which a column cannot be read or
// an offset index cannot be used, and those that are beyond the bounds.
func (f *File) Layout(held *Held) (l Layout, ok bool) {
	if !f.meta.schema.has() {
		return Layout{}, false
	}
	w := &bytescan.Writer{}
	w.String(f.meta.createdBy)
	w.Blob(f.bytesOf(f.meta.schema))
	for i := range f.leaves {
		codec, alike := f.codecOf(i)
		if !alike || f.checkLeaf(i) != nil {
			return Layout{}, false
		}
		w.U8(codec)
	}
	if f.sharedID || f.writer.shortChunks() || len(f.leaves) == 0 || len(w.Buf) > maxShape {
		return Layout{}, false
	}
	l.Shape, w = w.Buf, &bytescan.Writer{}
	w.Uvarint(uint64(len(f.meta.groups)))
	at := int64(magicSize)
	for g := range f.meta.groups {
		w.Uvarint(uint64(f.meta.groups[g].rows))
		for i := range f.leaves {
			if at, ok = f.appendChunk(w, held, g, i, at); !ok || len(w.Buf) > maxPlaces {
				return Layout{}, false
			}
		}
		if f.meta.groups[g].rows == 0 {
			return Layout{}, false
		}
	}
	l.Places = w.Buf
	return l, true
}

// codecOf is how the chunks of a leaf are compressed; alike is false where they differ.
func (f *File) codecOf(leaf int) (codec uint8, alike bool) {
	for g := range f.meta.groups {
		c := f.meta.groups[g].chunks[leaf].codec
		if c < 0 || g > 0 && uint8(c) != codec {
			return 0, false
		}
		codec = uint8(c)
	}
	return codec, true
}

// appendChunk writes the places of a chunk, of which the one before ends at a byte, and returns where it ends itself.
func (f *File) appendChunk(w *bytescan.Writer, held *Held, group, leaf int, at int64) (end int64, ok bool) {
	k := &f.meta.groups[group].chunks[leaf]
	span, err := f.chunkSpan(k)
	o, has := f.offsetsOf(held, group, leaf)
	if err != nil || has && o == nil || span.Len != k.compressed {
		return 0, false
	}
	first := k.dataOffset
	if has {
		first = o.pages[0].offset
	}
	if first < span.Off || first > span.End() {
		return 0, false
	}
	gap := span.Off - at
	w.Uvarint(uint64(gap)<<1 ^ uint64(gap>>63))
	w.Uvarint(uint64(first - span.Off))
	if f.leaves[leaf].rep > 0 {
		w.Uvarint(uint64(k.numValues))
	}
	if !has {
		w.Uvarint(0)
		w.Uvarint(uint64(span.End() - first))
		return span.End(), true
	}
	appendPages(w, o.pages, f.meta.groups[group].rows)
	return span.End(), true
}

// offsetsOf is the offset index of a chunk; nil where it cannot be used, has is false where the file has none.
func (f *File) offsetsOf(held *Held, group, leaf int) (o *offsets, has bool) {
	g := &f.meta.groups[group]
	span, _, has, _ := f.indexSpans(&g.chunks[leaf])
	if !has {
		return nil, false
	}
	if x := f.index.get(group, leaf); x != nil {
		return x.offsets, true
	}
	raw, ok := held.Get(span)
	if !ok {
		return nil, true
	}
	o, err := f.parseOffsets(raw, &g.chunks[leaf], g.rows)
	if err != nil {
		return nil, true
	}
	return o, true
}

func appendPages(w *bytescan.Writer, pages []pageLocation, rows int64) {
	w.Uvarint(uint64(len(pages)))
	stride := int64(0)
	if len(pages) > 1 {
		stride = pages[1].row
		for i, p := range pages {
			if p.row != int64(i)*stride {
				stride = 0
			}
		}
		w.Uvarint(uint64(stride))
	}
	for i, p := range pages {
		w.Uvarint(uint64(p.size))
		if len(pages) > 1 && stride == 0 {
			w.Uvarint(uint64(pageEnd(pages, i, rows) - p.row))
		}
	}
}

// Shape is a parsed shape of layouts. It is safe for concurrent use.
type Shape struct {
	file   File
	codecs []byte
}

// ParseShape parses the shape of layouts.
func ParseShape(raw []byte) (*Shape, error) {
	const what = "shape of a layout"
	r := bytescan.NewReader(what, raw)
	if len(raw) > maxShape {
		r.Fail("%d bytes, limit %d", len(raw), maxShape)
	}
	m := &metadata{createdBy: r.String(maxShape)}
	c := &compact{b: r.Blob(maxShape)}
	if r.Err() != nil {
		return nil, r.Err()
	}
	m.elements = c.elements(nil)
	if c.err == nil && c.i != len(c.b) {
		c.fail("%d bytes follow the schema", len(c.b)-c.i)
	}
	if c.err != nil {
		return nil, fault.About(what, c.err)
	}
	s := &Shape{file: File{meta: m, writer: parseWriter(m.createdBy)}}
	if err := s.file.buildSchema(); err != nil {
		return nil, fault.About(what, err)
	}
	s.codecs = r.Bytes(len(s.file.leaves))
	if r.Err() == nil && (s.file.sharedID || s.file.writer.shortChunks() || len(s.file.leaves) == 0) {
		r.Fail("no layout is made of such files")
	}
	return s, r.Done()
}

// File is the file of size bytes and so many rows with the places, for reading pages of any of its columns: it has no statistics and no
// footer. Places that lie outside the file or contradict themselves or the rows are Corrupt faults; that they are those of the file
// nothing but their checksum and the tag vouches for, beside what Decode finds at them.
func (s *Shape) File(name string, tag store.Tag, size, rows int64, places []byte) (*File, error) {
	f := &File{
		name: name, tag: tag, size: size, meta: &metadata{elements: s.file.meta.elements, createdBy: s.file.meta.createdBy, rows: rows},
		root: s.file.root, leaves: s.file.leaves, hasIDs: s.file.hasIDs, writer: s.file.writer,
	}
	r := bytescan.NewReader("layout of "+name, places)
	if len(places) > maxPlaces {
		r.Fail("%d bytes, limit %d", len(places), maxPlaces)
	}
	groups := r.Count(maxPlaces, 1+3*len(f.leaves))
	f.index.init(groups, len(f.leaves))
	at := int64(magicSize)
	for g := range groups {
		n := r.Uvarint()
		if r.Err() == nil && (n == 0 || n > math.MaxUint32) {
			r.Fail("row group %d of %d rows", g, n)
		}
		group := rowGroup{rows: int64(n), chunks: make([]chunk, len(f.leaves))}
		for i := range group.chunks {
			at = f.readChunk(r, g, i, &group, at)
			group.chunks[i].codec = int8(s.codecs[i])
			if r.Err() != nil {
				return nil, r.Err()
			}
		}
		f.meta.groups = append(f.meta.groups, group)
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	if err := f.checkRows(); err != nil {
		return nil, fault.About(name, err)
	}
	if f.Rows() != rows {
		return nil, fault.New(fault.Corrupt, "layout of "+name, "row groups of %d rows, the file has %d", f.Rows(), rows)
	}
	return f, nil
}

// readChunk reads the places of a chunk.
func (f *File) readChunk(r *bytescan.Reader, group, leaf int, g *rowGroup, at int64) (end int64) {
	n := f.leaves[leaf]
	k := chunk{nulls: -1, nans: -1, min: no, max: no, minValue: no, maxValue: no, phys: n.phys, hasMeta: true, numValues: g.rows}
	gap := r.Uvarint()
	start := at + (int64(gap>>1) ^ -int64(gap&1))
	first := start + upTo(r, math.MaxInt32)
	if n.rep > 0 {
		k.numValues = upTo(r, math.MaxInt64)
	}
	if k.dataOffset = first; first > start {
		k.dictOffset = start
	}
	pages := r.Count(maxPlaces, 1)
	var o *offsets
	if pages == 0 {
		k.compressed = first - start + upTo(r, f.size)
	} else {
		o = &offsets{pages: readPages(r, pages, first, g.rows)}
		last := o.pages[pages-1]
		k.compressed = last.offset + int64(last.size) - start
		f.index.put(group, leaf, &chunkIndex{offsets: o}, int64(pages*24+64))
	}
	if r.Err() != nil {
		return 0
	}
	span, err := f.chunkSpan(&k)
	if err != nil || span.Off != start || span.Len != k.compressed || o != nil && !o.fits(span, g.rows) {
		r.Fail("places of column %d in row group %d do not fit", leaf, group)
	}
	g.chunks[leaf] = k
	return span.End()
}

// readPages reads the places of pages from a byte on.
func readPages(r *bytescan.Reader, n int, at, rows int64) []pageLocation {
	stride := int64(0)
	if n > 1 {
		stride = upTo(r, math.MaxUint32)
	}
	out := make([]pageLocation, n)
	row := int64(0)
	for i := range out {
		out[i] = pageLocation{offset: at, size: int32(upTo(r, math.MaxInt32)), row: row}
		at += int64(out[i].size)
		if n > 1 && stride == 0 {
			row += upTo(r, math.MaxUint32)
		} else {
			row += stride
		}
	}
	if n > 1 && stride == 0 && row != rows {
		r.Fail("pages of %d rows for %d", row, rows)
	}
	return out
}

// upTo reads a varint of at most limit.
func upTo(r *bytescan.Reader, limit int64) int64 {
	v := r.Uvarint()
	if v > uint64(limit) {
		r.Fail("%d above the limit of %d", v, limit)
		return 0
	}
	return int64(v)
}
