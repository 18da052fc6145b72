package meta

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

const (
	maxDepth = 64
	maxFixed = 1 << 24 // bytes of a fixed type
)

type wireSchema struct {
	Type   string      `json:"type"`
	ID     *int        `json:"schema-id"`
	Fields []wireField `json:"fields"`
}

type wireField struct {
	ID       *int            `json:"id"`
	Name     string          `json:"name"`
	Required bool            `json:"required"`
	Type     json.RawMessage `json:"type"`
	Initial  json.RawMessage `json:"initial-default"`
}

type wireNested struct {
	Type            string          `json:"type"`
	Fields          []wireField     `json:"fields"`
	ElementID       int             `json:"element-id"`
	Element         json.RawMessage `json:"element"`
	ElementRequired bool            `json:"element-required"`
	KeyID           int             `json:"key-id"`
	Key             json.RawMessage `json:"key"`
	ValueID         int             `json:"value-id"`
	Value           json.RawMessage `json:"value"`
	ValueRequired   bool            `json:"value-required"`
}

// ParseSchema reads a schema; what names the file in faults.
func ParseSchema(what string, b []byte) (*column.Schema, error) { return parser{what}.schema(b) }

func (p parser) schema(b []byte) (*column.Schema, error) {
	var w wireSchema
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, p.bad("bad schema").WithCause(err)
	}
	if w.Type != "struct" {
		return nil, p.bad("a schema of type %q, expected struct", w.Type)
	}
	s := &column.Schema{}
	if w.ID != nil {
		s.ID = *w.ID
	}
	var err error
	if s.Fields, err = p.fields(w.Fields, "", 0); err != nil {
		return nil, err
	}
	seen := map[int]string{}
	s.Walk(func(path column.Path) bool {
		if other, twice := seen[path.Leaf().ID]; twice {
			err = p.bad("schema %d: %s and %s have one field id, %d", s.ID, other, path.Name(), path.Leaf().ID)
		}
		seen[path.Leaf().ID] = path.Name()
		return err == nil
	})
	return s, err
}

func (p parser) fields(list []wireField, prefix string, depth int) ([]column.Field, error) {
	out := make([]column.Field, 0, len(list))
	for _, w := range list {
		name := prefix + w.Name
		if w.ID == nil {
			return nil, p.bad("column %s has no id", name)
		}
		t, err := p.typ(w.Type, name, depth)
		if err != nil {
			return nil, err
		}
		f := column.Field{ID: *w.ID, Name: w.Name, Type: t, Required: w.Required}
		if f.Initial, err = ParseDefault(t, w.Initial); err != nil {
			return nil, p.bad("column %s: initial default %s", name, w.Initial).WithCause(err)
		}
		out = append(out, f)
	}
	return out, nil
}

func (p parser) typ(b json.RawMessage, name string, depth int) (column.Type, error) {
	if depth > maxDepth {
		return column.Type{}, p.bad("column %s is nested deeper than %d", name, maxDepth)
	}
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return column.Type{}, p.bad("column %s: type %s", name, b)
		}
		t, ok := ParseType(text)
		if !ok {
			return t, fault.New(fault.Unsupported, p.what, "column %s has the unknown type %q", name, text)
		}
		return t, nil
	}
	var w wireNested
	if err := json.Unmarshal(b, &w); err != nil {
		return column.Type{}, p.bad("column %s: bad type", name).WithCause(err)
	}
	switch w.Type {
	case "struct":
		fields, err := p.fields(w.Fields, name+".", depth+1)
		return column.Type{Kind: column.Struct, Fields: fields}, err
	case "list":
		e, err := p.kid(w.ElementID, "element", w.Element, w.ElementRequired, name, depth)
		return column.Type{Kind: column.List, Fields: []column.Field{e}}, err
	case "map":
		k, err := p.kid(w.KeyID, "key", w.Key, true, name, depth)
		if err != nil {
			return column.Type{}, err
		}
		v, err := p.kid(w.ValueID, "value", w.Value, w.ValueRequired, name, depth)
		return column.Type{Kind: column.Map, Fields: []column.Field{k, v}}, err
	}
	return column.Type{}, fault.New(fault.Unsupported, p.what, "column %s has the unknown type %q", name, w.Type)
}

func (p parser) kid(id int, name string, b json.RawMessage, required bool, parent string, depth int) (column.Field, error) {
	t, err := p.typ(b, parent+"."+name, depth+1)
	return column.Field{ID: id, Name: name, Type: t, Required: required}, err
}

var plainTypes = map[string]column.Kind{
	"unknown": column.Unknown, "boolean": column.Bool, "int": column.Int, "long": column.Long, "float": column.Float,
	"double": column.Double, "date": column.Date, "time": column.Time, "timestamp": column.Timestamp,
	"timestamptz": column.TimestampTZ, "timestamp_ns": column.TimestampNS, "timestamptz_ns": column.TimestampNZ,
	"string": column.String, "uuid": column.UUID, "binary": column.Binary, "variant": column.Variant,
}

var (
	decimalType = regexp.MustCompile(`^decimal\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)$`)
	fixedType   = regexp.MustCompile(`^fixed\[\s*(\d{1,8})\s*\]$`)
)

// ParseType reads a primitive type as Iceberg writes it.
func ParseType(text string) (column.Type, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	if k, ok := plainTypes[text]; ok {
		return column.Of(k), true
	}
	if m := decimalType.FindStringSubmatch(text); m != nil {
		precision, _ := strconv.Atoi(m[1])
		scale, _ := strconv.Atoi(m[2])
		return column.DecimalOf(precision, scale), precision >= 1 && precision <= 38 && scale <= precision
	}
	if m := fixedType.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return column.FixedOf(n), n <= maxFixed
	}
	if strings.HasPrefix(text, "geometry") {
		return column.Of(column.Geometry), true
	}
	return column.Of(column.Geography), strings.HasPrefix(text, "geography")
}

// SchemaJSON is a schema as metadata holds it, initial defaults included. Write defaults repeat the initial ones.
func SchemaJSON(s *column.Schema) []byte {
	return mustJSON(map[string]any{"type": "struct", "schema-id": s.ID, "fields": fieldsJSON(s.Fields)})
}

func fieldsJSON(fields []column.Field) []any {
	out := make([]any, 0, len(fields))
	for _, f := range fields {
		o := map[string]any{"id": f.ID, "name": f.Name, "required": f.Required, "type": typeJSON(f.Type)}
		if f.Initial != nil {
			o["initial-default"] = DefaultJSON(f.Type, *f.Initial)
			o["write-default"] = o["initial-default"]
		}
		out = append(out, o)
	}
	return out
}

func typeJSON(t column.Type) any {
	switch t.Kind {
	case column.Struct:
		return map[string]any{"type": "struct", "fields": fieldsJSON(t.Fields)}
	case column.List:
		e := t.Fields[0]
		return map[string]any{"type": "list", "element-id": e.ID, "element": typeJSON(e.Type), "element-required": e.Required}
	case column.Map:
		k, v := t.Fields[0], t.Fields[1]
		return map[string]any{
			"type": "map", "key-id": k.ID, "key": typeJSON(k.Type),
			"value-id": v.ID, "value": typeJSON(v.Type), "value-required": v.Required,
		}
	default:
		return t.String()
	}
}
