package sqltext

import (
	"strconv"
	"strings"

	"github.com/alecthomas/participle/v2/lexer"

	"github.com/skomerdb/skomer/internal/analysis"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/expression"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/predicate"
)

// bare takes the parentheses off an operand.
func bare(o *operand) *operand {
	for o.Group != nil && len(o.Parts) == 0 && len(o.Group.Kids) == 1 && len(o.Group.Kids[0].Kids) == 1 {
		n := o.Group.Kids[0].Kids[0]
		if len(n.Nots) > 0 || n.Test.Tail != nil {
			break
		}
		o = n.Test.Left
	}
	return o
}

// column is a column, or an expression of one.
func (b *binding) column(o *operand) (c predicate.Column, err error) {
	o = bare(o)
	switch {
	case o.Group != nil && len(o.Parts) > 0: // (column) -> 'path'
		inner := *o
		inner.Parts = nil
		c, err = b.column(&inner)
	case o.Call != nil:
		c, err = b.call(o.Call)
	default:
		c, err = b.named(o)
	}
	for _, p := range o.Parts {
		if err != nil {
			break
		}
		c, err = b.part(c, p)
	}
	return c, err
}

// call is the column that a function of a column makes.
func (b *binding) call(f *call) (c predicate.Column, err error) {
	if err = arity(f); err != nil {
		return c, err
	}
	if functions[f.Name] != 1 {
		return c, at(f.Pos, fault.New(fault.Invalid, strings.ToLower(f.Name), "is a condition, not a column"))
	}
	if c, err = b.column(f.Args[0]); err != nil {
		return c, err
	}
	if f.Name == "TOKENS" {
		return apply(c, expression.Tokens(), f.Pos)
	}
	if c.Type().Kind != column.Map {
		return c, at(f.Pos, fault.New(fault.Invalid, c.Name(), "is a %s; %s is for maps", c.Type(), strings.ToLower(f.Name)))
	}
	side := 0
	if f.Name == "MAP_VALUES" {
		side = 1
	}
	c.Path = append(c.Path[:len(c.Path):len(c.Path)], c.Type().Fields[side])
	return c, nil
}

func arity(f *call) error {
	if n := functions[f.Name]; len(f.Args) != n {
		plural := "s"
		if n == 1 {
			plural = ""
		}
		return at(f.Pos, fault.New(fault.Invalid, strings.ToLower(f.Name), "takes %d argument%s, got %d", n, plural, len(f.Args)))
	}
	return nil
}

// part is the column that a path or key makes of one.
func (b *binding) part(c predicate.Column, p *part) (predicate.Column, error) {
	if p.Key != nil {
		e, err := expression.MapValue(p.Key.Value)
		if err != nil {
			return c, at(p.Pos, err)
		}
		return apply(c, e, p.Pos)
	}
	e, err := expression.JSONPath(p.Path.Value)
	if err != nil {
		return c, at(p.Pos, err)
	}
	return apply(c, e, p.Pos)
}

func apply(c predicate.Column, e expression.Expr, pos lexer.Position) (predicate.Column, error) {
	path, err := e.Of(c.Path)
	if err != nil {
		return c, at(pos, err)
	}
	return predicate.Column{Path: path}, nil
}

func (b *binding) named(o *operand) (predicate.Column, error) {
	if o.Name == nil {
		return predicate.Column{}, at(o.Pos, fault.New(fault.Invalid, "", "a column must stand here").
			WithFix("write the column first, as in price > 5; names that are not plain words go in double quotes"))
	}
	c, err := b.names.Column(o.Name)
	if err != nil {
		return c, at(o.Pos, err)
	}
	return c, nil
}

var literalKinds = map[lexer.TokenType]predicate.LiteralKind{
	number: predicate.NumberLiteral, text: predicate.TextLiteral, hexBytes: predicate.BytesLiteral,
	date: predicate.DateLiteral, clock: predicate.TimeLiteral, timestamp: predicate.TimestampLiteral,
}

func (b *binding) literal(o *operand) (predicate.Literal, error) {
	o = bare(o)
	switch {
	case len(o.Parts) > 0 || o.Literal == nil && names(o):
		return predicate.Literal{}, at(o.Pos, fault.New(fault.Invalid, strings.Join(o.Name, "."), "a literal must stand here, not a column").
			WithFix("put text in single quotes"))
	case o.Literal == nil:
		return predicate.Literal{}, at(o.Pos, fault.New(fault.Invalid, "", "a literal must stand here"))
	}
	return literalOf(o.Literal.Token), nil
}

func literalOf(token lexer.Token) predicate.Literal {
	if token.Type != keyword {
		return predicate.Literal{Kind: literalKinds[token.Type], Text: token.Value}
	}
	if token.Value == "NULL" {
		return predicate.Literal{Kind: predicate.NullLiteral}
	}
	return predicate.Literal{Kind: predicate.BoolLiteral, Text: strings.ToLower(token.Value)}
}

// operators are the comparisons: what they ask, negated or not, and the operator with the sides exchanged.
var operators = map[string]struct {
	op      predicate.Op
	negated bool
	flipped string
}{
	"=": {predicate.Equal, false, "="}, "==": {predicate.Equal, false, "=="},
	"!=": {predicate.Equal, true, "!="}, "<>": {predicate.Equal, true, "<>"},
	"<": {predicate.Less, false, ">"}, ">": {predicate.Greater, false, "<"},
	"<=": {predicate.LessEqual, false, ">="}, ">=": {predicate.GreaterEqual, false, "<="},
}

