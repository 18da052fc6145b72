package ngram

import (
	"encoding/binary"
	"math/bits"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// posting writes ascending rows; it holds the rows of one chunk.
type posting struct {
	out  bytescan.Writer
	next uint32 // chunk after the last one written
	cur  uint32
	in   []uint16 // rows of chunk cur, from its start
	rows uint32
}

func (p *posting) reset() {
	p.out.Buf, p.next, p.cur, p.in, p.rows = p.out.Buf[:0], 0, 0, p.in[:0], 0
}

// add adds a row above all before.
func (p *posting) add(row uint32) {
	if c := row / chunkRows; c != p.cur {
		p.flush()
		p.cur = c
	}
	p.in = append(p.in, uint16(row))
	p.rows++
}

// finish ends the posting and returns its bytes, which reset ends.
func (p *posting) finish() []byte {
	p.flush()
	return p.out.Buf
}

func (p *posting) flush() {
	if len(p.in) == 0 {
		return
	}
	head := uint64(p.cur-p.next) << 1
	at := len(p.out.Buf)
	p.out.Uvarint(head)
	p.out.Uvarint(uint64(len(p.in) - 1))
	p.pack()
	if len(p.out.Buf)-at > chunkBitmap {
		p.out.Buf = p.out.Buf[:at]
		p.out.Uvarint(head | 1)
		at = len(p.out.Buf)
		p.out.Buf = append(p.out.Buf, make([]byte, chunkBitmap)...)
		for _, row := range p.in {
			p.out.Buf[at+int(row>>3)] |= 1 << (row & 7)
		}
	}
	p.next, p.in = p.cur+1, p.in[:0]
}

func (p *posting) pack() {
	last := -1
	for left := p.in; len(left) > 0; {
		n := min(len(left), packRows)
		var gaps [packRows]uint16
		all := uint16(0)
		for i, row := range left[:n] {
			gaps[i] = uint16(int(row) - last - 1)
			all |= gaps[i]
			last = int(row)
		}
		width := bits.Len16(all)
		p.out.U8(uint8(width))
		acc, have := uint64(0), 0
		for _, g := range gaps[:n] {
			acc |= uint64(g) << have
			if have += width; have >= 32 {
				p.out.U32(uint32(acc))
				acc, have = acc>>32, have-32
			}
		}
		for ; have > 0; have -= 8 {
			p.out.U8(uint8(acc))
			acc >>= 8
		}
		left = left[n:]
	}
}

// eachRow visits the runs of rows of a posting over size rows, ascending, and returns how many rows they are. visit reports false to fail.
func eachRow(r *bytescan.Reader, size uint32, visit func(rowset.Range) bool) (rows uint64) {
	take := func(from, to uint64) {
		if to > uint64(size) || !visit(rowset.Range{Start: uint32(from), End: uint32(to)}) {
			r.Fail("rows [%d, %d) of %d", from, to, size)
		}
		rows += to - from
	}
	eachChunk(r, func(base uint64) { readBitmap(r, base, take) }, func(base uint64) { readPacked(r, base, take) })
	return rows
}

// eachChunk reads the chunks of a posting, of which base is the first row, with one of the two.
func eachChunk(r *bytescan.Reader, bits, packed func(base uint64)) {
	chunk := uint64(0)
	for r.Err() == nil && r.Left() > 0 {
		head := r.Uvarint()
		if chunk += head >> 1; chunk >= chunkRows {
			r.Fail("chunk %d is past the last", chunk)
			break
		}
		if head&1 == 1 {
			bits(chunk * chunkRows)
		} else {
			packed(chunk * chunkRows)
		}
		chunk++
	}
}

// appendRows appends the rows of a posting over size rows to dst.
func appendRows(dst []uint32, r *bytescan.Reader, size uint32) []uint32 {
	each := func(from, to uint64) {
		if to > uint64(size) {
			r.Fail("rows [%d, %d) of %d", from, to, size)
			return
		}
		for ; from < to; from++ {
			dst = append(dst, uint32(from))
		}
	}
	eachChunk(r, func(base uint64) { readBitmap(r, base, each) }, func(base uint64) { dst = appendPacked(dst, r, base, size) })
	return dst
}

func appendPacked(dst []uint32, r *bytescan.Reader, base uint64, size uint32) []uint32 {
	next, limit := uint64(0), min(chunkRows, uint64(size)-min(base, uint64(size)))
	for left := r.Count(chunkRows-1, 0) + 1; left > 0 && r.Err() == nil; {
		n := min(left, packRows)
		width, packed := readGaps(r, n)
		for i := range n {
			at := next + gap(packed, uint(i)*width, width)
			if at >= limit || r.Err() != nil {
				r.Fail("row %d of a chunk, or of %d", at, size)
				return dst
			}
			dst = append(dst, uint32(base+at))
			next = at + 1
		}
		left -= n
	}
	return dst
}

// readGaps reads n packed numbers and their width.
func readGaps(r *bytescan.Reader, n int) (width uint, packed []byte) {
	if width = uint(r.U8()); width > 16 {
		r.Fail("gaps of %d bits", width)
		return 0, nil
	}
	return width, r.Bytes((n*int(width) + 7) / 8)
}

func readPacked(r *bytescan.Reader, base uint64, take func(from, to uint64)) {
	next := uint64(0)
	for left := r.Count(chunkRows-1, 0) + 1; left > 0 && r.Err() == nil; {
		n := min(left, packRows)
		width, packed := readGaps(r, n)
		if r.Err() != nil {
			return
		}
		for i := range n {
			at := next + gap(packed, uint(i)*width, width)
			if at >= chunkRows {
				r.Fail("row %d of a chunk", at)
				return
			}
			take(base+at, base+at+1)
			next = at + 1
		}
		left -= n
	}
}

// gap is the number of width bits at bit at.
func gap(packed []byte, at, width uint) uint64 {
	if int(at/8)+4 <= len(packed) {
		return uint64(binary.LittleEndian.Uint32(packed[at/8:])>>(at%8)) & (1<<width - 1)
	}
	var window [4]byte
	copy(window[:], packed[min(int(at/8), len(packed)):])
	return uint64(binary.LittleEndian.Uint32(window[:])>>(at%8)) & (1<<width - 1)
}

func readBitmap(r *bytescan.Reader, base uint64, take func(from, to uint64)) {
	b := r.Bytes(chunkBitmap)
	for i := 0; i+8 <= len(b) && r.Err() == nil; i += 8 {
		for w := binary.LittleEndian.Uint64(b[i:]); w != 0; {
			start := bits.TrailingZeros64(w)
			n := bits.TrailingZeros64(^(w >> start))
			from := base + uint64(i*8+start)
			take(from, from+uint64(n))
			if start+n >= 64 {
				break
			}
			w &= ^uint64(0) << (start + n)
		}
	}
}

// readPosting is the rows of a posting, which must be want.
func readPosting(b []byte, size, want uint32) (*rowset.Set, error) {
	r := bytescan.NewReader(name+" posting", b)
	rows := index.NewRows(size)
	if n := eachRow(r, size, rows.Add); r.Err() == nil && n != uint64(want) {
		r.Fail("%d rows, the dictionary says %d", n, want)
	}
	if err := r.Done(); err != nil {
		return nil, err
	}
	return rows.Set(), nil
}
