package parquetio

import (
	"github.com/skomerdb/skomer/internal/column"
)

// Schema is the file's own schema in Iceberg's types, for files that are read without a table. Field ids are the file's; a file
// without any gets them by position, top-level columns first, so that binding by position finds them again. Columns without
// an id in a file with ids, and groups without columns, are left out.
func (f *File) Schema() *column.Schema {
	s := &namer{file: f, next: len(f.root.kids) + 1}
	out := &column.Schema{}
	for i, k := range f.root.kids {
		if field, ok := s.field(k, i+1); ok {
			out.Fields = append(out.Fields, field)
		}
	}
	return out
}

type namer struct {
	file *File
	next int
}

// id is the id of a nested node.
func (s *namer) id(n *node, given int) (int, bool) {
	if s.file.hasIDs {
		return int(n.id), n.hasID
	}
	if given > 0 {
		return given, true
	}
	s.next++
	return s.next - 1, true
}

func (s *namer) field(n *node, given int) (column.Field, bool) {
	id, ok := s.id(n, given)
	if !ok {
		return column.Field{}, false
	}
	t, ok := s.typeOf(n)
	return column.Field{ID: id, Name: n.name, Type: t, Required: n.element.rep == required}, ok
}

func (s *namer) typeOf(n *node) (column.Type, bool) {
	switch {
	case n.element.rep == repeated:
		return s.bareList(n)
	case !n.group():
		return naturalType(n), true
	case n.logical == listType && len(n.kids) == 1 && n.kids[0].element.rep == repeated:
		return s.list(n)
	case n.logical == mapType && len(n.kids) == 1 && n.kids[0].element.rep == repeated && len(n.kids[0].kids) == 2:
		return s.mapping(n.kids[0])
	case n.logical == variantType:
		return column.Of(column.Variant), true
	default:
		return s.structure(n)
	}
}

func (s *namer) structure(n *node) (column.Type, bool) {
	t := column.Type{Kind: column.Struct}
	for _, k := range n.kids {
		if f, ok := s.field(k, 0); ok {
			t.Fields = append(t.Fields, f)
		}
	}
	return t, len(t.Fields) > 0
}

// inner is a list's element, a map's key or value: found by structure, so that its id need not be in the file.
func (s *namer) inner(name string, n *node, t column.Type, required bool) column.Field {
	id, ok := s.id(n, 0)
	if !ok {
		id = 0
	}
	return column.Field{ID: id, Name: name, Type: t, Required: required}
}

// bareList is a repeated field without annotation: a required list of required elements.
func (s *namer) bareList(n *node) (column.Type, bool) {
	t, ok := naturalType(n), true
	if n.group() {
		t, ok = s.structure(n)
	}
	return column.Type{Kind: column.List, Fields: []column.Field{s.inner("element", n, t, true)}}, ok
}

func (s *namer) list(n *node) (column.Type, bool) {
	rep := n.kids[0]
	elem := rep
	if rep.group() && len(rep.kids) == 1 && rep.name != "array" && rep.name != n.name+"_tuple" {
		elem = rep.kids[0]
	}
	if elem == rep {
		return s.bareList(rep)
	}
	t, ok := s.typeOf(elem)
	return column.Type{Kind: column.List, Fields: []column.Field{s.inner("element", elem, t, elem.element.rep == required)}}, ok
}

func (s *namer) mapping(rep *node) (column.Type, bool) {
	key, ok1 := s.typeOf(rep.kids[0])
	value, ok2 := s.typeOf(rep.kids[1])
	return column.Type{Kind: column.Map, Fields: []column.Field{
		s.inner("key", rep.kids[0], key, true),
		s.inner("value", rep.kids[1], value, rep.kids[1].element.rep == required),
	}}, ok1 && ok2
}

// naturalType is the narrowest Iceberg type that holds every value of a leaf.
func naturalType(n *node) column.Type {
	switch n.logical {
	case decimalType:
		if n.precision >= 1 && n.precision <= 38 && n.scale >= 0 && n.scale <= n.precision {
			return column.DecimalOf(int(n.precision), int(n.scale))
		}
	case nullType:
		return column.Of(column.Unknown)
	case dateType:
		return column.Of(column.Date)
	case timeMillis, timeMicros, timeNanos:
		return column.Of(column.Time)
	case timestampMillis, timestampMicros:
		return n.timestamp(column.Timestamp, column.TimestampTZ)
	case timestampNanos:
		return n.timestamp(column.TimestampNS, column.TimestampNZ)
	case uuidType:
		return column.Of(column.UUID)
	case stringType, enumType, jsonType:
		return column.Of(column.String)
	case float16Type:
		return column.Of(column.Float)
	case geometryType:
		return column.Of(column.Geometry)
	case geographyType:
		return column.Of(column.Geography)
	}
	return physicalType(n)
}

func (n *node) timestamp(local, zoned column.Kind) column.Type {
	if n.utc {
		return column.Of(zoned)
	}
	return column.Of(local)
}

func physicalType(n *node) column.Type {
	switch n.phys {
	case boolean:
		return column.Of(column.Bool)
	case int32s:
		if n.logical == unsignedInt && n.bits >= 32 {
			return column.Of(column.Long)
		}
		return column.Of(column.Int)
	case int64s:
		if n.logical == unsignedInt && n.bits >= 64 {
			return column.DecimalOf(20, 0)
		}
		return column.Of(column.Long)
	case int96s:
		return column.Of(column.Timestamp)
	case floats:
		return column.Of(column.Float)
	case doubles:
		return column.Of(column.Double)
	case fixedLen:
		return column.FixedOf(int(n.length))
	default:
		return column.Of(column.Binary)
	}
}
