package kinds

import (
	"strconv"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/expression"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
)

// Columns is the columns of a definition in a schema: field ids, and with an expression among the parameters the one column that it is
// made of. It is false where a column is gone, and where this build cannot make the expression's values as they were declared.
func Columns(schema *column.Schema, ids []int, params map[string]string) ([]column.Path, bool) {
	if text, ok := params[index.ExprParam]; ok {
		path := exprColumn(schema, text)
		return []column.Path{path}, path != nil && len(ids) == 1 && path.Leaf().ID == ids[0]
	}
	out := make([]column.Path, 0, len(ids))
	for _, id := range ids {
		path := schema.ByID(id)
		if path == nil {
			return nil, false
		}
		out = append(out, append(column.Path(nil), path...))
	}
	return out, true
}

// Declare is the declaration of a kind on columns, as ParseExpr would read it.
func Declare(e Entry, columns ...column.Path) (Declaration, error) {
	d := Declaration{Entry: e, Params: index.Params{}}
	for _, c := range columns {
		d.add(c)
	}
	return d, d.Kind.Check(d.Columns, d.Params)
}

func (d *Declaration) add(path column.Path) {
	d.Columns = append(d.Columns, path)
	if path.Derived() {
		d.Params[index.ExprParam] = exprParam(path)
	}
}

// exprParam is the parameter of a definition on an expression: the base's field id, a space, and the expression's text.
func exprParam(path column.Path) string {
	return strconv.Itoa(path.Base().Leaf().ID) + " " + path[len(path.Base())].Expr
}

// Typed tells whether a definition holds words of whoever declared it, which may be values of the table: a key of a map, a path in a
// JSON text.
func Typed(params map[string]string) bool {
	param, ok := params[index.ExprParam]
	_, text, _ := strings.Cut(param, " ")
	return ok && expression.Typed(text)
}

func exprColumn(schema *column.Schema, param string) column.Path {
	id, text, _ := strings.Cut(param, " ")
	n, err := strconv.Atoi(id)
	e, err2 := expression.Parse(text)
	base := schema.ByID(n)
	if err != nil || err2 != nil || base == nil {
		return nil
	}
	path, err := values(e, base)
	if err != nil {
		return nil
	}
	return path
}

// values is the path to what an expression makes of a column; of a list to its element.
func values(e expression.Expr, base column.Path) (column.Path, error) {
	path, err := e.Of(base)
	if err == nil && path.Leaf().Type.Kind == column.List {
		path = append(path, path.Leaf().Type.Fields[0])
	}
	return path, err
}

// columnText is a column of the declaration as people write it.
func (d Declaration) columnText(c column.Path) string {
	base := quoted(c.Base().Name(), isNameRune)
	param, ok := d.Params[index.ExprParam]
	if !ok {
		return base
	}
	_, text, _ := strings.Cut(param, " ")
	return expression.Describe(text, base)
}

// columnExpr is a column as it is declared, with what is made of it.
type columnExpr struct {
	name     string
	function string // "", tokens, map_keys or map_values
	parts    []part
}

// part is a path in a JSON text or a key of a map.
type part struct {
	text string
	json bool
}

const expressions = "columns, tokens(column), column -> '$.path', column['key'], map_keys(column), map_values(column)"

// column reads a column or an expression of one.
func (s *scanner) column() (c columnExpr) {
	word := s.more() && s.text[s.at] != '"'
	c.name = s.token(isNameRune, `"`)
	if s.err == nil && c.name == "" {
		s.fail(quoteNames, "expected a column name")
	}
	if word && s.take('(') {
		c.function = strings.ToLower(c.name)
		c.name = s.token(isNameRune, `"`)
		if s.err == nil && c.name == "" {
			s.fail(quoteNames, "expected a column name")
		}
		if !s.take(')') {
			s.fail("indexes are on "+expressions, "expected ) after column %s", c.name)
		}
	}
	for s.err == nil {
		switch {
		case s.more() && strings.HasPrefix(s.text[s.at:], "->"):
			s.at += 2
			c.parts = append(c.parts, part{s.text1(), true})
		case s.take('['):
			c.parts = append(c.parts, part{s.text1(), false})
			if !s.take(']') {
				s.fail("write column['key']", "expected ] after the key")
			}
		default:
			return c
		}
	}
	return c
}

// text1 reads a text in single quotes.
func (s *scanner) text1() string {
	if !s.more() || s.text[s.at] != '\'' {
		s.fail("write column -> '$.path' or column['key']; of maps with keys that are no strings index map_keys(column) or map_values(column)", "expected a text in single quotes")
		return ""
	}
	return s.token(isValueRune, "'")
}

// path finds the column and applies what is made of it.
func (c *columnExpr) path(schema *column.Schema) (column.Path, error) {
	if c.function == "" && len(c.parts) == 0 {
		return columnOf(schema, c.name)
	}
	path, err := columnOf(schema, c.name)
	if err != nil {
		return nil, err
	}
	if path, err = c.applied(path); err != nil {
		return nil, err
	}
	for _, p := range c.parts {
		var e expression.Expr
		if p.json {
			e, err = expression.JSONPath(p.text)
		} else {
			e, err = expression.MapValue(p.text)
		}
		if err != nil {
			return nil, err
		}
		if path, err = values(e, path); err != nil {
			return nil, err
		}
	}
	return path, nil
}

// applied is the path to what a function makes of a column.
func (c *columnExpr) applied(path column.Path) (column.Path, error) {
	kind := path.Leaf().Type.Kind
	switch {
	case c.function == "":
		return path, nil
	case c.function == "tokens":
		return values(expression.Tokens(), path)
	case c.function != "map_keys" && c.function != "map_values":
		return nil, fault.New(fault.Invalid, c.function, "there is no function of this name").WithFix("indexes are on %s", expressions)
	case kind != column.Map:
		return nil, fault.New(fault.Invalid, path.Name(), "is a %s; %s is for maps", path.Leaf().Type, c.function)
	case c.function == "map_keys":
		return append(path[:len(path):len(path)], path.Leaf().Type.Fields[0]), nil
	default:
		return append(path[:len(path):len(path)], path.Leaf().Type.Fields[1]), nil
	}
}

// shortNamed finds a field of structs in a list by its name without the element: items.sku for items.element.sku.
func shortNamed(schema *column.Schema, name string) (found column.Path) {
	several := false
	schema.Walk(func(p column.Path) bool {
		var parts []string
		for i, f := range p {
			if i == 0 || i+1 == len(p) || p[i-1].Type.Kind != column.List {
				parts = append(parts, f.Name)
			}
		}
		if len(parts) < len(p) && strings.EqualFold(strings.Join(parts, "."), name) {
			several = several || found != nil
			found = append(column.Path(nil), p...)
		}
		return true
	})
	if several {
		return nil
	}
	return found
}
