package ngram

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// chunks reads a posting chunk by chunk; what is in them is not looked at.
type chunks struct {
	b      []byte
	r      *bytescan.Reader
	base   uint64 // the row from which chunks are numbered
	number uint64 // after the last one
}

func newChunks(b []byte) chunks { return chunks{b: b, r: bytescan.NewReader(name+" posting", b)} }

// chunk is up to 65,536 rows of a posting.
type chunk struct {
	base, number uint64 // it starts at row base + number × 65,536
	seam, bits   bool   // a seam stands before it; its data is bits
	rows         int
	data         []byte // bits or packed gaps
	from, end    int    // its bytes after the head
}

func (k *chunk) start() uint64 { return k.base + k.number*chunkRows }

// next is the next chunk; ok is false after the last and after a failure.
func (c *chunks) next() (k chunk, ok bool) {
	r := c.r
	if r.Err() != nil || r.Left() == 0 {
		return k, false
	}
	head := r.Uvarint()
	seam := head >= seamHead
	if seam {
		if head&1 == 1 || head>>1 > math.MaxUint32+chunkRows {
			r.Fail("a seam of %d", head)
		}
		c.base, c.number = c.base+head>>1-chunkRows, 0
		head = r.Uvarint()
	}
	if c.number += head >> 1; c.number >= chunkRows || c.base > math.MaxUint32 {
		r.Fail("chunk %d from row %d on is past the last", c.number, c.base)
		return k, false
	}
	k = chunk{base: c.base, number: c.number, seam: seam, bits: head&1 == 1, from: r.Offset()}
	if k.bits {
		k.data = r.Bytes(chunkBitmap)
		k.rows = bitsIn(k.data)
	} else {
		k.rows = r.Count(chunkRows-1, 0) + 1
		k.data = c.packed(k.rows)
	}
	k.end = r.Offset()
	c.number++
	return k, r.Err() == nil
}

// skim passes over the next chunks that have no seam and end at or before row end, and returns how many rows they have. It leaves to next
// what is damaged and what it does not know at a glance.
func (c *chunks) skim(end uint64) (rows int) {
	if c.r.Err() != nil || end < c.base {
		return 0
	}
	b, at, number := c.b[c.r.Offset():], 0, c.number
	last := (end - c.base) / chunkRows // number of the first one that ends behind it
	for at < len(b) && b[at] < 0x80 {
		next, n, size := number+uint64(b[at]>>1), 0, 0
		if next >= last {
			break
		}
		if b[at]&1 == 1 {
			if size = chunkBitmap; len(b)-at-1 < size {
				break
			}
			n = bitsIn(b[at+1:][:size])
		} else if n, size = packedSize(b[at+1:]); size == 0 {
			break
		}
		at, number, rows = at+1+size, next+1, rows+n
	}
	c.r.Bytes(at)
	c.number = number
	return rows
}

// packedSize is the rows and the bytes, behind its head, of a packed chunk; 0 bytes: it is none.
func packedSize(b []byte) (rows, size int) {
	head, at := binary.Uvarint(b)
	if at <= 0 || head >= chunkRows {
		return 0, 0
	}
	rows = int(head) + 1
	for left := rows; left > 0; left -= packRows {
		if at >= len(b) || b[at] > 16 {
			return 0, 0
		}
		at += 1 + (min(left, packRows)*int(b[at])+7)/8
	}
	if at > len(b) {
		return 0, 0
	}
	return rows, at
}

// bitsIn counts bits.
func bitsIn(b []byte) (n int) {
	for i := 0; i < len(b); i += 8 {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(b[i:]))
	}
	return n
}

// packed is the bytes of the packed gaps of n rows.
func (c *chunks) packed(n int) []byte {
	left, size := c.b[c.r.Offset():], 0
	for ; n > 0; n -= packRows {
		if size >= len(left) || left[size] > 16 {
			c.r.Fail("gaps of no width up to 16 bits")
			return nil
		}
		size += 1 + (min(n, packRows)*int(left[size])+7)/8
	}
	return c.r.Bytes(size)
}

