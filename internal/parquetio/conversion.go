package parquetio

import (
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// conversion turns the physical values of a leaf into values of a table type.
type conversion struct {
	target column.Type
	null   bool // every value is null, whatever the file holds
	// fixed converts k values of a fixed physical width to the target's; nil: the bytes are the same.
	fixed func(dst, src []byte, k int) error
	// one converts one byte string to a target of fixed size (decimals).
	one func(dst, src []byte) error
	// unsigned: the file's order is that of unsigned integers.
	unsigned bool
}

// typeName is the file's type, for errors and lineage: "INT64 (TIMESTAMP_MILLIS)".
func (n *node) typeName() string {
	name := n.phys.String()
	if ann := n.annotation(); ann != "" {
		name += " (" + ann + ")"
	}
	return name
}

// convert finds how leaf n becomes a value of type t. The promotions are Iceberg's (spec v3, "Schema Evolution"), and the physical
// forms those that writers have used for each type.
func convert(n *node, t column.Type) (*conversion, error) {
	c := &conversion{target: t}
	if t.Kind == column.Unknown || n.logical == nullType {
		c.null = true
		return c, nil
	}
	if n.logical == decimalType && n.precision <= 38 && t.Kind != column.Decimal {
		return nil, mismatch(n, t)
	}
	ok := false
	switch t.Kind {
	case column.Bool:
		ok = n.phys == boolean
	case column.Int, column.Long:
		ok = c.toInteger(n)
	case column.Float, column.Double:
		ok = c.toFloat(n)
	case column.Decimal:
		ok = c.toDecimal(n)
	case column.Date:
		ok = n.phys == int32s && (n.logical == dateType || n.logical == plainType)
	case column.Time:
		ok = c.toTime(n)
	case column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		ok = c.toTimestamp(n)
	case column.String:
		ok = n.phys == byteArray
	case column.Binary, column.Geometry, column.Geography:
		ok = n.phys == byteArray || n.phys == fixedLen
	case column.UUID, column.Fixed:
		ok = n.phys == fixedLen && int(n.length) == t.Size()
	}
	if !ok {
		return nil, mismatch(n, t)
	}
	return c, nil
}

func mismatch(n *node, t column.Type) error {
	return fault.New(fault.Unsupported, "column "+n.path(), "the file's %s cannot be read as the table's %s", n.typeName(), t)
}

func (c *conversion) toInteger(n *node) bool {
	switch n.logical {
	case plainType, signedInt:
	case unsignedInt:
		c.unsigned = true
	default:
		return false
	}
	long := c.target.Kind == column.Long
	switch n.phys {
	case int32s:
		if c.unsigned && n.bits >= 32 {
			if long {
				c.fixed = unsignedToLong
			}
			return long
		}
		if long {
			c.fixed = intToLong
		}
		return true
	case int64s:
		return long && !(c.unsigned && n.bits >= 64)
	default:
		return false
	}
}

func (c *conversion) toFloat(n *node) bool {
	double := c.target.Kind == column.Double
	switch {
	case n.phys == floats:
		if double {
			c.fixed = floatToDouble
		}
		return true
	case n.phys == fixedLen && n.logical == float16Type && n.length == 2:
		c.fixed = halfToFloat
		if double {
			c.fixed = halfToDouble
		}
		return true
	default:
		return double && n.phys == doubles
	}
}

// maxDecimalBytes is the widest stored decimal: wider ones may still hold values of 38 digits, padded.
const maxDecimalBytes = 64

func (c *conversion) toDecimal(n *node) bool {
	if n.logical == unsignedInt && n.bits == 64 && n.phys == int64s {
		c.fixed, c.unsigned = unsignedToDecimal, true
		return c.target.Scale == 0 && c.target.Width >= 20
	}
	if n.logical != decimalType || int(n.scale) != c.target.Scale || int(n.precision) > c.target.Width {
		return false
	}
	switch n.phys {
	case int32s:
		c.fixed = intToDecimal
	case int64s:
		c.fixed = longToDecimal
	case fixedLen:
		w := int(n.length)
		c.fixed = func(dst, src []byte, k int) error { return fixedToDecimal(dst, src, k, w) }
		return w <= maxDecimalBytes
	case byteArray:
		c.one = bytesToDecimal
	default:
		return false
	}
	return true
}

func (c *conversion) toTime(n *node) bool {
	switch {
	case n.logical == timeMillis && n.phys == int32s:
		c.fixed = millisToTime
	case n.logical == timeMicros && n.phys == int64s:
	case n.logical == timeNanos && n.phys == int64s:
		c.fixed = divide1000
	default:
		return false
	}
	return true
}

func (c *conversion) toTimestamp(n *node) bool {
	nanos := c.target.Kind == column.TimestampNS || c.target.Kind == column.TimestampNZ
	pick := func(micros, nano func(dst, src []byte, k int) error) {
		c.fixed = micros
		if nanos {
			c.fixed = nano
		}
	}
	switch {
	case n.phys == int96s:
		pick(int96ToMicros, int96ToNanos)
	case n.phys == int32s && n.logical == dateType:
		pick(daysToMicros, daysToNanos)
	case n.phys != int64s:
		return false
	case n.logical == timestampMillis:
		pick(times1000, times1000000)
	case n.logical == timestampMicros:
		pick(nil, times1000)
	case n.logical == timestampNanos:
		pick(divide1000, nil)
	default:
		return false
	}
	return true
}
