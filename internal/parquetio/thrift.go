package parquetio

import (
	"encoding/binary"
	"math"

	"github.com/skomerdb/skomer/internal/fault"
)

// Element types of Thrift's compact protocol.
const (
	thriftStop   = 0
	thriftTrue   = 1
	thriftFalse  = 2
	thriftI8     = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// maxThriftDepth bounds the nesting of structs and lists, skipped ones included: a stack overflow cannot be recovered.
const maxThriftDepth = 32

// compact reads Thrift's compact protocol with a sticky error. It keeps what a reader of statistics must know and
// general decoders drop: whether an optional field was there at all. Byte strings are views.
type compact struct {
	b     []byte
	i     int
	depth int
	err   error
}

func (c *compact) fail(reason string, args ...any) {
	if c.err == nil {
		c.err = fault.New(fault.Corrupt, "thrift", reason, args...)
	}
}

func (c *compact) byte() byte {
	if c.err != nil || c.i >= len(c.b) {
		c.fail("ends at byte %d", c.i)
		return 0
	}
	c.i++
	return c.b[c.i-1]
}

func (c *compact) uvarint() uint64 {
	if c.err != nil {
		return 0
	}
	v, n := binary.Uvarint(c.b[c.i:])
	if n <= 0 {
		c.fail("bad varint at byte %d", c.i)
		return 0
	}
	c.i += n
	return v
}

func (c *compact) int64() int64 {
	u := c.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (c *compact) int32() int32 {
	v := c.int64()
	if v < math.MinInt32 || v > math.MaxInt32 {
		c.fail("%d does not fit in 32 bits", v)
		return 0
	}
	return int32(v)
}

// binary is a view of a byte string.
func (c *compact) binary() []byte {
	n := c.uvarint()
	if c.err != nil {
		return nil
	}
	if n > uint64(len(c.b)-c.i) {
		c.fail("string of %d bytes at byte %d, %d are left", n, c.i, len(c.b)-c.i)
		return nil
	}
	s := c.b[c.i : c.i+int(n) : c.i+int(n)]
	c.i += int(n)
	return s
}

// list reads a list header. The count is at most the bytes left, since no element takes less than one.
func (c *compact) list() (n int, elem byte) {
	h := c.byte()
	size := uint64(h >> 4)
	if size == 15 {
		size = c.uvarint()
	}
	if c.err == nil && size > uint64(len(c.b)-c.i) {
		c.fail("list of %d elements at byte %d, %d bytes are left", size, c.i, len(c.b)-c.i)
	}
	if c.err != nil {
		return 0, 0
	}
	return int(size), h & 15
}

// each calls visit for every element of a list of elements of type want; a list of another type is skipped.
func (c *compact) each(want byte, visit func(i int)) {
	n, elem := c.list()
	if elem == thriftFalse {
		elem = thriftTrue
	}
	for i := 0; i < n && c.err == nil; i++ {
		if elem == want {
			visit(i)
		} else {
			c.skipElement(elem)
		}
	}
}

// fields calls visit for every field of a struct; a field that visit does not consume (it returns false) is skipped.
// Booleans are in the type itself: visit gets thriftTrue or thriftFalse and has nothing to read.
func (c *compact) fields(visit func(id int, typ byte) bool) {
	if c.depth++; c.depth > maxThriftDepth {
		c.fail("nested more than %d deep", maxThriftDepth)
		return
	}
	id := 0
	for c.err == nil {
		h := c.byte()
		typ := h & 15
		if typ == thriftStop {
			break
		}
		if d := int(h >> 4); d != 0 {
			id += d
		} else {
			id = int(int16(c.int64()))
		}
		if c.err == nil && !visit(id, typ) {
			c.skip(typ)
		}
	}
	c.depth--
}

func (c *compact) skip(typ byte) {
	switch typ {
	case thriftTrue, thriftFalse:
	case thriftI8:
		c.byte()
	case thriftI16, thriftI32, thriftI64:
		c.uvarint()
	case thriftDouble:
		c.advance(8)
	case thriftUUID:
		c.advance(16)
	case thriftBinary:
		c.binary()
	case thriftStruct:
		c.fields(func(int, byte) bool { return false })
	case thriftList, thriftSet:
		c.skipList()
	case thriftMap:
		c.skipMap()
	default:
		c.fail("unknown field type %d at byte %d", typ, c.i)
	}
}

// skipElement skips a container's element: there a boolean takes a byte of its own.
func (c *compact) skipElement(typ byte) {
	if typ == thriftTrue || typ == thriftFalse {
		c.byte()
		return
	}
	c.skip(typ)
}

func (c *compact) skipList() {
	if c.depth++; c.depth > maxThriftDepth {
		c.fail("nested more than %d deep", maxThriftDepth)
		return
	}
	n, elem := c.list()
	for i := 0; i < n && c.err == nil; i++ {
		c.skipElement(elem)
	}
	c.depth--
}

func (c *compact) skipMap() {
	n := c.uvarint()
	if n == 0 || c.err != nil {
		return
	}
	if c.depth++; c.depth > maxThriftDepth || n > uint64(len(c.b)-c.i) {
		c.fail("map of %d entries at byte %d", n, c.i)
		return
	}
	kv := c.byte()
	for i := uint64(0); i < n && c.err == nil; i++ {
		c.skipElement(kv >> 4)
		c.skipElement(kv & 15)
	}
	c.depth--
}

func (c *compact) advance(n int) {
	if c.err == nil && n > len(c.b)-c.i {
		c.fail("ends at byte %d", len(c.b))
	}
	if c.err == nil {
		c.i += n
	}
}

// bool reads a boolean element of a list.
func (c *compact) bool() bool { return c.byte() == thriftTrue }
