package avro

import (
	"math"

	"github.com/skomerdb/skomer/internal/bytescan"
)

// Cursor reads one block of records in the order of the writer's schema. Its error is sticky: after the first failure every
// read returns zero values, and File.Each reports the failure.
type Cursor struct {
	r     *bytescan.Reader
	steps int // schema nodes that may still be skipped: a hostile schema can hold exponentially many empty ones
}

func newCursor(what string, b []byte) *Cursor {
	return &Cursor{r: bytescan.NewReader(what, b), steps: 1<<20 + 16*len(b)}
}

// Fail records a format error unless one is already recorded.
func (c *Cursor) Fail(reason string, args ...any) { c.r.Fail(reason, args...) }

// Failed reports whether a read failed.
func (c *Cursor) Failed() bool { return c.r.Err() != nil }

// Long reads an int or long. Bits past the 64th, which writers without fixed-size integers have produced, are dropped as
// other readers drop them.
func (c *Cursor) Long() int64 {
	v := uint64(0)
	for shift := 0; shift < 70; shift += 7 {
		b := c.r.U8()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return zigzag(v)
		}
	}
	c.r.Fail("a number of more than 10 bytes before offset %d", c.r.Offset())
	return 0
}

// Bool reads a boolean.
func (c *Cursor) Bool() bool { return c.r.U8() != 0 }

// Float reads a float.
func (c *Cursor) Float() float32 { return math.Float32frombits(c.r.U32()) }

// Double reads a double.
func (c *Cursor) Double() float64 { return math.Float64frombits(c.r.U64()) }

// Bytes reads bytes or a string, as a view.
func (c *Cursor) Bytes() []byte {
	n := c.Long()
	if n < 0 || n > int64(c.r.Left()) {
		c.r.Fail("length %d at offset %d does not fit in the %d bytes left", n, c.r.Offset(), c.r.Left())
		return nil
	}
	return c.r.Bytes(int(n))
}

// String reads a string (copied).
func (c *Cursor) String() string { return string(c.Bytes()) }

// Fixed reads n bytes, as a view.
func (c *Cursor) Fixed(n int) []byte { return c.r.Bytes(n) }

// Branch reads the branch of a union and returns its schema; nil for the null branch. For any other schema it returns s.
func (c *Cursor) Branch(s *Schema) *Schema {
	if s.Kind == Union {
		i := c.Long()
		if i < 0 || i >= int64(len(s.Branches)) {
			c.r.Fail("union branch %d of %d at offset %d", i, len(s.Branches), c.r.Offset())
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
	for !c.Failed() {
		n := c.Long()
		if n < 0 {
			if n == math.MinInt64 {
				c.r.Fail("impossible item count at offset %d", c.r.Offset())
				return
			}
			n = -n
			c.Long() // the block's size in bytes
		}
		if n == 0 {
			return
		}
		if n > int64(c.r.Left()) {
			c.r.Fail("%d items at offset %d do not fit in the %d bytes left", n, c.r.Offset(), c.r.Left())
			return
		}
		for range n {
			if visit(); c.Failed() {
				return
			}
		}
	}
}

// Skip passes over one value.
func (c *Cursor) Skip(s *Schema) { c.skip(s, 0) }

func (c *Cursor) skip(s *Schema, depth int) {
	if c.steps--; c.steps < 0 || depth > maxDepth {
		c.r.Fail("values nested too deeply or too often at offset %d", c.r.Offset())
	}
	if c.Failed() {
		return
	}
	switch s.Kind {
	case Null:
	case Bool:
		c.r.U8()
	case Int, Long, Enum:
		c.Long()
	case Float:
		c.r.U32()
	case Double:
		c.r.U64()
	case Bytes, String:
		c.Bytes()
	case Fixed:
		c.r.Bytes(s.Size)
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
