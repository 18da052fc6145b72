// Package column answers: what values does a column hold, in memory?
//
// It has Iceberg's type system (Type, Field, Schema), single values (Value) and vectors in Arrow's layout (Vector,
// Batch), without importing Arrow. It knows nothing of files, predicates or indexes.
package column

import (
	"fmt"
	"strings"
)

// Kind is an Iceberg type without its parameters. The numeric values are stored in artifacts: never renumber.
type Kind uint8

// Iceberg's types (table spec v3, "Schemas and Data Types").
const (
	Unknown     Kind = 0 // always null
	Bool        Kind = 1
	Int         Kind = 2 // 32 bits
	Long        Kind = 3 // 64 bits
	Float       Kind = 4 // IEEE 754, 32 bits
	Double      Kind = 5 // IEEE 754, 64 bits
	Decimal     Kind = 6 // unscaled 128-bit integer, fixed scale
	Date        Kind = 7 // days from 1970-01-01
	Time        Kind = 8 // microseconds from midnight
	Timestamp   Kind = 9 // microseconds from 1970-01-01, no zone
	TimestampTZ Kind = 10
	TimestampNS Kind = 11 // nanoseconds from 1970-01-01, no zone
	TimestampNZ Kind = 12 // timestamptz_ns
	String      Kind = 13 // UTF-8
	UUID        Kind = 14 // 16 big-endian bytes
	Fixed       Kind = 15 // Type.Width bytes
	Binary      Kind = 16
	Struct      Kind = 17
	List        Kind = 18
	Map         Kind = 19
	Variant     Kind = 20 // opaque bytes
	Geometry    Kind = 21 // WKB bytes
	Geography   Kind = 22 // WKB bytes
)

var kindNames = [...]string{
	"unknown", "boolean", "int", "long", "float", "double", "decimal", "date", "time", "timestamp", "timestamptz",
	"timestamp_ns", "timestamptz_ns", "string", "uuid", "fixed", "binary", "struct", "list", "map", "variant", "geometry", "geography",
}

// String is Iceberg's name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Nested reports whether values of the kind have fields of their own.
func (k Kind) Nested() bool { return k == Struct || k == List || k == Map }

// VarLen reports whether vectors of the kind keep their values in Off and Bytes.
func (k Kind) VarLen() bool {
	return k == String || k == Binary || k == Variant || k == Geometry || k == Geography
}

// Floating reports whether the kind has NaN and signed zeros.
func (k Kind) Floating() bool { return k == Float || k == Double }

// Type is an Iceberg type.
type Type struct {
	Kind   Kind
	Width  int     // Fixed: bytes. Decimal: precision, 1 to 38
	Scale  int     // Decimal: digits after the point
	Fields []Field // Struct: its fields. List: one, "element". Map: two, "key" and "value"
}

// Of is a Type without parameters.
func Of(k Kind) Type { return Type{Kind: k} }

// DecimalOf is decimal(precision, scale).
func DecimalOf(precision, scale int) Type { return Type{Kind: Decimal, Width: precision, Scale: scale} }

// FixedOf is fixed[n].
func FixedOf(n int) Type { return Type{Kind: Fixed, Width: n} }

// Size is the bytes of one value in Vector.Fixed: 0 for variable-length and nested kinds, and for Bool, which is one bit.
func (t Type) Size() int {
	switch t.Kind {
	case Int, Float, Date:
		return 4
	case Long, Double, Time, Timestamp, TimestampTZ, TimestampNS, TimestampNZ:
		return 8
	case Decimal, UUID:
		return 16
	case Fixed:
		return t.Width
	default:
		return 0
	}
}

// Equal reports whether both types are the same, field ids included.
func (t Type) Equal(u Type) bool {
	if t.Kind != u.Kind || t.Width != u.Width || t.Scale != u.Scale || len(t.Fields) != len(u.Fields) {
		return false
	}
	for i := range t.Fields {
		a, b := t.Fields[i], u.Fields[i]
		if a.ID != b.ID || a.Name != b.Name || a.Required != b.Required || !a.Type.Equal(b.Type) {
			return false
		}
	}
	return true
}

