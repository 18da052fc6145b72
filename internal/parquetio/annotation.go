package parquetio

import "fmt"

var annotations = map[logical]string{
	stringType: "STRING", mapType: "MAP", listType: "LIST", enumType: "ENUM", dateType: "DATE", timeMillis: "TIME_MILLIS",
	timeMicros: "TIME_MICROS", timeNanos: "TIME_NANOS", timestampMillis: "TIMESTAMP_MILLIS", timestampMicros: "TIMESTAMP_MICROS",
	timestampNanos: "TIMESTAMP_NANOS", nullType: "NULL", jsonType: "JSON", bsonType: "BSON", uuidType: "UUID", float16Type: "FLOAT16",
	variantType: "VARIANT", geometryType: "GEOMETRY", geographyType: "GEOGRAPHY", intervalType: "INTERVAL", unknownLogical: "unknown annotation",
}

// annotation is the logical type as people write it; "" for none.
func (n *node) annotation() string {
	switch n.logical {
	case signedInt:
		return fmt.Sprintf("INT_%d", n.bits)
	case unsignedInt:
		return fmt.Sprintf("UINT_%d", n.bits)
	case decimalType:
		return fmt.Sprintf("DECIMAL(%d,%d)", n.precision, n.scale)
	default:
		return annotations[n.logical]
	}
}
