// Package zonemap answers: can any row of a page match, and does every row?
//
// It is the index kind that keeps the least and greatest value and the counts of nulls and NaNs of every row group and page,
// computed from the values themselves, never from foreign statistics. It may not know where pages lie in a file.
//
// # Version 1
//
// Integers are little-endian, uv is an unsigned LEB128 varint.
//
//	root    u8 version = 1
//	        encoding                       index.Encoding: u8 kind, u8 scale, uv width
//	        uv body bytes
//	        uv row groups
//	        per row group   zone, uv pages
//	        u8 form
//	          form 0: pages in the root
//	            per row group with 2 or more pages   a zone per page
//	          form 1: pages in the body
//	            per row group with 2 or more pages   uv blocks
//	              per block                          uv pages, unit (uv offset, uv length, u32 CRC32C)
//	block   a zone per page
//	zone    uv rows, uv nulls
//	        uv NaNs                        Float and Double only
//	        u8 flags                       only where rows > nulls + NaNs: some value has bounds
//	          1  min is cut to 64 bytes: every value is greater than it
//	          2  max is cut to 64 bytes and incremented: every value is less than it
//	          4  there is no max: 64 bytes of ff cannot be incremented
//	        min, max                       key-v1 bytes; uv length before each where keys vary in length or exceed 64 bytes
//
// A row group of one page has no page zone of its own. Pages stay in the root while it is at most 32 KiB; beyond that a block
// holds pages of one row group, about 64 KiB at most, and is read only for row groups in doubt.
package zonemap

import (
	"bytes"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

const (
	version     = 1
	maxBound    = 64       // bytes of a bound, as Parquet and Iceberg writers truncate to 16–64
	inlineRoot  = 32 << 10 // the largest root that holds page zones
	blockTarget = 64 << 10
	maxBlock    = blockTarget + 1<<10 // one zone more than the target
	maxRoot     = 4 << 20
)

const (
	flagMinCut = 1 << iota
	flagMaxCut
	flagMaxNone
)

// zone is what is kept of one granule. min and max are set where some value is neither null nor NaN.
type zone struct {
	start, rows, nulls, nans uint32
	flags                    uint8
	min, max                 []byte
}

func (z *zone) values() bool { return z.rows > z.nulls+z.nans }

func (z *zone) append(w *bytescan.Writer, e index.Encoding) {
	w.Uvarint(uint64(z.rows))
	w.Uvarint(uint64(z.nulls))
	if e.Kind.Floating() {
		w.Uvarint(uint64(z.nans))
	}
	if !z.values() {
		return
	}
	w.U8(z.flags)
	appendBound(w, e, z.min)
	if z.flags&flagMaxNone == 0 {
		appendBound(w, e, z.max)
	}
}

func appendBound(w *bytescan.Writer, e index.Encoding, b []byte) {
	if fixedBound(e) == 0 {
		w.Uvarint(uint64(len(b)))
	}
	w.Bytes(b)
}

func fixedBound(e index.Encoding) int {
	if n := e.Size(); n <= maxBound {
		return n
	}
	return 0
}

// readZone reads a zone that starts at row start and must end by row end.
func readZone(r *bytescan.Reader, e index.Encoding, start, end uint32) zone {
	rows, nulls, nans := r.Uvarint(), r.Uvarint(), uint64(0)
	if e.Kind.Floating() {
		nans = r.Uvarint()
	}
	if r.Err() == nil && (rows == 0 || rows > uint64(end-start) || nulls > rows || nans > rows-nulls) {
		r.Fail("zone of %d rows, %d nulls, %d NaNs at row %d of %d", rows, nulls, nans, start, end)
	}
	if r.Err() != nil {
		return zone{}
	}
	z := zone{start: start, rows: uint32(rows), nulls: uint32(nulls), nans: uint32(nans)}
	if !z.values() {
		return z
	}
	if z.flags = r.U8(); z.flags >= flagMaxNone<<1 || z.flags&flagMaxCut != 0 && z.flags&flagMaxNone != 0 {
		r.Fail("zone flags %#x", z.flags)
	}
	z.min = readBound(r, e)
	if z.flags&flagMaxNone == 0 {
		z.max = readBound(r, e)
		if r.Err() == nil && bytes.Compare(z.min, z.max) > 0 {
			r.Fail("zone at row %d has its least value above its greatest", start)
		}
	}
	return z
}

func readBound(r *bytescan.Reader, e index.Encoding) []byte {
	if n := fixedBound(e); n > 0 {
		return r.Bytes(n)
	}
	return r.Blob(maxBound)
}
