package parquetio

import (
	"sync"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// maxPageIndex is the largest column or offset index that is read.
const maxPageIndex = 64 << 20

// pageLocation is a PageLocation.
type pageLocation struct {
	offset int64
	size   int32 // header included
	row    int64 // first row, within the row group
}

// offsets is the offset index of one chunk: its pages lie one behind the other.
type offsets struct {
	pages []pageLocation
}

// pageBounds is the column index of one chunk, one element a page. nulls and nans are nil when not stated.
type pageBounds struct {
	nullPages []bool
	min, max  [][]byte
	nulls     []int64
	nans      []int64
}

// chunkIndex is what a page index says of one chunk. Either part is nil when the file lacks it or it is unusable.
type chunkIndex struct {
	offsets *offsets
	bounds  *pageBounds
}

// pageIndexes keeps the indexes that were loaded, for all bindings of the file.
type pageIndexes struct {
	mu     sync.Mutex
	leaves int
	loaded map[int]*chunkIndex // by row group × leaves + leaf; present: loaded, maybe empty
	size   int64
}

func (p *pageIndexes) init(groups, leaves int) {
	p.leaves, p.loaded = leaves, map[int]*chunkIndex{}
}

func (p *pageIndexes) get(group, leaf int) *chunkIndex {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loaded[group*p.leaves+leaf]
}

func (p *pageIndexes) put(group, leaf int, x *chunkIndex, size int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loaded[group*p.leaves+leaf] == nil {
		p.size += size
	}
	p.loaded[group*p.leaves+leaf] = x
}

func (p *pageIndexes) memorySize() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size
}

// indexSpans is where a chunk's offset and column index lie; ok is false for a part that is absent or impossible.
func (f *File) indexSpans(k *chunk) (offset, bounds store.Span, hasOffset, hasBounds bool) {
	offset = store.Span{Off: k.offsetIndexOff, Len: int64(k.offsetIndexLen)}
	bounds = store.Span{Off: k.columnIndexOff, Len: int64(k.columnIndexLen)}
	return offset, bounds, f.plausible(offset), f.plausible(bounds)
}

func (f *File) plausible(s store.Span) bool {
	return s.Off >= magicSize && s.Len > 0 && s.Len <= maxPageIndex && s.Len <= f.size-tailSize && s.Off <= f.size-tailSize-s.Len
}

// parseOffsets reads an OffsetIndex and holds it against the chunk: pages must lie one behind the other from somewhere at or
// after the chunk's start to its end, and rows must not go back. Anything else makes the index unusable.
func (f *File) parseOffsets(b []byte, k *chunk, rows int64) (*offsets, error) {
	c := &compact{b: b}
	o := &offsets{}
	c.fields(func(id int, typ byte) bool {
		if id != 1 || typ != thriftList {
			return false
		}
		c.each(thriftStruct, func(int) { o.pages = append(o.pages, c.pageLocation()) })
		return true
	})
	if c.err != nil {
		return nil, c.err
	}
	span, err := f.chunkSpan(k)
	if err != nil {
		return nil, err
	}
	if !o.fits(span, rows) {
		return nil, fault.New(fault.Corrupt, "offset index", "contradicts the chunk")
	}
	return o, nil
}

func (o *offsets) fits(chunk store.Span, rows int64) bool {
	if len(o.pages) == 0 {
		return false
	}
	at, row := o.pages[0].offset, int64(0)
	if at < chunk.Off || o.pages[0].row != 0 {
		return false
	}
	for _, p := range o.pages {
		if p.offset != at || p.size <= 0 || p.row < row || p.row > rows {
			return false
		}
		at, row = at+int64(p.size), p.row
	}
	return at == chunk.End()
}

func (c *compact) pageLocation() pageLocation {
	p := pageLocation{offset: -1, row: -1}
	c.fields(func(id int, typ byte) bool {
		switch {
		case id == 1 && typ == thriftI64:
			p.offset = c.int64()
		case id == 2 && typ == thriftI32:
			p.size = c.int32()
		case id == 3 && typ == thriftI64:
			p.row = c.int64()
		default:
			return false
		}
		return true
	})
	return p
}

// parseBounds reads a ColumnIndex. Its byte strings are views of b.
func parseBounds(b []byte) (*pageBounds, error) {
	c := &compact{b: b}
	p := &pageBounds{}
	c.fields(func(id int, typ byte) bool {
		if typ != thriftList {
			return false
		}
		switch id {
		case 1:
			c.each(thriftTrue, func(int) { p.nullPages = append(p.nullPages, c.bool()) })
		case 2:
			c.each(thriftBinary, func(int) { p.min = append(p.min, c.binary()) })
		case 3:
			c.each(thriftBinary, func(int) { p.max = append(p.max, c.binary()) })
		case 5:
			c.each(thriftI64, func(int) { p.nulls = append(p.nulls, c.int64()) })
		case 8:
			c.each(thriftI64, func(int) { p.nans = append(p.nans, c.int64()) })
		default:
			return false
		}
		return true
	})
	return p, c.err
}

// chunkSpan is the bytes of a chunk: from its dictionary, or else its first data page, for the stated compressed size.
func (f *File) chunkSpan(k *chunk) (store.Span, error) {
	s := store.Span{Off: k.dataOffset, Len: k.compressed}
	if k.dictOffset >= magicSize && k.dictOffset < k.dataOffset {
		s.Off = k.dictOffset
	}
	end := f.size - tailSize
	if s.Len > 0 && s.Off < end {
		s.Len = min(s.Len, end-s.Off) // pages past the end fail by themselves
	}
	if s.Off < magicSize || s.Len < 0 || s.Len > end || s.Off > end-s.Len {
		return s, fault.New(fault.Corrupt, "", "column chunk [%d, +%d) lies outside the file of %d bytes", s.Off, s.Len, f.size)
	}
	if f.writer.shortChunks() {
		s.Len += min(100, end-s.End())
	}
	return s, nil
}
