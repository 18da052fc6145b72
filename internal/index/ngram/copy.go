package ngram

import (
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/index"
)

// copier writes the rows of a posting that lie in stretches of its source: chunks that stay together as bytes, others row by row.
type copier struct {
	along   []index.Stretch // ascending on both sides; the first one is at hand
	size    uint32          // rows of the source
	least   int             // rows of chunks worth a copy
	out     *posting
	list    chunks
	end     uint64 // no row that comes lies below
	scratch []uint32

	// Chunks of one numbering within the stretch at hand, that are not written yet: those from the first one to just before the next.
	pending int // rows of them
	first   chunk
	to      int    // where their bytes end
	number  uint64 // after the last one
}

// run is chunks of one numbering that follow each other.
type run struct {
	form  uint8
	bytes []byte // after the head of the first one
	span  uint32 // from the first to behind the last one
	rows  uint32
}

// copy writes the rows of a posting of want rows.
func (c *copier) copy(b []byte, want uint32) error {
	c.list = newChunks(b)
	r, n := c.list.r, 0
	for k, ok := c.list.next(); ok; k, ok = c.list.next() {
		if k.start() < c.end {
			r.Fail("a chunk from row %d on, below %d", k.start(), c.end)
			break
		}
		n, c.end = n+k.rows, k.start()+1
		if k.seam {
			c.settle()
		}
		c.turnTo(k.start())
		switch end := min(k.start()+chunkRows, uint64(c.size)); {
		case len(c.along) == 0 || end <= uint64(c.along[0].Old.Start): // its rows are gone
		case uint64(c.along[0].Old.Start) <= k.start() && end <= uint64(c.along[0].Old.End):
			if c.pending == 0 {
				c.first = k
			}
			more := c.list.skim(min(uint64(c.along[0].Old.End), uint64(c.size)))
			n, c.pending = n+more, c.pending+k.rows+more
			c.to, c.number = c.list.r.Offset(), c.list.number
			c.end = c.list.base + (c.number-1)*chunkRows + 1
		default:
			c.settle()
			c.move(&k)
		}
	}
	c.settle()
	if r.Err() == nil && n != int(want) {
		r.Fail("%d rows, the dictionary says %d", n, want)
	}
	return r.Done()
}

// turnTo makes the stretch at hand one that holds a row or what follows it.
func (c *copier) turnTo(row uint64) {
	for len(c.along) > 0 && uint64(c.along[0].Old.End) <= row {
		c.settle()
		c.along = c.along[1:]
	}
}

// settle writes the pending chunks, row by row where they are not worth a copy.
func (c *copier) settle() {
	rows := c.pending
	if c.pending = 0; rows == 0 {
		return
	}
	if rows < c.least {
		few := chunks{b: c.list.b[:c.to], r: bytescan.NewReader(name+" posting", c.list.b[:c.to]), base: c.first.base, number: c.first.number + 1}
		few.r.Bytes(c.first.end)
		for k, ok := c.first, true; ok; k, ok = few.next() {
			c.move(&k)
		}
		return
	}
	form := uint8(0)
	if c.first.bits {
		form = 1
	}
	at := &c.along[0]
	c.out.copy(at.To+uint32(c.first.start())-at.Old.Start, &run{form, c.list.b[c.first.from:c.to], uint32(c.number - c.first.number), uint32(rows)})
}

// move writes the rows of a chunk one by one.
func (c *copier) move(k *chunk) {
	rows, ok := k.appendRows(c.scratch[:0], c.size)
	if c.scratch = rows; !ok {
		c.list.r.Fail("rows of the chunk from %d on run past it, or past row %d", k.start(), c.size)
		return
	}
	for _, row := range rows {
		c.turnTo(uint64(row))
		if len(c.along) > 0 && row >= c.along[0].Old.Start {
			c.out.add(c.along[0].To + row - c.along[0].Old.Start)
		}
	}
	if len(rows) > 0 {
		c.end = max(c.end, uint64(rows[len(rows)-1])+1)
	}
}
