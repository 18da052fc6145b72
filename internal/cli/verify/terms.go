package verify

import (
	"math/rand/v2"
	"strings"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/expression"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/predicate"
)

// term is something that a filter can test: a column, a field of a struct, what an expression makes of a column, or the elements of a list.
type term struct {
	path column.Path
	sample
}

// target is an index of the table, or none of one term.
type target struct {
	declaration kinds.Declaration
	terms       []*term
	together    reservoir[[]skomer.Value] // values of one row, where there are several terms
}

// termOf is the term at a path; nil where a filter can say nothing of it but whether it is null.
func termOf(path column.Path) *term {
	kind := path.Leaf().Type.Kind
	if !usable(kind) || path.Repeated() && !index.OfList(path) {
		return nil
	}
	base := path.Base()
	t := &term{path: path, sample: sample{name: dotted(base), kind: kind}}
	if path.Derived() {
		e := path[len(base)].Expr
		t.name = expression.Describe(e, t.name)
		if path.Repeated() {
			t.name, t.form = dotted(base), words
		}
	} else if path.Repeated() {
		t.form = elements
		if leaf := len(path) - 1; path[leaf-1].Type.Kind == column.List {
			t.name = dotted(path[:leaf])
		}
	}
	return t
}

// termsOf is every term of a schema.
func termsOf(schema *column.Schema) (out []*term) {
	schema.Walk(func(p column.Path) bool {
		if t := termOf(append(column.Path(nil), p...)); t != nil {
			out = append(out, t)
		}
		return true
	})
	return out
}

// targetsOf is the indexes that can be asked, each with its terms: those of the table's columns, or of its own.
func targetsOf(schema *column.Schema, indexes []skomer.Index) (out []*target) {
	for _, x := range indexes {
		d, err := kinds.ParseExpr(x.Expr, schema)
		if err != nil || x.Problem != "" || x.Paused != "" {
			continue
		}
		t := &target{declaration: d}
		for _, c := range d.Columns {
			if one := termOf(c); one != nil {
				t.terms = append(t.terms, one)
			}
		}
		if len(t.terms) == len(d.Columns) {
			out = append(out, t)
		}
	}
	return out
}

// take offers the values of a batch's rows to the target's terms. cols are the columns of the table.
func (t *target) take(cols map[int]*column.Vector, rows int, rng *rand.Rand) error {
	vectors := make([]*column.Vector, len(t.terms))
	for i, one := range t.terms {
		v, err := one.vector(cols)
		if err != nil {
			return err
		}
		vectors[i] = v
		one.take(v, rows, rng)
	}
	if len(t.terms) < 2 {
		return nil
	}
	for row := range rows {
		var values []skomer.Value
		for i, one := range t.terms {
			if v, ok := vectors[i].Value(row); ok && one.writable(v) {
				values = append(values, v)
			}
		}
		if len(values) == len(t.terms) {
			t.together.add(values, rng)
		}
	}
	return nil
}

// vector is the term's values, of lists the lists; nil where the rows have none.
func (t *term) vector(cols map[int]*column.Vector) (*column.Vector, error) {
	read := predicate.Column{Path: t.path}.Read()
	v := cols[read[0].ID]
	if v == nil {
		return nil, nil
	}
	if v = v.Descend(read[1:]); v == nil || !t.path.Derived() {
		return v, nil
	}
	return expression.Apply(t.path, v)
}

// take offers values, or of lists their elements, to the sample.
func (t *term) take(v *column.Vector, rows int, rng *rand.Rand) {
	if v == nil || v.Type.Kind == column.Unknown {
		return
	}
	at, ofList := predicate.Column{Path: t.path}.Around()
	if !ofList {
		for row := range rows {
			if x, ok := v.Value(row); ok {
				t.add(x, rng)
			}
		}
		return
	}
	lists := v
	if v.Dict != nil {
		lists = v.Dict
	}
	side := 0
	if around := t.path[at].Type; around.Kind == column.Map && around.Fields[1].ID == t.path[at+1].ID {
		side = 1
	}
	values := lists.Kids[side].Descend(t.path[at+2:])
	if values == nil || values.Type.Kind == column.Unknown {
		return
	}
	for row := range rows {
		i := row
		if v.Null(row) {
			continue
		}
		if v.Dict != nil {
			if i = int(v.Idx[row]); lists.Null(i) {
				continue
			}
		}
		for e := lists.Off[i]; e < lists.Off[i+1]; e++ {
			if x, ok := values.Value(int(e)); ok {
				t.add(x, rng)
			}
		}
	}
}

// dotted is a path as filters name it.
func dotted(path column.Path) string {
	parts := make([]string, len(path))
	for i, f := range path {
		parts[i] = ident(f.Name)
	}
	return strings.Join(parts, ".")
}

// ident is a column's name in SQL text.
func ident(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func usable(k column.Kind) bool {
	switch k {
	case column.Unknown, column.Struct, column.List, column.Map, column.Variant, column.Geometry, column.Geography:
		return false
	default:
		return true
	}
}
