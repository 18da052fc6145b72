package parquetio

import "math"

// Physical types, by their numbers in parquet.thrift.
type physical int8

const (
	boolean   physical = 0
	int32s    physical = 1
	int64s    physical = 2
	int96s    physical = 3
	floats    physical = 4
	doubles   physical = 5
	byteArray physical = 6
	fixedLen  physical = 7
	noType    physical = -1 // a group
)

var physicalNames = [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}

func (p physical) String() string {
	if p < 0 || int(p) >= len(physicalNames) {
		return "GROUP"
	}
	return physicalNames[p]
}

// width is the bytes of one PLAIN value; 0 for BOOLEAN, BYTE_ARRAY and (length in the schema) FIXED_LEN_BYTE_ARRAY.
func (p physical) width() int {
	switch p {
	case int32s, floats:
		return 4
	case int64s, doubles:
		return 8
	case int96s:
		return 12
	default:
		return 0
	}
}

// repetition is the FieldRepetitionType of parquet.thrift.
type repetition int8

const (
	required repetition = 0
	optional repetition = 1
	repeated repetition = 2
)

// logical is a LogicalType, or the ConvertedType that says the same.
type logical int8

const (
	plainType logical = iota
	stringType
	mapType
	listType
	enumType
	decimalType
	dateType
	timeMillis
	timeMicros
	timeNanos
	timestampMillis
	timestampMicros
	timestampNanos
	signedInt
	unsignedInt
	nullType
	jsonType
	bsonType
	uuidType
	float16Type
	variantType
	geometryType
	geographyType
	intervalType
	unknownLogical // a newer one
)

// element is a SchemaElement.
type element struct {
	name      string
	phys      physical
	rep       repetition
	length    int32
	kids      int32
	id        int32
	hasID     bool
	logical   logical
	bits      int8 // signedInt, unsignedInt
	utc       bool
	scale     int32
	precision int32
}

// view is a piece of the footer; no is no piece, unlike an empty one.
type view struct{ off, len uint32 }

var no = view{off: math.MaxUint32}

func (v view) has() bool { return v != no }

// chunk is a ColumnChunk with its ColumnMetaData. Offsets of 0 mean absent: no page starts before the magic ends.
type chunk struct {
	numValues      int64
	uncompressed   int64
	compressed     int64
	dataOffset     int64
	dictOffset     int64
	offsetIndexOff int64
	columnIndexOff int64
	offsetIndexLen int32
	columnIndexLen int32
	nulls, nans    int64 // -1: not stated
	min, max       view  // deprecated fields, signed order
	minValue       view
	maxValue       view
	minExact       bool
	maxExact       bool
	phys           physical
	codec          int8
	hasMeta        bool
	encrypted      bool
	elsewhere      bool // file_path is set
	order          columnOrder
}

// rowGroup is a RowGroup.
type rowGroup struct {
	rows   int64
	chunks []chunk
}

// columnOrder is a ColumnOrder.
type columnOrder uint8

const (
	orderUndefined columnOrder = iota
	orderType
	orderIEEE // total order of IEEE 754
)

// metadata is a FileMetaData.
type metadata struct {
	elements  []element
	schema    view // the list of the elements; no: they are in several
	rows      int64
	groups    []rowGroup
	createdBy string
	orders    []columnOrder
	encrypted bool // some columns may be
}

// maxElements bounds the nodes of a schema: one takes three bytes of footer and much more of memory.
const maxElements = 1 << 20

func (c *compact) fileMetadata() *metadata {
	m := &metadata{rows: -1, schema: no}
	c.fields(func(id int, typ byte) bool {
		switch {
		case id == 2 && typ == thriftList:
			from, more := c.i, len(m.elements) > 0
			m.elements = c.elements(m.elements)
			if m.schema = (view{uint32(from), uint32(c.i - from)}); more {
				m.schema = no
			}
		case id == 3 && typ == thriftI64:
			m.rows = c.int64()
		case id == 4 && typ == thriftList:
			c.each(thriftStruct, func(int) { m.groups = append(m.groups, c.rowGroup()) })
		case id == 6 && typ == thriftBinary:
			m.createdBy = string(c.binary())
		case id == 7 && typ == thriftList:
			c.each(thriftStruct, func(int) { m.orders = append(m.orders, c.columnOrder()) })
		case id == 8 && typ == thriftStruct:
			m.encrypted = true
			return false
		default:
			return false
		}
		return true
	})
	return m
}

