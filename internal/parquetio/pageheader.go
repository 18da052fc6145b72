package parquetio

import "math"

// Page types, by their numbers in parquet.thrift.
const (
	pageDataV1     = 0
	pageIndex      = 1
	pageDictionary = 2
	pageDataV2     = 3
)

// Encodings, by their numbers in parquet.thrift.
const (
	encPlain           = 0
	encPlainDictionary = 2
	encRLE             = 3
	encBitPacked       = 4
	encDelta           = 5
	encDeltaLength     = 6
	encDeltaByteArray  = 7
	encRLEDictionary   = 8
	encByteStreamSplit = 9
)

// pageHeader is a PageHeader. Counts and sizes are not negative.
type pageHeader struct {
	kind         int32
	size         int32 // uncompressed, levels included
	compressed   int32
	crc          uint32
	hasCRC       bool
	values       int32 // nulls included
	encoding     int32
	defEncoding  int32
	repEncoding  int32
	rows         int32 // V2
	defBytes     int32 // V2
	repBytes     int32 // V2
	uncompressed bool  // V2: values are not compressed
}

// pageHeader reads the header at the start of b and returns its length.
func readPageHeader(b []byte) (h pageHeader, length int, err error) {
	c := &compact{b: b}
	h.kind, h.values = -1, -1
	seen := 0
	c.fields(func(id int, typ byte) bool {
		switch {
		case id == 1 && typ == thriftI32:
			h.kind = c.int32()
		case id == 2 && typ == thriftI32:
			h.size = c.count()
			seen |= 1
		case id == 3 && typ == thriftI32:
			h.compressed = c.count()
			seen |= 2
		case id == 4 && typ == thriftI32:
			h.crc, h.hasCRC = uint32(c.int32()), true
		case id == 5 && typ == thriftStruct && h.kind == pageDataV1:
			c.dataPageHeader(&h)
		case id == 7 && typ == thriftStruct && h.kind == pageDictionary:
			c.dictionaryPageHeader(&h)
		case id == 8 && typ == thriftStruct && h.kind == pageDataV2:
			c.dataPageHeaderV2(&h)
		default:
			return false
		}
		return true
	})
	if c.err == nil && (seen != 3 || h.values < 0 && h.kind != pageIndex) {
		c.fail("page header lacks a required field")
	}
	return h, c.i, c.err
}

// count is an int32 that must not be negative.
func (c *compact) count() int32 {
	v := c.int64()
	if v < 0 || v > math.MaxInt32 {
		c.fail("count of %d", v)
		return 0
	}
	return int32(v)
}

func (c *compact) dataPageHeader(h *pageHeader) {
	c.fields(func(id int, typ byte) bool {
		if typ != thriftI32 {
			return false
		}
		switch id {
		case 1:
			h.values = c.count()
		case 2:
			h.encoding = c.int32()
		case 3:
			h.defEncoding = c.int32()
		case 4:
			h.repEncoding = c.int32()
		default:
			return false
		}
		return true
	})
}

func (c *compact) dictionaryPageHeader(h *pageHeader) {
	c.fields(func(id int, typ byte) bool {
		if typ != thriftI32 || id > 2 {
			return false
		}
		if id == 1 {
			h.values = c.count()
		} else {
			h.encoding = c.int32()
		}
		return true
	})
}

func (c *compact) dataPageHeaderV2(h *pageHeader) {
	c.fields(func(id int, typ byte) bool {
		if id == 7 {
			h.uncompressed = typ == thriftFalse
			return false
		}
		if typ != thriftI32 {
			return false
		}
		switch id {
		case 1:
			h.values = c.count()
		case 3:
			h.rows = c.count()
		case 4:
			h.encoding = c.int32()
		case 5:
			h.defBytes = c.count()
		case 6:
			h.repBytes = c.count()
		default:
			return false
		}
		return true
	})
}
