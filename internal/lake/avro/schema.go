// Package avro answers: what do the records of an Avro object container file say?
//
// It reads the writer's own schema and hands out a cursor over each record, so that a caller decodes the fields it knows
// by Iceberg field id and skips the rest without building values. Everything read from a file is capped before anything is
// allocated for it. The package knows nothing of manifests or tables. Source: Apache Avro 1.12 specification.
package avro

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
)

// Kind is an Avro type.
type Kind uint8

// Avro's types.
const (
	Null Kind = iota
	Bool
	Int
	Long
	Float
	Double
	Bytes
	String
	Record
	Enum
	Array
	Map
	Union
	Fixed
)

var primitives = map[string]Kind{
	"null": Null, "boolean": Bool, "int": Int, "long": Long, "float": Float, "double": Double, "bytes": Bytes, "string": String,
}

// String is the type's name in a schema.
func (k Kind) String() string {
	return [...]string{
		"null", "boolean", "int", "long", "float", "double", "bytes", "string", "record", "enum", "array", "map", "union", "fixed",
	}[k]
}

// Schema is one node of a writer's schema. Named types that refer to themselves make it cyclic.
type Schema struct {
	Kind     Kind
	Logical  string // logicalType, "" if none
	Scale    int    // of a decimal
	Size     int    // Fixed: bytes
	Symbols  []string
	Fields   []Field   // Record
	Items    *Schema   // Array: its items. Map: its values
	Branches []*Schema // Union
}

// Field is a field of a record.
type Field struct {
	Name   string
	ID     int // Iceberg's "field-id"; -1 if the schema has none
	Schema *Schema
}

// Value is the schema of the non-null values of s: for a union with one branch beside null that branch, else s itself.
func (s *Schema) Value() *Schema {
	if s.Kind != Union {
		return s
	}
	var only *Schema
	for _, b := range s.Branches {
		if b.Kind == Null {
			continue
		}
		if only != nil {
			return s
		}
		only = b
	}
	if only == nil {
		return s
	}
	return only
}

const maxDepth = 64

type parser struct {
	what  string
	named map[string]*Schema
}

// ParseSchema reads a schema in JSON; what names the file in faults.
func ParseSchema(what string, text []byte) (*Schema, error) {
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fault.New(fault.Corrupt, what, "Avro schema is not JSON").WithCause(err)
	}
	p := parser{what: what, named: map[string]*Schema{}}
	return p.parse(tree, 0)
}

func (p *parser) bad(reason string, args ...any) error {
	return fault.New(fault.Corrupt, p.what, "Avro schema: "+reason, args...)
}

func (p *parser) parse(tree any, depth int) (*Schema, error) {
	if depth > maxDepth {
		return nil, p.bad("nested deeper than %d", maxDepth)
	}
	switch t := tree.(type) {
	case string:
		return p.byName(t)
	case []any:
		return p.union(t, depth)
	case map[string]any:
		return p.object(t, depth)
	default:
		return nil, p.bad("%T is no type", tree)
	}
}

func (p *parser) byName(name string) (*Schema, error) {
	if k, ok := primitives[name]; ok {
		return &Schema{Kind: k}, nil
	}
	if s := p.named[simpleName(name)]; s != nil {
		return s, nil
	}
	return nil, p.bad("unknown type %q", name)
}

func (p *parser) union(kids []any, depth int) (*Schema, error) {
	s := &Schema{Kind: Union}
	for _, kid := range kids {
		b, err := p.parse(kid, depth+1)
		if err != nil {
			return nil, err
		}
		if b.Kind == Union {
			return nil, p.bad("union inside a union")
		}
		s.Branches = append(s.Branches, b)
	}
	return s, nil
}

func (p *parser) object(o map[string]any, depth int) (*Schema, error) {
	name, isName := o["type"].(string)
	if !isName {
		return p.parse(o["type"], depth+1)
	}
	s := &Schema{}
	s.Logical, _ = o["logicalType"].(string)
	s.Scale = intOf(o["scale"], 0)
	switch name {
	case "record", "error":
		return s, p.record(s, o, depth)
	case "enum":
		s.Kind = Enum
		for _, sym := range listOf(o["symbols"]) {
			text, _ := sym.(string)
			s.Symbols = append(s.Symbols, text)
		}
		p.define(o, s)
		return s, nil
	case "fixed":
		s.Kind = Fixed
		if s.Size = intOf(o["size"], -1); s.Size < 0 {
			return nil, p.bad("fixed without a size")
		}
		p.define(o, s)
		return s, nil
	case "array", "map":
		s.Kind = Array
		items := o["items"]
		if name == "map" {
			s.Kind, items = Map, o["values"]
		}
		var err error
		s.Items, err = p.parse(items, depth+1)
		return s, err
	}
	found, err := p.byName(name)
	if err != nil || found.Kind >= Record {
		return found, err
	}
	s.Kind = found.Kind
	return s, nil
}

func (p *parser) record(s *Schema, o map[string]any, depth int) error {
	s.Kind = Record
	p.define(o, s)
	for _, raw := range listOf(o["fields"]) {
		f, ok := raw.(map[string]any)
		if !ok {
			return p.bad("a field is no object")
		}
		kid, err := p.parse(f["type"], depth+1)
		if err != nil {
			return err
		}
		name, _ := f["name"].(string)
		s.Fields = append(s.Fields, Field{Name: name, ID: intOf(f["field-id"], -1), Schema: kid})
	}
	return nil
}

func (p *parser) define(o map[string]any, s *Schema) {
	if name, _ := o["name"].(string); name != "" {
		p.named[simpleName(name)] = s
	}
}

// simpleName drops the namespace: manifests never have two types of one simple name.
func simpleName(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func intOf(v any, otherwise int) int {
	f, ok := v.(float64)
	if !ok || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
		return otherwise
	}
	return int(f)
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}