// elements appends those of a schema.
func (c *compact) elements(dst []element) []element {
	c.each(thriftStruct, func(int) {
		if len(dst) == maxElements {
			c.fail("schema of more than %d nodes", maxElements)
			return
		}
		dst = append(dst, c.element())
	})
	return dst
}

func (c *compact) columnOrder() columnOrder {
	order := orderUndefined
	c.fields(func(id int, typ byte) bool {
		switch id {
		case 1:
			order = orderType
		case 2:
			order = orderIEEE
		default:
			order = orderUndefined
		}
		return false
	})
	return order
}

func (c *compact) rowGroup() rowGroup {
	g := rowGroup{rows: -1}
	c.fields(func(id int, typ byte) bool {
		switch {
		case id == 1 && typ == thriftList:
			c.each(thriftStruct, func(int) { g.chunks = append(g.chunks, c.chunk()) })
		case id == 3 && typ == thriftI64:
			g.rows = c.int64()
		default:
			return false
		}
		return true
	})
	if g.rows < 0 {
		c.fail("row group without a row count")
	}
	return g
}

func (c *compact) chunk() chunk {
	k := chunk{nulls: -1, nans: -1, min: no, max: no, minValue: no, maxValue: no, phys: noType}
	c.fields(func(id int, typ byte) bool {
		switch {
		case id == 1 && typ == thriftBinary:
			k.elsewhere = len(c.binary()) > 0
		case id == 3 && typ == thriftStruct:
			k.hasMeta = true
			c.columnMetadata(&k)
		case id == 4 && typ == thriftI64:
			k.offsetIndexOff = c.int64()
		case id == 5 && typ == thriftI32:
			k.offsetIndexLen = c.int32()
		case id == 6 && typ == thriftI64:
			k.columnIndexOff = c.int64()
		case id == 7 && typ == thriftI32:
			k.columnIndexLen = c.int32()
		case id == 8 && typ == thriftStruct:
			k.encrypted = true
			return false
		default:
			return false
		}
		return true
	})
	if !k.hasMeta && !k.encrypted {
		c.fail("column chunk without metadata")
	}
	return k
}

func (c *compact) columnMetadata(k *chunk) {
	seen := 0
	c.fields(func(id int, typ byte) bool {
		switch {
		case id == 1 && typ == thriftI32:
			k.phys = physicalOf(c.int32())
			seen |= 1
		case id == 4 && typ == thriftI32:
			k.codec = int8(max(-1, min(127, c.int32())))
			seen |= 2
		case id == 5 && typ == thriftI64:
			k.numValues = c.int64()
			seen |= 4
		case id == 6 && typ == thriftI64:
			k.uncompressed = c.int64()
		case id == 7 && typ == thriftI64:
			k.compressed = c.int64()
			seen |= 8
		case id == 9 && typ == thriftI64:
			k.dataOffset = c.int64()
			seen |= 16
		case id == 11 && typ == thriftI64:
			k.dictOffset = c.int64()
		case id == 12 && typ == thriftStruct:
			c.statistics(k)
		default:
			return false
		}
		return true
	})
	if seen != 31 {
		c.fail("column metadata lacks a required field")
	}
}

func physicalOf(n int32) physical {
	if n < 0 || n > int32(fixedLen) {
		return noType
	}
	return physical(n)
}

func (c *compact) statistics(k *chunk) {
	c.fields(func(id int, typ byte) bool {
		switch {
		case id == 1 && typ == thriftBinary:
			k.max = c.view()
		case id == 2 && typ == thriftBinary:
			k.min = c.view()
		case id == 3 && typ == thriftI64:
			k.nulls = max(-1, c.int64())
		case id == 5 && typ == thriftBinary:
			k.maxValue = c.view()
		case id == 6 && typ == thriftBinary:
			k.minValue = c.view()
		case id == 7:
			k.maxExact = typ == thriftTrue
		case id == 8:
			k.minExact = typ == thriftTrue
		case id == 9 && typ == thriftI64:
			k.nans = max(-1, c.int64())
		default:
			return false
		}
		return typ > thriftFalse || id >= 7
	})
}

func (c *compact) view() view {
	b := c.binary()
	if c.err != nil {
		return no
	}
	return view{uint32(c.i - len(b)), uint32(len(b))}
}
