// Package ordered answers: which rows hold this value, or a value in this range, exactly?
//
// It is the index kind that keeps every (value, row) pair, sorted by value in blocks, below a directory of two levels: a look-up
// reads one directory page and one block, or the block alone where the directory fits in the root. Null and NaN rows are kept as
// sets. It may not know files: a row is an ordinal of the segment.
//
// # Version 1
//
// Integers are little-endian, uv is an unsigned LEB128 varint. Keys are key-v1 bytes; a key longer than 1,024 bytes is stored as
// its first 1,024 bytes and a zero byte: the only keys of 1,025 bytes, each standing for every longer value behind it.
//
//	root       u8 version = 1
//	           encoding                  index.Encoding: u8 kind, u8 scale, uv width
//	           uv rows                   of the segment
//	           uv body bytes
//	           rows without order        of nulls
//	           rows without order        of NaNs; Float and Double only
//	           only where other rows exist:
//	           uv length, last key
//	           uv data bytes             of all blocks
//	           u8 level                  what the entries below describe: 0 blocks, 1 directory pages
//	           directory
//	rows without order
//	           uv count
//	           unit                      only where 0 < count < rows: uv offset, uv length (0: not kept), u32 CRC32C
//	directory  uv entries, uv offset     of the first; the others follow it without gaps
//	           per entry
//	             uv shared << 1 | continued   bytes shared with the entry before; continued: the last key before this entry
//	                                          is also its first
//	             uv suffix length, suffix     separator: above every key before (or equal, when continued), at most the first
//	                                          key here; of the very first entry the first key itself
//	             uv length, u32 CRC32C
//	body       blocks, directory pages (level 1: a directory each, of blocks), null rows, NaN rows
//	block      u8 form, uv keys
//	           per key       uv shared, uv suffix length (only where keys vary in length), suffix
//	           form 0        every key has one row: rows in fixed width, bit-packed from the least significant bit on;
//	                         the width is the bit length of the artifact's last row number
//	           form 1        per key a posting
//	posting    uv n << 1 | runs
//	             runs = 0    n × uv gap                  rows ascending; gap from the row after the last one
//	             runs = 1    n × (uv gap, uv length - 1)
//	row set    see package index, AppendRows
//
// A key with more than 4,096 runs of rows goes on in the next block, which is then continued.
//
// # Version 2
//
// An index on several columns. The root starts with u8 version = 2, uv columns, and per column uv field id and its encoding; from
// the rows on all is as in version 1 for keys of bytes. The key of a row is its tuple (see tuple.go); nulls and NaNs are in the tuples, and the counts of
// rows without order are 0.
package ordered

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

const (
	version       = 1
	versionTuples = 2
	maxKey        = 1024
	blockTarget   = 16 << 10
	maxBlock      = 128 << 10 // a key's posting may overshoot the target
	pageTarget    = 16 << 10  // also the largest directory that lives in the root
	maxPages      = 256       // pages grow instead
	maxPage       = 4 << 20
	maxRoot       = 2 << 20
	maxRuns       = 4096 // of one key in one block
	// maxSeparators bounds the separators of one directory after their shared bytes are spelled out.
	maxSeparators = 8 << 20
	// maxProbe bounds the bytes of blocks that one probe reads. About 600 blocks take as long on an object store as one more
	// dependent round trip over parallel reads does; a range that needs more is cheaper as a scan of the column.
	maxProbe = 8 << 20
)

const (
	levelBlocks = iota
	levelPages
)

const (
	formUnique = iota
	formPostings
)

// variable reports whether keys in blocks state their length.
func variable(e index.Encoding) bool { return e.Size() == 0 || e.Size() > maxKey }

// cutKey is the stored form of a key.
func cutKey(key []byte) []byte {
	if len(key) <= maxKey {
		return key
	}
	return append(key[:maxKey:maxKey], 0)
}

// entry describes one block or directory page.
type entry struct {
	sep       []byte
	continued bool
	unit      index.Unit
}

// directory is consecutive entries.
type directory []entry

func (d directory) append(w *bytescan.Writer) {
	w.Uvarint(uint64(len(d)))
	if len(d) == 0 {
		return
	}
	w.Uvarint(uint64(d[0].unit.Off))
	var last []byte
	for _, e := range d {
		shared := commonPrefix(last, e.sep)
		head := uint64(shared) << 1
		if e.continued {
			head |= 1
		}
		w.Uvarint(head)
		w.Blob(e.sep[shared:])
		w.Uvarint(uint64(e.unit.Len))
		w.U32(e.unit.CRC)
		last = e.sep
	}
}

// readDirectory reads entries of units of at most limit bytes that lie in a body of size bytes. Memory: 8 bytes a byte read and
// at most maxSeparators beside them.
func readDirectory(r *bytescan.Reader, size, limit int64) directory {
	n := r.Count(r.Left(), 7)
	off := r.Uvarint()
	if r.Err() == nil && (n == 0 || off > uint64(size)) {
		r.Fail("directory of %d entries at %d", n, off)
	}
	if r.Err() != nil {
		return nil
	}
	out := make(directory, 0, n)
	var last, arena []byte // arena is the chunk that separators are spelled out in
	spelled := 0
	for i := range n {
		head := r.Uvarint()
		suffix := r.Blob(maxKey + 1)
		length, crc := r.Uvarint(), r.U32()
		shared := head >> 1
		if r.Err() == nil && (shared > uint64(len(last)) || length > uint64(limit) || length > uint64(size)-off || int(shared)+len(suffix) > maxKey+1) {
			r.Fail("entry %d shares %d of %d bytes and has %d bytes at %d of %d", i, shared, len(last), length, off, size)
		}
		if r.Err() != nil {
			return nil
		}
		sep := last
		if i == 0 || int(shared) < len(last) || len(suffix) > 0 {
			size := int(shared) + len(suffix)
			if spelled += size; cap(arena)-len(arena) < size {
				arena = make([]byte, 0, min(max(64<<10, size), 16*r.Left()+size))
			}
			at := len(arena)
			arena = append(append(arena, last[:shared]...), suffix...)
			sep = arena[at:len(arena):len(arena)]
		}
		if i > 0 && bytes.Compare(sep, last) < 0 || spelled > maxSeparators {
			r.Fail("separator %d is below the one before, or all take more than %d bytes", i, maxSeparators)
			return nil
		}
		out = append(out, entry{sep: sep, continued: head&1 == 1, unit: index.Unit{Span: index.Span{Off: int64(off), Len: int64(length)}, CRC: crc}})
		last, off = sep, off+length
	}
	return out
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