func (b *binding) comparison(left *operand, t *tail) (*predicate.Tree, error) {
	left, right, sign := bare(left), bare(t.Compare.Right), t.Compare.Op
	switch {
	case names(left) && names(right):
		return nil, at(right.Pos, fault.New(fault.Invalid, strings.Join(right.Name, "."), "two columns cannot be compared").
			WithFix("compare each with a literal; text goes in single quotes"))
	case left.Literal != nil && right.Literal != nil:
		return b.constant(left, right, sign)
	case !names(left):
		left, right, sign = right, left, operators[sign].flipped
	}
	c, err := b.column(left)
	if err != nil {
		return nil, err
	}
	x, err := b.literal(right)
	if err != nil {
		return nil, err
	}
	return signed(operators[sign].negated)(b.bind(right, c, operators[sign].op, x))
}

// names reports whether an operand is a column or an expression of one.
func names(o *operand) bool { return o.Name != nil || o.Call != nil || len(o.Parts) > 0 }

// constant compares two literals: integers, or texts. Programs write 1 = 1 for "all rows".
func (b *binding) constant(left, right *operand, sign string) (*predicate.Tree, error) {
	x, y := left.Literal.Token, right.Literal.Token
	var values [2]column.Value
	for i, t := range []lexer.Token{x, y} {
		n, err := strconv.ParseInt(t.Value, 10, 64)
		switch {
		case t.Type == number && err == nil:
			values[i] = column.IntValue(column.Long, n)
		case t.Type == text:
			values[i] = column.StringValue(t.Value)
		}
	}
	if values[0].Kind != values[1].Kind || values[0].Kind == column.Unknown {
		return nil, at(left.Pos, fault.New(fault.Invalid, "", "of two literals only integers or texts can be compared").
			WithFix("compare a column with a literal"))
	}
	leaf := predicate.Leaf{Op: operators[sign].op, Values: values[1:]}
	if leaf.Matches(values[0], false) != operators[sign].negated {
		return predicate.Always(), nil
	}
	return predicate.Never(), nil
}

// matchers are the operators of regular expressions.
var matchers = map[string]*struct{ anyCase, negated bool }{
	"~": {}, "~*": {anyCase: true}, "!~": {negated: true}, "!~*": {anyCase: true, negated: true},
}

// match finds a regular expression, which stands on the right, in a column.
func (b *binding) match(left *operand, t *tail) (*predicate.Tree, error) {
	c, err := b.column(left)
	if err != nil {
		return nil, err
	}
	x, err := b.literal(t.Compare.Right)
	switch {
	case err != nil:
		return nil, err
	case x.Kind == predicate.NullLiteral:
		return b.bind(t.Compare.Right, c, predicate.Equal, x)
	case x.Kind != predicate.TextLiteral:
		return nil, at(t.Compare.Right.Pos, fault.New(fault.Invalid, "", "a regular expression is a text in single quotes"))
	}
	how := matchers[t.Compare.Op]
	tree, err := predicate.BindMatch(predicate.SQL, c, x.Text, how.anyCase)
	if err != nil {
		return nil, at(t.Compare.Right.Pos, err)
	}
	return signed(how.negated)(tree, nil)
}

func (b *binding) equalsAny(left *operand, t *tail) (*predicate.Tree, error) {
	if op := operators[t.Compare.Op]; op.op != predicate.Equal || op.negated {
		return nil, at(t.Pos, fault.New(fault.Invalid, "", "only = can stand before ANY"))
	}
	return b.contains(t.Compare.Any, left)
}

// contains asks a list for a value, or a map's keys or values, which are named map.key and map.value.
func (b *binding) contains(list, value *operand) (*predicate.Tree, error) {
	c, err := b.column(list)
	if err != nil {
		return nil, err
	}
	x, err := b.literal(value)
	if err != nil {
		return nil, err
	}
	switch t := c.Type(); t.Kind {
	case column.List:
		c.Path = append(c.Path[:len(c.Path):len(c.Path)], t.Fields[0])
	case column.Map:
		return nil, at(list.Pos, fault.New(fault.Invalid, c.Name(), "a map has keys and values").
			WithFix("ask %s.key or %s.value", c.Name(), c.Name()))
	}
	return b.bind(value, c, predicate.Contains, x)
}

// containsToken asks a text for every word of another one.
func (b *binding) containsToken(f *call) (*predicate.Tree, error) {
	c, err := b.column(f.Args[0])
	if err != nil {
		return nil, err
	}
	x, err := b.literal(f.Args[1])
	if err != nil {
		return nil, err
	}
	if c, err = apply(c, expression.Tokens(), f.Pos); err != nil {
		return nil, err
	}
	c.Path = append(c.Path, c.Type().Fields[0])
	switch x.Kind {
	case predicate.NullLiteral:
		return b.bind(f.Args[1], c, predicate.Contains, x)
	case predicate.TextLiteral:
	default:
		return nil, at(f.Args[1].Pos, fault.New(fault.Invalid, "", "the words to look for are a text in single quotes"))
	}
	var trees []*predicate.Tree
	for _, word := range analysis.Words(x.Text) {
		t, err := b.bind(f.Args[1], c, predicate.Contains, predicate.Literal{Kind: predicate.TextLiteral, Text: word})
		if err != nil {
			return nil, err
		}
		trees = append(trees, t)
	}
	if len(trees) == 0 {
		return nil, at(f.Args[1].Pos, fault.New(fault.Invalid, "", "'%s' holds no word", x.Text).WithFix("signs are no words; use LIKE to look for them"))
	}
	if b.tests += len(trees) - 1; b.tests > predicate.MaxLeaves {
		return nil, predicate.TooManyLeaves()
	}
	return predicate.All(trees...), nil
}
