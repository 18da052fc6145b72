package parquetio

// convertedTypes maps ConvertedType numbers to what a LogicalType says in newer files. UTC is true for times and
// timestamps: the old annotations mean instants.
var convertedTypes = [...]logical{
	stringType, mapType, mapType, listType, enumType, decimalType, dateType, timeMillis, timeMicros, timestampMillis,
	timestampMicros, unsignedInt, unsignedInt, unsignedInt, unsignedInt, signedInt, signedInt, signedInt, signedInt,
	jsonType, bsonType, intervalType,
}

// element reads a SchemaElement. The LogicalType counts if both annotations are there.
func (c *compact) element() element {
	e := element{phys: noType}
	converted := int32(-1)
	c.fields(func(id int, typ byte) bool {
		switch {
		case id == 1 && typ == thriftI32:
			e.phys = physicalOf(c.int32())
		case id == 2 && typ == thriftI32:
			e.length = c.int32()
		case id == 3 && typ == thriftI32:
			e.rep = repetition(max(-1, min(3, c.int32())))
		case id == 4 && typ == thriftBinary:
			e.name = string(c.binary())
		case id == 5 && typ == thriftI32:
			e.kids = c.int32()
		case id == 6 && typ == thriftI32:
			converted = c.int32()
		case id == 7 && typ == thriftI32:
			e.scale = c.int32()
		case id == 8 && typ == thriftI32:
			e.precision = c.int32()
		case id == 9 && typ == thriftI32:
			e.id = c.int32()
			e.hasID = e.id > 0 // writers without ids leave 0 or -1
		case id == 10 && typ == thriftStruct:
			c.logicalType(&e)
		default:
			return false
		}
		return true
	})
	if e.logical == plainType && converted >= 0 {
		e.applyConverted(converted)
	}
	return e
}

func (e *element) applyConverted(converted int32) {
	if converted == 24 || converted == 25 { // parquet-cpp's NA
		e.logical = nullType
		return
	}
	if int(converted) >= len(convertedTypes) {
		e.logical = unknownLogical
		return
	}
	e.logical, e.utc = convertedTypes[converted], true
	if e.logical == unsignedInt {
		e.bits = 8 << (converted - 11)
	}
	if e.logical == signedInt {
		e.bits = 8 << (converted - 15)
	}
}

// logicalIDs maps the members of the LogicalType union that carry nothing.
var logicalIDs = map[int]logical{
	1: stringType, 2: mapType, 3: listType, 4: enumType, 6: dateType, 11: nullType, 12: jsonType, 13: bsonType, 14: uuidType,
	15: float16Type, 16: variantType, 17: geometryType, 18: geographyType,
}

func (c *compact) logicalType(e *element) {
	c.fields(func(id int, typ byte) bool {
		if typ != thriftStruct {
			return false
		}
		switch id {
		case 5:
			e.logical = decimalType
			c.decimalType(e)
		case 7:
			e.logical = timeMillis
			c.timeType(e)
		case 8:
			e.logical = timestampMillis
			c.timeType(e)
		case 10:
			c.intType(e)
		default:
			known, ok := logicalIDs[id]
			if !ok {
				known = unknownLogical
			}
			e.logical = known
			return false
		}
		return true
	})
}

func (c *compact) decimalType(e *element) {
	c.fields(func(id int, typ byte) bool {
		switch {
		case id == 1 && typ == thriftI32:
			e.scale = c.int32()
		case id == 2 && typ == thriftI32:
			e.precision = c.int32()
		default:
			return false
		}
		return true
	})
}

// timeType reads TimeType and TimestampType: the unit moves logical on from millis to micros or nanos.
func (c *compact) timeType(e *element) {
	millis := e.logical
	c.fields(func(id int, typ byte) bool {
		switch id {
		case 1:
			e.utc = typ == thriftTrue
		case 2:
			if typ == thriftStruct {
				c.fields(func(unit int, _ byte) bool {
					e.logical = unknownLogical
					if unit >= 1 && unit <= 3 {
						e.logical = millis + logical(unit-1)
					}
					return false
				})
				return true
			}
		}
		return false
	})
}

func (c *compact) intType(e *element) {
	e.logical = unsignedInt
	c.fields(func(id int, typ byte) bool {
		switch {
		case id == 1 && typ == thriftI8:
			e.bits = int8(c.byte())
			return true
		case id == 2 && typ == thriftTrue:
			e.logical = signedInt
		}
		return false
	})
}
