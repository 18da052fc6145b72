package tabletest

import (
	"encoding/binary"
	"encoding/json"
	"math"

	"github.com/skomerdb/skomer/internal/column"
)

// avroFile is rows as an Avro object container file without compression, written from the Avro specification alone so that
// tests have a second opinion. Columns are primitives, maybe inside structs, and lists of primitives.
func avroFile(s *column.Schema, rows []Row) []byte {
	schema, err := json.Marshal(map[string]any{"type": "record", "name": "row", "fields": avroFields(s.Fields)})
	if err != nil {
		panic(err)
	}
	marker := "0123456789abcdef"
	out := append([]byte("Obj\x01"), avroLong(1)...)
	out = append(out, avroBytes("avro.schema")...)
	out = append(out, avroBytes(string(schema))...)
	out = append(out, 0)
	out = append(out, marker...)
	leaves := Leaves(s)
	for len(rows) > 0 {
		n := min(len(rows), 5)
		var block []byte
		for _, row := range rows[:n] {
			block = avroRow(block, s.Fields, leaves, row)
		}
		out = append(out, avroLong(int64(n))...)
		out = append(out, avroLong(int64(len(block)))...)
		out = append(out, block...)
		out = append(out, marker...)
		rows = rows[n:]
	}
	return out
}

func avroFields(fields []column.Field) []any {
	var out []any
	for _, f := range fields {
		typ := avroType(f)
		if !f.Required {
			typ = []any{"null", typ}
		}
		field := map[string]any{"name": f.Name, "type": typ}
		if f.ID != 0 {
			field["field-id"] = f.ID
		}
		out = append(out, field)
	}
	return out
}

func avroType(f column.Field) any {
	logical := func(typ, name string) any { return map[string]any{"type": typ, "logicalType": name} }
	switch t := f.Type; t.Kind {
	case column.Struct:
		return map[string]any{"type": "record", "name": "s" + f.Name, "fields": avroFields(t.Fields)}
	case column.List:
		return map[string]any{"type": "array", "items": []any{"null", avroType(t.Fields[0])}}
	case column.Bool:
		return "boolean"
	case column.Int:
		return "int"
	case column.Date:
		return logical("int", "date")
	case column.Float:
		return "float"
	case column.Double:
		return "double"
	case column.Time:
		return logical("long", "time-micros")
	case column.Timestamp, column.TimestampTZ:
		return logical("long", "timestamp-micros")
	case column.TimestampNS, column.TimestampNZ:
		return logical("long", "timestamp-nanos")
	case column.String:
		return "string"
	case column.UUID:
		return map[string]any{"type": "fixed", "name": "u" + f.Name, "size": 16, "logicalType": "uuid"}
	case column.Fixed:
		return map[string]any{"type": "fixed", "name": "f" + f.Name, "size": t.Width}
	case column.Decimal:
		return map[string]any{"type": "bytes", "logicalType": "decimal", "precision": t.Width, "scale": t.Scale}
	case column.Binary:
		return "bytes"
	default:
		return "long"
	}
}

// avroRow appends a row. A struct is null where its leaves say so.
func avroRow(dst []byte, fields []column.Field, leaves []Leaf, row Row) []byte {
	for _, f := range fields {
		first, n := -1, 0
		for i, l := range leaves {
			if l.Path[0].Name == f.Name {
				if first < 0 {
					first = i
				}
				n++
			}
		}
		c := row[first]
		switch f.Type.Kind {
		case column.Struct:
		case column.List:
			dst = avroList(dst, f, c)
			continue
		default:
			dst = avroCell(dst, f, c.Null, c.Val)
			continue
		}
		if !f.Required {
			if c.Outer {
				dst = append(dst, 0)
				continue
			}
			dst = append(dst, 2)
		}
		for i := first; i < first+n; i++ {
			dst = avroCell(dst, leaves[i].Path.Leaf(), row[i].Null, row[i].Val)
		}
	}
	return dst
}

// avroList appends a list in one block.
func avroList(dst []byte, f column.Field, c Cell) []byte {
	if !f.Required {
		if c.Null {
			return append(dst, 0)
		}
		dst = append(dst, 2)
	}
	if len(c.List) > 0 {
		dst = append(dst, avroLong(int64(len(c.List)))...)
		for _, x := range c.List {
			dst = avroCell(dst, column.Field{Type: f.Type.Fields[0].Type}, x.Null, x.Val)
		}
	}
	return append(dst, 0)
}

func avroCell(dst []byte, f column.Field, null bool, v column.Value) []byte {
	if !f.Required {
		if null {
			return append(dst, 0)
		}
		dst = append(dst, 2)
	}
	switch t := f.Type; t.Kind {
	case column.Bool:
		return append(dst, byte(v.Lo))
	case column.Float:
		return binary.LittleEndian.AppendUint32(dst, uint32(v.Lo))
	case column.Double:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Float64()))
	case column.String, column.Binary:
		return append(dst, avroBytes(v.S)...)
	case column.UUID, column.Fixed:
		return append(dst, v.S...)
	case column.Decimal:
		return append(dst, avroBytes(string(single(t, v)))...)
	default:
		return append(dst, avroLong(int64(v.Lo))...)
	}
}

func avroLong(n int64) []byte { return binary.AppendVarint(nil, n) }

func avroBytes(s string) []byte { return append(avroLong(int64(len(s))), s...) }
