package ngram

import (
	"math/bits"

	"github.com/skomerdb/skomer/internal/bytescan"
)

// posting writes ascending rows; it holds the rows of one chunk.
type posting struct {
	out    bytescan.Writer
	base   uint32 // the row from which chunks are numbered
	next   uint32 // chunk after the last one written
	cur    uint32
	in     []uint16 // rows of chunk cur, from its start
	rows   uint32
	seamed bool
}

func (p *posting) reset() {
	*p = posting{out: bytescan.Writer{Buf: p.out.Buf[:0]}, in: p.in[:0]}
}

// add adds a row above all before.
func (p *posting) add(row uint32) {
	c := (row - p.base) / chunkRows
	if c != p.cur || len(p.in) == 0 {
		p.flush()
		if c < p.next { // its chunk was copied without the row
			p.seam(row)
			c = 0
		}
		p.cur = c
	}
	p.in = append(p.in, uint16(row-p.base))
	p.rows++
}

// copy adds chunks of another posting as they are, the first of which then starts at row.
func (p *posting) copy(row uint32, r *run) {
	p.flush()
	if (row-p.base)%chunkRows != 0 || (row-p.base)/chunkRows < p.next {
		p.seam(row)
	}
	number := (row - p.base) / chunkRows
	p.out.Uvarint(uint64(number-p.next)<<1 | uint64(r.form))
	p.out.Bytes(r.bytes)
	p.next, p.rows = number+r.span, p.rows+r.rows
}

// seam numbers the chunks from a row on.
func (p *posting) seam(row uint32) {
	p.out.Uvarint(uint64(row-p.base)<<1 + seamHead)
	p.base, p.next, p.seamed = row, 0, true
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
