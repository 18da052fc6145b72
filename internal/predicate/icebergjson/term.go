package icebergjson

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/predicate"
)

// tests are Iceberg's operations; negated ones keep null rows.
var tests = map[string]struct {
	op      predicate.Op
	negated bool
}{
	"is-null": {predicate.IsNull, false}, "not-null": {predicate.IsNull, true},
	"is-nan": {predicate.IsNaN, false}, "not-nan": {predicate.IsNaN, true},
	"lt": {predicate.Less, false}, "lt-eq": {predicate.LessEqual, false},
	"gt": {predicate.Greater, false}, "gt-eq": {predicate.GreaterEqual, false},
	"eq": {predicate.Equal, false}, "not-eq": {predicate.Equal, true},
	"in": {predicate.In, false}, "not-in": {predicate.In, true},
	"starts-with": {predicate.StartsWith, false}, "not-starts-with": {predicate.StartsWith, true},
}

// flipped is the comparison with its sides exchanged.
var flipped = map[predicate.Op]predicate.Op{
	predicate.Equal: predicate.Equal, predicate.Less: predicate.Greater, predicate.LessEqual: predicate.GreaterEqual,
	predicate.Greater: predicate.Less, predicate.GreaterEqual: predicate.LessEqual,
}

func (b binding) test(kind string, x object, negated bool) (*predicate.Tree, error) {
	test, ok := tests[kind]
	if !ok {
		return nil, invalid(kind, "there is no such expression type")
	}
	operand, value, swapped, err := split(kind, test.op, x)
	if err != nil {
		return nil, err
	}
	op := test.op
	if swapped {
		if op, ok = flipped[op]; !ok {
			return nil, invalid(kind, "its left side must be the column")
		}
	}
	c, plain, err := b.term(operand)
	if err != nil {
		return nil, fault.About(kind, err)
	}
	if o, ok := value.(object); ok && (o["type"] == "reference" || o["type"] == "transform" || o["type"] == "apply") {
		_, _, err := b.term(o)
		return predicate.Always(), fault.About(kind, err)
	}
	literals, err := b.literals(op, value)
	if err != nil {
		return nil, fault.About(kind, err)
	}
	if !plain {
		return predicate.Always(), nil
	}
	t, err := predicate.Bind(predicate.Iceberg, c, op, literals...)
	if err != nil {
		return nil, fault.About(kind, err)
	}
	if test.negated != negated {
		t = predicate.Not(t)
	}
	return t, nil
}

// split finds the operand and the value or values of a test in the old form (term with value or values) and the new one
// (child with values, left with right). swapped reports that the literal stood left.
func split(kind string, op predicate.Op, x object) (operand, value any, swapped bool, err error) {
	operand, hasOperand := first(x, "term", "child", "left")
	value, hasValue := first(x, "value", "values", "right")
	switch {
	case !hasOperand:
		return nil, nil, false, invalid(kind, "it has neither term nor child nor left")
	case op == predicate.IsNull || op == predicate.IsNaN:
		return operand, nil, false, nil
	case !hasValue:
		return nil, nil, false, invalid(kind, "it has no value")
	}
	if o, ok := operand.(object); ok && o["type"] == "literal" {
		return value, operand, true, nil
	}
	return operand, value, false, nil
}

func first(x object, keys ...string) (any, bool) {
	for _, key := range keys {
		if v, ok := x[key]; ok {
			return v, true
		}
	}
	return nil, false
}

// term resolves an operand. plain is false for a transform or a function of columns.
func (b binding) term(x any) (c predicate.Column, plain bool, err error) {
	switch x := x.(type) {
	case string:
		c, err = b.byName(x)
		return c, true, err
	case object:
		switch x["type"] {
		case "reference":
			c, err = b.reference(x)
			return c, true, err
		case "transform":
			return b.transform(x)
		case "apply":
			return c, false, nil
		}
	}
	return c, false, invalid("term", "it is neither a name nor a reference, transform or apply")
}

