package parquetio

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// segment is a run of fetched bytes of one chunk: pages that lie one behind the other.
type segment struct {
	data []byte
	// row is the first row of the segment, within the row group; starts, if not nil, are those of its pages, and the end; sizes
	// are their bytes, headers included. A segment of the dictionary alone has no rows.
	row    int64
	starts []int64
	sizes  []int32
	whole  bool // the whole chunk: pages are taken as they come
}

// chunkReader reads the rows of one column chunk in ascending order into an accumulator.
type chunkReader struct {
	leaf     *node
	chunk    *chunk
	acc      *accumulator
	segments []segment
	row      int64 // next unread row, within the row group
	page     page
	pageAt   int // index of the next page within the segment
	seen     int64
	dict     *column.Vector
	levels   bool // keep levels (nested columns)
	// compressed: V2 pages are compressed even where they deny it.
	compressed bool
	defs       []uint8
}

// page is the open data page.
type page struct {
	left    int // values not yet taken, nulls included
	defs    hybrid
	values  values
	rep     []uint8 // repeated leaves: all levels of the page
	def     []uint8
	at      int
	body    []byte // decompressed, reused
	pending *lazy
}

// lazy is a page whose values were not needed yet.
type lazy struct {
	header pageHeader
	body   []byte // as stored
}

var errIndexed = fault.New(fault.Corrupt, "", "the page index contradicts the pages").WithFix("read the file without its page index")

