// Package sqltext answers: which predicate does a filter written as SQL text mean?
//
// It has the grammar of docs/predicates.md, resolves names in a schema and says where a text is wrong. What a test means
// is the business of package predicate.
package sqltext

import (
	"errors"
	"slices"
	"strings"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Parse binds a filter text to a schema. Errors are faults of class Invalid that name line and column.
func Parse(src string, s *column.Schema) (*predicate.Tree, error) {
	if strings.TrimSpace(src) == "" {
		return nil, fault.New(fault.Invalid, "filter", "the text is empty").WithFix("leave the filter out to keep all rows")
	}
	ast, err := parser.ParseString("", src)
	if err != nil {
		return nil, syntaxError(src, err)
	}
	t, err := (&binding{names: predicate.NewNames(s, true)}).disjunction(ast, false)
	if err != nil {
		return nil, err
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	return t, nil
}

func syntaxError(src string, err error) error {
	var syntax *participle.UnexpectedTokenError
	if !errors.As(err, &syntax) {
		return fault.Wrap(fault.Invalid, "", err)
	}
	token := syntax.Unexpected
	reason, fix := "unexpected "+source(src, token.Pos.Offset), "a condition is a column, an operator and a literal; AND, OR, NOT and parentheses join them"
	before := strings.TrimSpace(src[:token.Pos.Offset])
	switch {
	case token.EOF():
		reason = "the text ends too early"
	case strings.HasPrefix(src[token.Pos.Offset:], ")") && strings.HasSuffix(before, "("):
		fix = "write at least one value between the parentheses"
	case strings.HasSuffix(before, "["):
		fix = "keys stand in single quotes, as in column['key']; of maps with keys that are no strings ask contains(map_keys(column), …) or contains(map_values(column), …)"
	}
	return at(token.Pos, fault.New(fault.Invalid, "", "%s", reason).WithFix("%s", fix))
}

// source quotes the text at an offset up to the next space.
func source(src string, offset int) string {
	word, _, _ := strings.Cut(src[offset:], " ")
	const most = 30
	if len(word) > most {
		word = strings.ToValidUTF8(word[:most], "") + "…"
	}
	return "`" + word + "`"
}

type binding struct {
	names *predicate.Names
	tests int
}

// disjunction binds an expression, negated if it stands under an odd number of NOTs: the negation is carried down, so that
// a text costs the same however often it says NOT.
func (b *binding) disjunction(d *disjunction, negated bool) (*predicate.Tree, error) {
	kids := make([]*predicate.Tree, len(d.Kids))
	for i, k := range d.Kids {
		t, err := b.conjunction(k, negated)
		if err != nil {
			return nil, err
		}
		kids[i] = t
	}
	if negated {
		return predicate.All(kids...), nil
	}
	return predicate.Any(kids...), nil
}

func (b *binding) conjunction(c *conjunction, negated bool) (*predicate.Tree, error) {
	kids := make([]*predicate.Tree, len(c.Kids))
	for i, k := range c.Kids {
		t, err := b.negation(k, negated)
		if err != nil {
			return nil, err
		}
		kids[i] = t
	}
	if negated {
		return predicate.Any(kids...), nil
	}
	return predicate.All(kids...), nil
}

func (b *binding) negation(n *negation, negated bool) (*predicate.Tree, error) {
	negated = negated != (len(n.Nots)%2 == 1)
	if n.Test.Tail == nil && n.Test.Left.Group != nil {
		return b.disjunction(n.Test.Left.Group, negated)
	}
	if b.tests++; b.tests > predicate.MaxLeaves {
		return nil, predicate.TooManyLeaves()
	}
	return signed(negated)(b.test(n.Test))
}

func (b *binding) test(t *test) (*predicate.Tree, error) {
	switch tail := t.Tail; {
	case tail == nil:
		return b.condition(t.Left)
	case tail.Compare != nil && tail.Compare.Any != nil:
		return b.equalsAny(t.Left, tail)
	case tail.Compare != nil && matchers[tail.Compare.Op] != nil:
		return b.match(t.Left, tail)
	case tail.Compare != nil:
		return b.comparison(t.Left, tail)
	case tail.Is != nil:
		return b.is(t.Left, tail.Is)
	case tail.Set.Like != nil:
		return signed(tail.Set.Not)(b.like(t.Left, tail.Set))
	case tail.Set.Low != nil:
		return signed(tail.Set.Not)(b.between(t.Left, tail.Set))
	default:
		return signed(tail.Set.Not)(b.in(t.Left, tail.Set))
	}
}

func signed(not bool) func(*predicate.Tree, error) (*predicate.Tree, error) {
	return func(t *predicate.Tree, err error) (*predicate.Tree, error) {
		if err != nil || !not {
			return t, err
		}
		return predicate.Not(t), nil
	}
}

// condition is an operand without parentheses that stands alone.
func (b *binding) condition(o *operand) (*predicate.Tree, error) {
	switch {
	case o.Call != nil && len(o.Parts) == 0 && functions[o.Call.Name] == 2:
		if err := arity(o.Call); err != nil {
			return nil, err
		}
		if o.Call.Name == "CONTAINS_TOKEN" {
			return b.containsToken(o.Call)
		}
		return b.contains(o.Call.Args[0], o.Call.Args[1])
	case o.Literal != nil && len(o.Parts) == 0:
		switch o.Literal.Token.Value {
		case "TRUE":
			return predicate.Always(), nil
		case "FALSE":
			return predicate.Never(), nil
		}
		return nil, at(o.Pos, fault.New(fault.Invalid, "", "a literal alone is not a condition").WithFix("compare it with a column"))
	}
	c, err := b.column(o)
	if err != nil {
		return nil, err
	}
	if c.Type().Kind != column.Bool {
		return nil, at(o.Pos, fault.New(fault.Invalid, c.Name(), "the column is a %s, not a condition", c.Type()).
			WithFix("compare it with a literal, as in %s IS NOT NULL", c.Name()))
	}
	return b.bind(o, c, predicate.Equal, predicate.Literal{Kind: predicate.BoolLiteral, Text: "true"})
}

func (b *binding) bind(o *operand, c predicate.Column, op predicate.Op, literals ...predicate.Literal) (*predicate.Tree, error) {
	t, err := predicate.Bind(predicate.SQL, c, op, literals...)
	if err != nil {
		return nil, at(o.Pos, err)
	}
	return t, nil
}

func (b *binding) is(left *operand, what *is) (*predicate.Tree, error) {
	c, err := b.column(left)
	if err != nil {
		return nil, err
	}
	op := predicate.IsNull
	if what.What == "NAN" {
		op = predicate.IsNaN
	}
	return signed(what.Not)(b.bind(left, c, op))
}

func (b *binding) between(left *operand, s *set) (*predicate.Tree, error) {
	c, err := b.column(left)
	if err != nil {
		return nil, err
	}
	var bounds [2]*predicate.Tree
	for i, o := range []*operand{s.Low, s.High} {
		x, err := b.literal(o)
		if err != nil {
			return nil, err
		}
		op := []predicate.Op{predicate.GreaterEqual, predicate.LessEqual}[i]
		if bounds[i], err = b.bind(o, c, op, x); err != nil {
			return nil, err
		}
	}
	return predicate.All(bounds[:]...), nil
}

func (b *binding) in(left *operand, s *set) (*predicate.Tree, error) {
	c, err := b.column(left)
	if err != nil {
		return nil, err
	}
	tokens := slices.DeleteFunc(s.In, func(t lexer.Token) bool { return t.Type == punct })
	literals := make([]predicate.Literal, len(tokens))
	for i, token := range tokens {
		literals[i] = literalOf(token)
	}
	if t, err := predicate.Bind(predicate.SQL, c, predicate.In, literals...); err == nil {
		return t, nil
	}
	// Bound again one by one, to find the literal that is wrong.
	for i, token := range tokens {
		if _, err := predicate.Bind(predicate.SQL, c, predicate.Equal, literals[i]); err != nil {
			return nil, at(token.Pos, err)
		}
	}
	return b.bind(left, c, predicate.In, literals...)
}

func (b *binding) like(left *operand, s *set) (*predicate.Tree, error) {
	c, err := b.column(left)
	if err != nil {
		return nil, err
	}
	pattern, err := b.literal(s.Like)
	if err != nil {
		return nil, err
	}
	if pattern.Kind == predicate.NullLiteral {
		return b.bind(s.Like, c, predicate.Equal, pattern)
	}
	if pattern.Kind != predicate.TextLiteral {
		return nil, at(s.Like.Pos, fault.New(fault.Invalid, "", "the pattern of LIKE must be a text in single quotes"))
	}
	escape, err := b.escape(s.Escape)
	if err != nil {
		return nil, err
	}
	bind := predicate.BindLike
	if s.AnyCase {
		bind = predicate.BindILike
	}
	t, err := bind(predicate.SQL, c, pattern.Text, escape)
	if err != nil {
		return nil, at(s.Like.Pos, err)
	}
	return t, nil
}

func (b *binding) escape(o *operand) (rune, error) {
	if o == nil {
		return 0, nil
	}
	x, err := b.literal(o)
	if err != nil {
		return 0, err
	}
	runes := []rune(x.Text)
	switch {
	case x.Kind != predicate.TextLiteral || len(runes) > 1:
		return 0, at(o.Pos, fault.New(fault.Invalid, "", "ESCAPE takes a text of one character"))
	case len(runes) == 0:
		return 0, nil
	default:
		return runes[0], nil
	}
}
