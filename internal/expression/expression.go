// Package expression answers: which values does an expression make of a column's?
//
// An expression becomes a field at the end of a column's path, with an identity of its own (a negative field id, a digest of the base
// field and the expression), so that an index of the column never answers for an expression of it, nor the reverse. The text of an expression
// names everything that its values depend on, the analyzer's version too. Predicates and index builds apply the same code.
package expression

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/analysis"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// MaxText is the longest expression in bytes.
const MaxText = 1 << 10

const (
	kindTokens = "tokens"
	kindJSON   = "json"
	kindKey    = "key"
)

// Expr is an expression, apart from its column. Its text is the kind, a space and the argument.
type Expr struct {
	kind, arg string
	path      []step // of JSON
}

// Tokens is tokens(column): the words of a text, a list of strings.
func Tokens() Expr { return Expr{kind: kindTokens, arg: analysis.Standard} }

// JSONPath is column -> 'path': the value at a path of a JSON text, as text.
func JSONPath(path string) (Expr, error) {
	steps, err := parsePath(path)
	if err != nil {
		return Expr{}, err
	}
	e := Expr{kind: kindJSON, arg: formatPath(steps), path: steps}
	if len(e.arg) > MaxText { // quotes are doubled
		return Expr{}, tooLong()
	}
	return e, nil
}

// MapValue is column['key']: the value of a key of a map.
func MapValue(key string) (Expr, error) {
	if len(key) > MaxText || !utf8.ValidString(key) {
		return Expr{}, fault.New(fault.Invalid, "map key", "is longer than %d bytes or not UTF-8", MaxText)
	}
	return Expr{kind: kindKey, arg: key}, nil
}

// Parse reads the text of an expression that this build can apply. Another version of an analyzer is an Unsupported fault.
func Parse(text string) (Expr, error) {
	kind, arg, _ := strings.Cut(text, " ")
	switch kind {
	case kindTokens:
		if arg != analysis.Standard {
			return Expr{}, fault.New(fault.Unsupported, "analyzer "+arg, "is not the one of this build, %s", analysis.Standard).
				WithFix("declare the index again: its words are then cut anew")
		}
		return Tokens(), nil
	case kindJSON:
		return JSONPath(arg)
	case kindKey:
		return MapValue(arg)
	default:
		return Expr{}, fault.New(fault.Unsupported, "expression "+kind, "is not known to this build")
	}
}

// String is the text that Parse reads. Equal expressions have equal texts.
func (e Expr) String() string { return e.kind + " " + e.arg }

// SQL is the expression of a column as people write it.
func (e Expr) SQL(column string) string {
	quoted := "'" + strings.ReplaceAll(e.arg, "'", "''") + "'"
	switch e.kind {
	case kindTokens:
		return "tokens(" + column + ")"
	case kindJSON:
		return column + " -> " + quoted
	default:
		return column + "[" + quoted + "]"
	}
}

// Describe is SQL of a text that this build may not be able to apply.
func Describe(text, column string) string {
	kind, arg, _ := strings.Cut(text, " ")
	return Expr{kind: kind, arg: arg}.SQL(column)
}

// Typed tells whether the text of an expression holds words of whoever declared it, a key or a path, and not its kind alone.
func Typed(text string) bool {
	kind, _, _ := strings.Cut(text, " ")
	return kind != kindTokens
}

// Of is the path to the expression's values, or why it cannot be applied to the column. That of a list ends at the list.
func (e Expr) Of(base column.Path) (column.Path, error) {
	if base.Repeated() || base.Derived() {
		return nil, fault.New(fault.Invalid, base.Name(), "%s needs one value a row", e.SQL("…"))
	}
	leaf := base.Leaf()
	f := column.Field{ID: identity(leaf.ID, e.String()), Name: e.SQL(base.Name()), Expr: e.String()}
	switch {
	case e.kind == kindKey && leaf.Type.Kind == column.Map && leaf.Type.Fields[0].Type.Kind == column.String:
		f.Type = leaf.Type.Fields[1].Type
	case e.kind == kindKey:
		return nil, fault.New(fault.Invalid, base.Name(), "is a %s; ['key'] is for maps whose keys are strings", leaf.Type)
	case leaf.Type.Kind != column.String:
		return nil, fault.New(fault.Invalid, base.Name(), "is a %s; %s is for strings", leaf.Type, e.SQL("…"))
	case e.kind == kindTokens:
		f.Type = column.Type{Kind: column.List, Fields: []column.Field{{
			ID: identity(f.ID, "element"), Name: "element", Type: column.Of(column.String), Required: true,
		}}}
	default:
		f.Type = column.Of(column.String)
	}
	if f.Type.Kind.Nested() && e.kind != kindTokens {
		return nil, fault.New(fault.Unsupported, base.Name(), "its values are of type %s; ['key'] is for maps of plain values", f.Type)
	}
	return append(base[:len(base):len(base)], f), nil
}