// unpack visits the rows of a packed chunk, up to 128 at a time, until visit reports false. Rows that run past the chunk are shown too.
func (k *chunk) unpack(visit func([]uint64) bool) {
	var rows [packRows]uint64
	next, b := k.start(), k.data
	for left := k.rows; left > 0; left -= packRows {
		n := min(left, packRows)
		if b, next = unpackGroup(&rows, n, next, b); !visit(rows[:n]) {
			return
		}
	}
}

// unpackGroup unpacks n rows from row next on, and returns the bytes behind their gaps and the row behind the last one.
func unpackGroup(rows *[packRows]uint64, n int, next uint64, b []byte) (rest []byte, end uint64) {
	width := uint(b[0])
	size := (n*int(width) + 7) / 8
	group, mask := b[1:], uint64(1)<<width-1
	if len(group) < size+8 { // what follows the last gap is read with it
		var padded [packRows*2 + 8]byte
		copy(padded[:], group[:size])
		group = padded[:]
	}
	at := uint(0)
	for i := range rows[:n] {
		next += binary.LittleEndian.Uint64(group[at>>3:]) >> (at & 7) & mask
		rows[i] = next
		next++
		at += width
	}
	return b[1+size:], next
}

// eachRow visits the runs of rows of a posting over size rows, ascending; they must be want rows. visit reports false to fail.
func eachRow(b []byte, size, want uint32, visit func(rowset.Range) bool) error {
	c, rows, last, limit := newChunks(b), uint64(0), uint64(0), uint64(0)
	take := func(from, to uint64) bool {
		if from < last || to > limit || !visit(rowset.Range{Start: uint32(from), End: uint32(to)}) {
			c.r.Fail("rows [%d, %d) of %d after %d", from, to, limit, last)
			return false
		}
		last, rows = to, rows+to-from
		return true
	}
	for k, ok := c.next(); ok; k, ok = c.next() {
		limit = min(uint64(size), k.start()+chunkRows)
		if k.bits {
			k.eachBit(take)
			continue
		}
		k.unpack(func(list []uint64) bool {
			for _, row := range list {
				if !take(row, row+1) {
					return false
				}
			}
			return true
		})
	}
	if c.r.Err() == nil && rows != uint64(want) {
		c.r.Fail("%d rows, the dictionary says %d", rows, want)
	}
	return c.r.Done()
}

// eachBit visits the runs of bits of a chunk until visit reports false; a run ends with its word.
func (k *chunk) eachBit(visit func(from, to uint64) bool) {
	for i := 0; i < len(k.data); i += 8 {
		for w := binary.LittleEndian.Uint64(k.data[i:]); w != 0; {
			start := bits.TrailingZeros64(w)
			n := bits.TrailingZeros64(^(w >> start))
			from := k.start() + uint64(i*8+start)
			if !visit(from, from+uint64(n)) {
				return
			}
			if start+n >= 64 {
				break
			}
			w &= ^uint64(0) << (start + n)
		}
	}
}

// appendRows appends the rows of a chunk of a posting over size rows to dst; ok is false where they run past the chunk or the posting.
func (k *chunk) appendRows(dst []uint32, size uint32) (rows []uint32, ok bool) {
	ok = true
	limit := min(uint64(size), k.start()+chunkRows)
	if k.bits {
		k.eachBit(func(from, to uint64) bool {
			if ok = to <= limit; ok {
				for row := from; row < to; row++ {
					dst = append(dst, uint32(row))
				}
			}
			return ok
		})
		return dst, ok
	}
	var group [packRows]uint64
	next, b := k.start(), k.data
	for left := k.rows; left > 0; left -= packRows {
		list := group[:min(left, packRows)]
		if b, next = unpackGroup(&group, len(list), next, b); next > limit {
			return dst, false
		}
		for _, row := range list {
			dst = append(dst, uint32(row))
		}
	}
	return dst, true
}

// readPosting is the rows of a posting, which must be want.
func readPosting(b []byte, size, want uint32) (*rowset.Set, error) {
	rows := index.NewRows(size)
	if err := eachRow(b, size, want, rows.Add); err != nil {
		return nil, err
	}
	return rows.Set(), nil
}