func (b binding) byName(name string) (predicate.Column, error) {
	return b.names.Column(strings.Split(name, "."))
}

func (b binding) reference(x object) (predicate.Column, error) {
	if id, ok := x["id"]; ok {
		n, isNumber := id.(json.Number)
		i, err := n.Int64()
		if !isNumber || err != nil || i < 0 || i > math.MaxInt32 {
			return predicate.Column{}, invalid("reference", "its id is not a field id")
		}
		path := b.schema.ByID(int(i))
		if path == nil {
			return predicate.Column{}, invalid("reference", "the schema has no field of id %d", i)
		}
		return predicate.Column{Path: path}, nil
	}
	v, _ := first(x, "name", "term")
	name, ok := v.(string)
	if !ok {
		return predicate.Column{}, invalid("reference", "it has neither an id nor a name")
	}
	return b.byName(name)
}

func (b binding) transform(x object) (c predicate.Column, plain bool, err error) {
	name, ok := x["transform"].(string)
	if !ok {
		return c, false, invalid("transform", "it does not say which")
	}
	inner, ok := first(x, "term", "child")
	if !ok {
		return c, false, invalid("transform", "it has no term")
	}
	if o, isObject := inner.(object); isObject && o["type"] != "reference" {
		return c, false, invalid("transform", "its term is not a reference")
	}
	c, _, err = b.term(inner)
	return c, name == "identity", err
}

func (b binding) literals(op predicate.Op, value any) ([]predicate.Literal, error) {
	dataType := ""
	if o, ok := value.(object); ok && op == predicate.In {
		dataType, _ = o["data-type"].(string)
		value = o["values"]
	}
	switch op {
	case predicate.IsNull, predicate.IsNaN:
		return nil, nil
	case predicate.In:
		values, ok := value.([]any)
		if !ok {
			return nil, invalid("values", "they are not an array")
		}
		out := make([]predicate.Literal, len(values))
		for i, v := range values {
			var err error
			if out[i], err = literal(v, dataType); err != nil {
				return nil, err
			}
		}
		return out, nil
	default:
		x, err := literal(value, "")
		return []predicate.Literal{x}, err
	}
}

func literal(x any, dataType string) (predicate.Literal, error) {
	if o, ok := x.(object); ok {
		if o["type"] != "literal" {
			return predicate.Literal{}, invalid("value", "it is not a literal; only a column and a literal can be compared")
		}
		if t, ok := o["data-type"].(string); ok {
			dataType = t
		}
		x = o["value"]
	}
	switch v := x.(type) {
	case bool:
		return predicate.Literal{Kind: predicate.BoolLiteral, Text: fmt.Sprint(v)}, nil
	case json.Number:
		return predicate.Literal{Kind: predicate.NumberLiteral, Text: v.String()}, nil
	case string:
		kind, err := textKind(dataType)
		return predicate.Literal{Kind: kind, Text: v}, err
	case nil:
		return predicate.Literal{Kind: predicate.NullLiteral}, nil
	default:
		return predicate.Literal{}, invalid("value", "a literal is a boolean, a number or a string")
	}
}

// textKind is what a string stands for under a data-type, which may be absent.
func textKind(dataType string) (predicate.LiteralKind, error) {
	base, _, _ := strings.Cut(dataType, "(")
	base, _, _ = strings.Cut(base, "[")
	switch strings.TrimSpace(base) {
	case "date":
		return predicate.DateLiteral, nil
	case "time":
		return predicate.TimeLiteral, nil
	case "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns":
		return predicate.TimestampLiteral, nil
	case "int", "long", "float", "double", "decimal":
		return predicate.NumberLiteral, nil
	case "", "string", "uuid", "fixed", "binary", "boolean":
		return predicate.TextLiteral, nil
	default:
		return predicate.NullLiteral, invalid("data-type", "there is no literal of type %s", dataType)
	}
}