// String is the type as Iceberg writes it.
func (t Type) String() string {
	switch t.Kind {
	case Decimal:
		return fmt.Sprintf("decimal(%d, %d)", t.Width, t.Scale)
	case Fixed:
		return fmt.Sprintf("fixed[%d]", t.Width)
	case List:
		return "list<" + t.Fields[0].Type.String() + ">"
	case Map:
		return "map<" + t.Fields[0].Type.String() + ", " + t.Fields[1].Type.String() + ">"
	case Struct:
		parts := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			parts[i] = f.Name + ": " + f.Type.String()
		}
		return "struct<" + strings.Join(parts, ", ") + ">"
	default:
		return t.Kind.String()
	}
}

// Field is a column or a nested field. ID is its identity; the name is for people.
type Field struct {
	ID       int
	Name     string
	Type     Type
	Required bool
	// Initial is the v3 initial-default: the value of every row of a file written before the field existed. Nil: null.
	Initial *Value
	// Expr is how the field's values are made of those of the path before it (package expression); "" for a field of a table. Fields
	// with an expression, and those below them, have negative ids, which no schema has.
	Expr string
}

// Schema is one schema of a table.
type Schema struct {
	ID     int
	Fields []Field
}

// Path is the chain of fields from a top-level column down to a field, the last being the field itself.
type Path []Field

// Name joins the path with dots, as Iceberg writes full names (list elements as "x.element", map values as "x.value"). The name of a
// field with an expression stands for the whole path to it.
func (p Path) Name() string {
	p = p[max(p.expr(), 0):]
	names := make([]string, len(p))
	for i, f := range p {
		names[i] = f.Name
	}
	return strings.Join(names, ".")
}

// Leaf is the field that the path ends at.
func (p Path) Leaf() Field { return p[len(p)-1] }

// Base is the path to the column of the table: p itself, or what stands before its expression.
func (p Path) Base() Path {
	if i := p.expr(); i >= 0 {
		return p[:i:i]
	}
	return p
}

// Derived reports whether the values are made by an expression.
func (p Path) Derived() bool { return p.expr() >= 0 }

func (p Path) expr() int {
	for i := range p {
		if p[i].Expr != "" {
			return i
		}
	}
	return -1
}

// Repeated reports whether the path runs through a list or a map, so that one row holds many values. What an expression makes of a
// list or map is not repeated by it.
func (p Path) Repeated() bool {
	for _, f := range p[max(p.expr(), 0) : len(p)-1] {
		if f.Type.Kind == List || f.Type.Kind == Map {
			return true
		}
	}
	return false
}

// ByID finds a field at any depth; nil if the schema has none of that id.
func (s *Schema) ByID(id int) Path {
	return find(s.Fields, nil, func(f Field, _ Path) bool { return f.ID == id })
}

// ByName finds a field by its dotted name: exactly, else by a unique case-insensitive match. ambiguous names all
// candidates when only several case-insensitive matches exist.
func (s *Schema) ByName(name string) (path Path, ambiguous []string) {
	if p := find(s.Fields, nil, func(_ Field, p Path) bool { return p.Name() == name }); p != nil {
		return p, nil
	}
	var hits []Path
	find(s.Fields, nil, func(_ Field, p Path) bool {
		if strings.EqualFold(p.Name(), name) {
			hits = append(hits, append(Path(nil), p...))
		}
		return false
	})
	if len(hits) == 1 {
		return hits[0], nil
	}
	for _, h := range hits {
		ambiguous = append(ambiguous, h.Name())
	}
	return nil, ambiguous
}

// Walk calls visit for every field, parents before children, until it returns false.
func (s *Schema) Walk(visit func(Path) bool) {
	find(s.Fields, nil, func(_ Field, p Path) bool { return !visit(p) })
}

func find(fields []Field, prefix Path, hit func(Field, Path) bool) Path {
	for _, f := range fields {
		p := append(prefix[:len(prefix):len(prefix)], f)
		if hit(f, p) {
			return p
		}
		if got := find(f.Type.Fields, p, hit); got != nil {
			return got
		}
	}
	return nil
}
