package avro

import (
	"encoding/binary"
	"math"

	"github.com/skomerdb/skomer/internal/fault"
)

// Cursor reads one block of records in the order of the writer's schema. Its error is sticky: after the first failure every
// read returns zero values, and File.Each reports the failure.
type Cursor struct {
	what  string
	buf   []byte // empty after a failure
	off   int
	err   error
	steps int // schema nodes that may still be skipped: a hostile schema can hold exponentially many empty ones
}

func newCursor(what string, b []byte) *Cursor {
	return &Cursor{what: what, buf: b, steps: 1<<20 + 16*len(b)}
}

// Fail records a format error unless one is already recorded.
func (c *Cursor) Fail(reason string, args ...any) {
	if c.err == nil {
		c.err = fault.New(fault.Corrupt, c.what, reason, args...)
	}
	c.buf, c.off = nil, 0
}

// Failed reports whether a read failed.
func (c *Cursor) Failed() bool { return c.err != nil }

// done fails unless every byte was read, and returns the error.
func (c *Cursor) done() error {
	if c.err == nil && c.off != len(c.buf) {
		c.Fail("%d bytes left over at offset %d", len(c.buf)-c.off, c.off)
	}
	return c.err
}

// Mark is where the cursor is, for Since and Rewind.
func (c *Cursor) Mark() int { return c.off }

// Since is the bytes read since mark, as a view; nil after a failure.
func (c *Cursor) Since(mark int) []byte {
	if c.err != nil {
		return nil
	}
	return c.buf[mark:c.off]
}

// Rewind puts the cursor back to mark, unless a read failed.
func (c *Cursor) Rewind(mark int) {
	if c.err == nil {
		c.off = mark
	}
}

func (c *Cursor) left() int { return len(c.buf) - c.off }

// Long reads an int or long. Bits past the 64th, which writers without fixed-size integers have produced, are dropped as
// other readers drop them.
func (c *Cursor) Long() int64 {
	if rest := c.buf[c.off:]; len(rest) >= 4 {
		// Up to three bytes, as nearly all have, without a loop.
		v := uint64(rest[0])
		if v < 0x80 {
			c.off++
			return zigzag(v)
		}
		if v = v&0x7f | uint64(rest[1])<<7; rest[1] < 0x80 {
			c.off += 2
			return zigzag(v)
		}
		if v = v&0x3fff | uint64(rest[2])<<14; rest[2] < 0x80 {
			c.off += 3
			return zigzag(v)
		}
	}
	return c.longer()
}

func (c *Cursor) longer() int64 {
	v := uint64(0)
	for shift := 0; shift < 70; shift += 7 {
		if c.off >= len(c.buf) {
			c.Fail("needs 1 byte at offset %d, has none", c.off)
			return 0
		}
		b := c.buf[c.off]
		c.off++
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return zigzag(v)
		}
	}
	c.Fail("a number of more than 10 bytes before offset %d", c.off)
	return 0
}

// Bool reads a boolean.
func (c *Cursor) Bool() bool {
	b := c.Fixed(1)
	return b != nil && b[0] != 0
}

// Float reads a float.
func (c *Cursor) Float() float32 {
	b := c.Fixed(4)
	if b == nil {
		return 0
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b))
}

// Double reads a double.
func (c *Cursor) Double() float64 {
	b := c.Fixed(8)
	if b == nil {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// Bytes reads bytes or a string, as a view.
func (c *Cursor) Bytes() []byte {
	n := c.Long()
	if uint64(n) > uint64(c.left()) {
		c.Fail("length %d at offset %d does not fit in the %d bytes left", n, c.off, c.left())
		return nil
	}
	end := c.off + int(n)
	b := c.buf[c.off:end:end]
	c.off = end
	return b
}

// String reads a string (copied).
func (c *Cursor) String() string { return string(c.Bytes()) }

// Fixed reads n bytes, as a view.
func (c *Cursor) Fixed(n int) []byte {
	if n < 0 || n > len(c.buf)-c.off || c.err != nil {
		c.Fail("needs %d bytes at offset %d, has %d", n, c.off, c.left())
		return nil
	}
	b := c.buf[c.off : c.off+n : c.off+n]
	c.off += n
	return b
}

// Branch reads the branch of a union and returns its schema; nil for the null branch. For any other schema it returns s.
func (c *Cursor) Branch(s *Schema) *Schema {
	if s.Kind == Union {
		i := c.Long()
		if i < 0 || i >= int64(len(s.Branches)) {
			c.Fail("union branch %d of %d at offset %d", i, len(s.Branches), c.off)
			return nil
		}
		s = s.Branches[i]
	}
	if s.Kind == Null {
		return nil
	}
	return s
}

// Blocks calls visit once an item of an array or map, with the cursor at the item. Items of no bytes are refused: their
// number would not be bounded by the file.
func (c *Cursor) Blocks(visit func()) {
	for n := c.items(); n > 0; n = c.items() {
		for range n {
			if visit(); c.Failed() {
				return
			}
		}
	}
}

// items begins the next block of an array or map and is how many items it has: none at the end and after a failure.
func (c *Cursor) items() int64 {
	n := c.Long()
	if n < 0 {
		if n == math.MinInt64 {
			c.Fail("impossible item count at offset %d", c.off)
			return 0
		}
		n = -n
		c.Long() // the block's size in bytes
	}
	if n > int64(c.left()) {
		c.Fail("%d items at offset %d do not fit in the %d bytes left", n, c.off, c.left())
		return 0
	}
	return n
}

// LongPairs reads an array of records of two numbers.
func (c *Cursor) LongPairs(visit func(key, value int64)) {
	for n := c.items(); n > 0; n = c.items() {
		for range n {
			key, value := c.Long(), c.Long()
			if c.err != nil {
				return
			}
			visit(key, value)
		}
	}
}

// BytesPairs reads an array of records of a number and bytes, which are views.
func (c *Cursor) BytesPairs(visit func(key int64, value []byte)) {
	for n := c.items(); n > 0; n = c.items() {
		for range n {
			key, value := c.Long(), c.Bytes()
			if c.err != nil {
				return
			}
			visit(key, value)
		}
	}
}

// Skip passes over one value.
func (c *Cursor) Skip(s *Schema) { c.skip(s, 0) }

func (c *Cursor) skip(s *Schema, depth int) {
	if c.steps--; c.steps < 0 || depth > maxDepth {
		c.Fail("values nested too deeply or too often at offset %d", c.off)
	}
	if c.Failed() {
		return
	}
	switch s.Kind {
	case Null:
	case Bool:
		c.Fixed(1)
	case Int, Long, Enum:
		c.Long()
	case Float:
		c.Fixed(4)
	case Double:
		c.Fixed(8)
	case Bytes, String:
		c.Bytes()
	case Fixed:
		c.Fixed(s.Size)
	case Record:
		for _, f := range s.Fields {
			c.skip(f.Schema, depth+1)
		}
	case Array:
		c.Blocks(func() { c.skip(s.Items, depth+1) })
	case Map:
		c.Blocks(func() { c.Bytes(); c.skip(s.Items, depth+1) })
	case Union:
		if b := c.Branch(s); b != nil {
			c.skip(b, depth+1)
		}
	}
}
