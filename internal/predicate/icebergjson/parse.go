// Package icebergjson answers: which predicate does an Iceberg expression in JSON mean?
//
// It reads the forms of the REST catalog's scan planning, those that clients send today (term, value, references by name)
// and those that the specification added later (child, left, right, references by field id, typed literals). It has
// Iceberg's null semantics (predicate.Iceberg). What it reads is a filter whose rows the client checks again, so that a
// test of a transformed or computed value, which has no column to ask, keeps every row.
package icebergjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/predicate"
)

// MaxBytes is the longest expression. encoding/json bounds the nesting, at 10,000.
const MaxBytes = 16 << 20

// Parse binds an expression to a schema. Names match exactly, and also in another case if caseSensitive is false and
// one column fits. Errors are faults of class Invalid.
func Parse(raw []byte, s *column.Schema, caseSensitive bool) (*predicate.Tree, error) {
	root, err := decode(raw)
	if err != nil {
		return nil, err
	}
	t, err := binding{s, predicate.NewNames(s, !caseSensitive)}.predicate(root, false)
	if err != nil {
		return nil, fault.About("filter", err)
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	return t, nil
}

func decode(raw []byte) (any, error) {
	switch {
	case len(raw) > MaxBytes:
		return nil, fault.New(fault.Invalid, "filter", "%d bytes of JSON are more than the limit of %d", len(raw), MaxBytes)
	case !utf8.Valid(raw):
		return nil, fault.New(fault.Invalid, "filter", "the JSON is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		return nil, fault.New(fault.Invalid, "filter", "near byte %d the JSON breaks off", d.InputOffset()).WithCause(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fault.New(fault.Invalid, "filter", "more JSON follows the expression at byte %d", d.InputOffset())
	}
	return root, nil
}

type object = map[string]any

type binding struct {
	schema *column.Schema
	names  *predicate.Names
}

// invalid is an error about the part of an expression that a path of keys leads to.
func invalid(where, reason string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, where, reason, args...)
}

// predicate binds an expression, negated if it stands under an odd number of nots. The negation is pushed down here and
// not left to predicate.Not, because what keeps every row also does so under not.
func (b binding) predicate(x any, negated bool) (*predicate.Tree, error) {
	switch x := x.(type) {
	case bool:
		return constant(x != negated), nil
	case object:
		return b.object(x, negated)
	case nil:
		return nil, invalid("", "the expression is null").WithFix("leave it out to keep all rows")
	default:
		return nil, invalid("", "an expression is an object or a boolean")
	}
}

func constant(keep bool) *predicate.Tree {
	if keep {
		return predicate.Always()
	}
	return predicate.Never()
}

func (b binding) object(x object, negated bool) (*predicate.Tree, error) {
	kind, _ := x["type"].(string)
	switch kind {
	case "true", "false":
		return constant((kind == "true") != negated), nil
	case "literal":
		keep, ok := x["value"].(bool)
		if !ok {
			return nil, invalid(kind, "only a boolean literal is an expression")
		}
		return constant(keep != negated), nil
	case "and", "or":
		return b.junction(kind, x, negated)
	case "not":
		child, ok := x["child"]
		if !ok {
			return nil, invalid(kind, "it has no child")
		}
		return b.predicate(child, !negated)
	case "":
		return nil, invalid("", "an expression has no type")
	default:
		return b.test(kind, x, negated)
	}
}

// junction binds and, or. Clients write long ones as deep chains, which are flattened on the way.
func (b binding) junction(kind string, x object, negated bool) (*predicate.Tree, error) {
	var kids []*predicate.Tree
	for stack := []any{x}; len(stack) > 0; {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if o, ok := top.(object); ok && o["type"] == kind {
			left, hasLeft := o["left"]
			right, hasRight := o["right"]
			if !hasLeft || !hasRight {
				return nil, invalid(kind, "it needs left and right")
			}
			stack = append(stack, right, left)
			continue
		}
		t, err := b.predicate(top, negated)
		if err != nil {
			return nil, err
		}
		kids = append(kids, t)
	}
	if (kind == "and") != negated {
		return predicate.All(kids...), nil
	}
	return predicate.Any(kids...), nil
}