// open starts the next data page; ok is false at the end of the chunk's segments.
func (r *chunkReader) open() (ok bool, err error) {
	if r.leaf.rep > 0 && r.seen >= r.chunk.numValues {
		return false, nil // what follows the last value is no page
	}
	for len(r.segments) > 0 {
		seg := &r.segments[0]
		if len(seg.data) == 0 {
			r.segments, r.pageAt = r.segments[1:], 0
			continue
		}
		h, body, err := r.nextPage(seg)
		if err != nil {
			return false, err
		}
		switch h.kind {
		case pageDictionary:
			err = r.readDictionary(h, body)
		case pageDataV1, pageDataV2:
			return true, r.startPage(seg, h, body)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// nextPage cuts the next page off the segment.
func (r *chunkReader) nextPage(seg *segment) (pageHeader, []byte, error) {
	h, n, err := readPageHeader(seg.data)
	if !seg.whole && (err != nil || !r.fits(seg, h, n)) {
		return h, nil, errIndexed
	}
	if err != nil {
		return h, nil, err
	}
	rest := seg.data[n:]
	if int64(h.compressed) > int64(len(rest)) {
		return h, nil, fault.New(fault.Corrupt, "", "page of %d bytes, the chunk has %d left", h.compressed, len(rest))
	}
	body := rest[:h.compressed:h.compressed]
	seg.data = rest[h.compressed:]
	if h.hasCRC && crc32.ChecksumIEEE(body) != h.crc {
		return h, nil, fault.New(fault.Corrupt, "", "page checksum %08x, expected %08x", crc32.ChecksumIEEE(body), h.crc)
	}
	return h, body, nil
}

// fits reports whether a page reached through the page index, with a header of n bytes, fills its place and is of the kind that belongs
// there: a data page where rows are, one dictionary before them.
func (r *chunkReader) fits(seg *segment, h pageHeader, n int) bool {
	size := int64(n) + int64(h.compressed)
	if len(seg.starts) == 0 {
		return h.kind == pageDictionary && size == int64(len(seg.data))
	}
	return (h.kind == pageDataV1 || h.kind == pageDataV2) && r.pageAt < len(seg.sizes) && size == int64(seg.sizes[r.pageAt])
}

func (r *chunkReader) readDictionary(h pageHeader, body []byte) error {
	if r.dict != nil {
		return fault.New(fault.Corrupt, "", "second dictionary in a chunk")
	}
	if h.encoding != encPlain && h.encoding != encPlainDictionary {
		return fault.New(fault.Unsupported, "", "dictionary in encoding %d", h.encoding)
	}
	body, err := decompress(r.chunk.codec, nil, body, int(h.size))
	if err != nil {
		return err
	}
	var v values
	if err := v.open(r.leaf, encPlain, body, int(h.values)); err != nil {
		return err
	}
	if w := v.width; w > 0 && int(h.values) > len(body)/w || v.form == formPrefixed && int(h.values) > len(body)/4 {
		return fault.New(fault.Corrupt, "", "dictionary claims %d values in %d bytes", h.values, len(body))
	}
	a := accumulator{conv: r.acc.conv}
	a.reset()
	if err := a.take(&v, int(h.values), nil); err != nil {
		return err
	}
	a.slots = int(h.values)
	r.dict = a.vector(a.slots)
	return nil
}

// startPage makes a data page current. A flat page stays packed until a value of it is wanted.
func (r *chunkReader) startPage(seg *segment, h pageHeader, body []byte) error {
	p := &r.page
	p.left, p.pending = int(h.values), &lazy{header: h, body: body}
	r.seen += int64(h.values)
	if r.leaf.rep > 0 && r.seen > r.chunk.numValues {
		return fault.New(fault.Corrupt, "", "pages hold more than the chunk's %d values", r.chunk.numValues)
	}
	rows, err := r.checkStart(seg, h)
	if err != nil {
		return err
	}
	r.pageAt++
	if r.leaf.rep > 0 {
		if err := r.unpackRepeated(); err != nil {
			return err
		}
		if !seg.whole && p.begun() != rows {
			return errIndexed
		}
	}
	return nil
}

// checkStart holds a page reached through the page index against it and returns the rows that it must have.
func (r *chunkReader) checkStart(seg *segment, h pageHeader) (rows int64, err error) {
	if seg.whole {
		return 0, nil
	}
	if r.pageAt == 0 && r.row < seg.row { // the rows before were not fetched
		r.row = seg.row
	}
	if r.pageAt+1 >= len(seg.starts) || r.row != seg.starts[r.pageAt] {
		return 0, errIndexed
	}
	rows = seg.starts[r.pageAt+1] - seg.starts[r.pageAt]
	if r.leaf.rep == 0 && int64(h.values) != rows || h.kind == pageDataV2 && int64(h.rows) != rows {
		return 0, errIndexed
	}
	return rows, nil
}

// unpack decompresses the current page and opens its levels and values.
func (r *chunkReader) unpack() error {
	p := &r.page
	if p.pending == nil {
		return nil
	}
	h, body := p.pending.header, p.pending.body
	p.pending = nil
	if h.kind == pageDataV2 {
		return r.unpackV2(h, body)
	}
	body, err := decompress(r.chunk.codec, p.body, body, int(h.size))
	if err != nil {
		return err
	}
	if r.chunk.codec != codecNone {
		p.body = body
	}
	if r.leaf.rep > 0 {
		var reps hybrid
		if reps, body, err = levelsV1(body, h.repEncoding, r.leaf.rep, p.left); err != nil {
			return err
		}
		if err := r.readLevels(&p.rep, &reps, r.leaf.rep); err != nil {
			return err
		}
	}
	p.defs = hybrid{}
	if r.leaf.def > 0 {
		if p.defs, body, err = levelsV1(body, h.defEncoding, r.leaf.def, p.left); err != nil {
			return err
		}
	}
	return p.values.open(r.leaf, h.encoding, body, p.left)
}

func (r *chunkReader) unpackV2(h pageHeader, body []byte) error {
	p := &r.page
	if int64(h.repBytes)+int64(h.defBytes) > int64(len(body)) || h.size < h.repBytes+h.defBytes {
		return fault.New(fault.Corrupt, "", "levels of %d and %d bytes in a page of %d", h.repBytes, h.defBytes, len(body))
	}
	rep, def, data := body[:h.repBytes], body[h.repBytes:h.repBytes+h.defBytes], body[h.repBytes+h.defBytes:]
	var err error
	if r.leaf.rep > 0 {
		reps, _ := newHybrid(rep, levelWidth(r.leaf.rep))
		if err := r.readLevels(&p.rep, &reps, r.leaf.rep); err != nil {
			return err
		}
	}
	p.defs, _ = newHybrid(def, levelWidth(r.leaf.def))
	if (!h.uncompressed || r.compressed) && len(data) > 0 {
		if data, err = decompress(r.chunk.codec, p.body, data, int(h.size-h.repBytes-h.defBytes)); err != nil {
			return err
		}
		if r.chunk.codec != codecNone {
			p.body = data
		}
	}
	return p.values.open(r.leaf, h.encoding, data, p.left)
}

// levelsV1 opens the levels at the start of a V1 page and returns what follows them.
func levelsV1(body []byte, encoding int32, top uint8, n int) (hybrid, []byte, error) {
	width := levelWidth(top)
	switch encoding {
	case encRLE:
		if len(body) < 4 {
			return hybrid{}, nil, errLevels
		}
		size := binary.LittleEndian.Uint32(body)
		if uint64(size) > uint64(len(body)-4) {
			return hybrid{}, nil, errLevels
		}
		h, err := newHybrid(body[4:4+size], width)
		return h, body[4+size:], err
	case encBitPacked:
		size := (int64(n)*int64(width) + 7) / 8
		if size > int64(len(body)) {
			return hybrid{}, nil, errLevels
		}
		return bigEndianLevels(body[:size], width, n), body[size:], nil
	default:
		return hybrid{}, nil, fault.New(fault.Unsupported, "", "levels in encoding %d", encoding)
	}
}

// bigEndianLevels turns the deprecated BIT_PACKED levels (most significant bit first) into a run of the hybrid.
func bigEndianLevels(src []byte, width uint, n int) hybrid {
	out := make([]byte, len(src))
	for i := range n {
		for b := range int(width) {
			from := i*int(width) + b
			bit := src[from>>3] >> (7 - from&7) & 1
			to := i*int(width) + int(width) - 1 - b
			out[to>>3] |= bit << (to & 7)
		}
	}
	return hybrid{width: width, packed: out, run: n}
}
