package sqltext

import (
	"strconv"
	"strings"

	"github.com/alecthomas/participle/v2/lexer"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/predicate"
)

// bare takes the parentheses off an operand.
func bare(o *operand) *operand {
	for o.Group != nil && len(o.Group.Kids) == 1 && len(o.Group.Kids[0].Kids) == 1 {
		n := o.Group.Kids[0].Kids[0]
		if len(n.Nots) > 0 || n.Test.Tail != nil {
			break
		}
		o = n.Test.Left
	}
	return o
}

func (b *binding) column(o *operand) (predicate.Column, error) {
	o = bare(o)
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
	case o.Literal == nil && o.Name != nil:
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
	case left.Name != nil && right.Name != nil:
		return nil, at(right.Pos, fault.New(fault.Invalid, strings.Join(right.Name, "."), "two columns cannot be compared").
			WithFix("compare each with a literal; text goes in single quotes"))
	case left.Literal != nil && right.Literal != nil:
		return b.constant(left, right, sign)
	case left.Name == nil:
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