// identity is the field id of an expression of a field: negative, 62 bits of a SHA-256.
func identity(base int, text string) int {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", base, text))
	return -1 - int(binary.BigEndian.Uint64(sum[:])>>2)
}

// Apply is the values of a derived path's expression from the vector of its base.
func Apply(path column.Path, base *column.Vector) (*column.Vector, error) {
	f := path[len(path.Base())]
	e, err := Parse(f.Expr)
	if err != nil {
		return nil, err
	}
	return e.apply(f.Type, base)
}

// apply makes the values once for each value of a dictionary.
func (e Expr) apply(t column.Type, base *column.Vector) (*column.Vector, error) {
	switch {
	case base.Type.Kind == column.Unknown:
		return &column.Vector{Type: column.Of(column.Unknown), Len: base.Len}, nil
	case base.Dict != nil:
		values, err := e.apply(t, base.Dict)
		if err != nil {
			return nil, err
		}
		return &column.Vector{Type: t, Len: base.Len, Valid: validOf(base, values), Dict: values, Idx: base.Idx}, nil
	case e.kind == kindKey:
		return lookUp(t, base, e.arg)
	case base.Type.Kind != column.String:
		return nil, fault.New(fault.Unsupported, base.Type.String(), "vector does not hold the texts of %s", e.SQL("…"))
	case e.kind == kindTokens:
		return tokens(t, base), nil
	default:
		return atPath(base, e.path), nil
	}
}

// validOf is the validity of a vector whose dictionary became values.
func validOf(base, values *column.Vector) []uint64 {
	if values.Valid == nil {
		return base.Valid
	}
	out := make([]uint64, (base.Len+63)/64)
	for i := range base.Len {
		if !base.Null(i) && !values.Null(int(base.Idx[i])) {
			out[i>>6] |= 1 << (i & 63)
		}
	}
	return out
}

// tokens is the words of every text.
func tokens(t column.Type, base *column.Vector) *column.Vector {
	out := &column.Vector{Type: t, Len: base.Len, Valid: base.Valid, Off: make([]uint32, 1, base.Len+1)}
	words := &column.Vector{Type: t.Fields[0].Type, Off: []uint32{0}}
	for i := range base.Len {
		if !base.Null(i) {
			analysis.EachWord(base.Raw(i), func(w analysis.Word) {
				words.Bytes = append(words.Bytes, w.Text...)
				words.Off = append(words.Off, uint32(len(words.Bytes)))
			})
		}
		out.Off = append(out.Off, uint32(len(words.Off)-1))
	}
	words.Len = len(words.Off) - 1
	out.Kids = []*column.Vector{words}
	return out
}

// lookUp is the value of a key in every map; of repeated keys the last one counts.
func lookUp(t column.Type, base *column.Vector, key string) (*column.Vector, error) {
	if base.Type.Kind != column.Map || len(base.Kids) != 2 {
		return nil, fault.New(fault.Unsupported, base.Type.String(), "vector does not hold maps")
	}
	keys, values := base.Kids[0], base.Kids[1]
	out := column.NewBuilder(t)
	for i := range base.Len {
		found := -1
		if !base.Null(i) && keys.Type.Kind == column.String {
			for k := base.Off[i]; k < base.Off[i+1]; k++ {
				if !keys.Null(int(k)) && string(keys.Raw(int(k))) == key {
					found = int(k)
				}
			}
		}
		if found < 0 {
			out.AppendNull()
		} else if v, ok := values.Value(found); ok {
			out.Append(v)
		} else {
			out.AppendNull()
		}
	}
	return out.Finish(), nil
}
