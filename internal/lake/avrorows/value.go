package avrorows

import (
	"math"
	"math/big"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/lake/avro"
)

// value reads a value that was written as s, as type t.
func value(c *avro.Cursor, s *avro.Schema, t column.Type) (column.Value, bool) {
	switch s.Kind {
	case avro.Bool:
		return column.BoolValue(c.Bool()), t.Kind == column.Bool
	case avro.Int, avro.Long:
		return integer(c.Long(), s.Logical, t)
	case avro.Float:
		v := c.Float()
		if t.Kind == column.Double {
			return column.DoubleValue(float64(v)), true
		}
		return column.FloatValue(v), t.Kind == column.Float
	case avro.Double:
		return column.DoubleValue(c.Double()), t.Kind == column.Double
	case avro.String:
		return octets(c.Bytes(), s, t)
	case avro.Bytes:
		return octets(c.Bytes(), s, t)
	case avro.Fixed:
		return octets(c.Fixed(s.Size), s, t)
	default:
		return column.Value{}, false
	}
}

func integer(n int64, logical string, t column.Type) (column.Value, bool) {
	nanos := t.Kind == column.TimestampNS || t.Kind == column.TimestampNZ
	switch t.Kind {
	case column.Int, column.Date:
		return column.IntValue(t.Kind, n), n >= math.MinInt32 && n <= math.MaxInt32
	case column.Long:
		return column.IntValue(t.Kind, n), true
	case column.Time, column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
	default:
		return column.Value{}, false
	}
	switch logical {
	case "date": // before its promotion
		n *= 86_400_000_000
		if nanos {
			n *= 1000
		}
	case "time-millis", "timestamp-millis", "local-timestamp-millis":
		n *= 1000
		if nanos {
			n *= 1000
		}
	case "timestamp-micros", "local-timestamp-micros":
		if nanos {
			n *= 1000
		}
	}
	return column.IntValue(t.Kind, n), true
}

func octets(b []byte, s *avro.Schema, t column.Type) (column.Value, bool) {
	switch t.Kind {
	case column.String:
		return column.StringValue(string(b)), s.Kind == avro.String
	case column.UUID:
		if s.Kind == avro.String {
			u, err := uuid.ParseBytes(b)
			return column.BytesValue(t.Kind, u[:]), err == nil
		}
		return column.BytesValue(t.Kind, b), len(b) == t.Size()
	case column.Fixed:
		return column.BytesValue(t.Kind, b), len(b) == t.Size()
	case column.Binary, column.Geometry, column.Geography:
		return column.BytesValue(t.Kind, b), s.Kind != avro.String
	case column.Decimal:
		return decimal(b, s, t)
	default:
		return column.Value{}, false
	}
}

// decimal reads a big-endian two's complement unscaled value.
func decimal(b []byte, s *avro.Schema, t column.Type) (column.Value, bool) {
	if len(b) == 0 || s.Kind == avro.String || s.Scale != t.Scale {
		return column.Value{}, false
	}
	n := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	if n.BitLen() > 127 {
		return column.Value{}, false
	}
	low := new(big.Int).And(n, new(big.Int).SetUint64(^uint64(0))).Uint64()
	return column.DecimalValue(new(big.Int).Rsh(n, 64).Int64(), low, t.Scale), true
}

// variant reads a variant: a record of metadata and value, kept as the bytes of both.
func variant(c *avro.Cursor, s *avro.Schema) column.Value {
	var metadata, body []byte
	for i := range s.Fields {
		switch branch := c.Branch(s.Fields[i].Schema); {
		case branch == nil:
		case branch.Kind != avro.Bytes:
			c.Skip(branch)
		case s.Fields[i].Name == "metadata":
			metadata = c.Bytes()
		default:
			body = c.Bytes()
		}
	}
	return column.BytesValue(column.Variant, append(append([]byte(nil), metadata...), body...))
}
