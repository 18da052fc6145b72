package predicate

import (
	"slices"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// Bind makes the tree of one test of column c: IsNull and IsNaN without literals, a comparison, StartsWith or Contains
// with one, In with any number.
//
// A literal becomes a value of the column's own type without a change of meaning. What lies between two values or
// beyond all of them becomes the equivalent test: on an int column x < 3.5 is x <= 3, x < 1e30 is x <= 2147483647, and
// x = 3.5 is In without values, false for every value. Literals of float columns are rounded to the column's width.
// A NULL literal is never equal to, less or greater than anything, nor the contrary; of an IN list it leaves the other
// values, but makes the negation pass nothing.
func Bind(d Dialect, c Column, op Op, literals ...Literal) (*Tree, error) {
	b := binder{column: c, dialect: d}
	leaf := Leaf{Column: c, Op: op, Dialect: d}
	switch op {
	case IsNull:
		if c.Path.Repeated() {
			return nil, repeated(c)
		}
		return Of(leaf), nil
	case IsNaN:
		if !c.Type().Kind.Floating() {
			return nil, fault.New(fault.Invalid, c.Name(), "the column is a %s, which is never NaN", c.Type())
		}
	case StartsWith:
		if c.Type().Kind != column.String {
			return nil, notString(c)
		}
	case Contains:
		return b.contains(leaf, literals[0])
	}
	if c.Path.Repeated() {
		return nil, repeated(c)
	}
	switch op {
	case IsNaN:
		return Of(leaf), nil
	case In:
		return b.in(leaf, literals)
	default:
		return b.compare(leaf, literals[0])
	}
}

// BindLike makes the tree of column LIKE pattern, with an escape character if that is not 0.
func BindLike(d Dialect, c Column, pattern string, escape rune) (*Tree, error) {
	return bindPattern(Leaf{Column: c, Op: Like, Dialect: d}, pattern, escape, CompilePattern)
}

// BindILike is BindLike without regard to case.
func BindILike(d Dialect, c Column, pattern string, escape rune) (*Tree, error) {
	return bindPattern(Leaf{Column: c, Op: ILike, Dialect: d}, pattern, escape, CompileAnyCase)
}

func bindPattern(l Leaf, pattern string, escape rune, compile func(string, rune) (*Pattern, error)) (*Tree, error) {
	err := oneString(l.Column)
	if err == nil {
		l.Pattern, err = compile(pattern, escape)
	}
	if err != nil {
		return nil, err
	}
	return Of(l), nil
}

// BindMatch makes the tree of a regular expression that is found in a column's text.
func BindMatch(d Dialect, c Column, text string, anyCase bool) (*Tree, error) {
	if err := oneString(c); err != nil {
		return nil, err
	}
	x, err := CompileRegex(text, anyCase)
	if err != nil {
		return nil, err
	}
	return Of(Leaf{Column: c, Op: Match, Regex: x, Dialect: d}), nil
}

func oneString(c Column) error {
	switch {
	case c.Type().Kind != column.String:
		return notString(c)
	case c.Path.Repeated():
		return repeated(c)
	default:
		return nil
	}
}

func repeated(c Column) error {
	return fault.New(fault.Invalid, c.Name(), "it holds many values a row").
		WithFix("use contains(%s, value)", Column{c.Read()}.Name())
}

func notString(c Column) error {
	return fault.New(fault.Invalid, c.Name(), "the column is a %s; LIKE, starts-with and ~ are for strings", c.Type())
}

// unknown is the test whose answer is NULL on every row.
func (b binder) unknown() (*Tree, error) {
	if b.dialect == Iceberg {
		return nil, fault.New(fault.Invalid, b.column.Name(), "null is not a literal").WithFix("use is-null or not-null")
	}
	if b.column.Type().Kind.Nested() {
		return nil, b.notComparable()
	}
	return &Tree{Kind: Test, Leaf: &Leaf{Column: b.column, Op: In, Unknown: true}}, nil
}

func (b binder) compare(leaf Leaf, x Literal) (*Tree, error) {
	if x.Kind == NullLiteral {
		return b.unknown()
	}
	op, v, none, err := b.bind(leaf.Op, x)
	if err != nil {
		return nil, err
	}
	leaf.Op = op
	if leaf.Values = []column.Value{v}; none {
		leaf.Op, leaf.Values = In, nil
	}
	return Of(leaf), nil
}

func (b binder) in(leaf Leaf, literals []Literal) (*Tree, error) {
	null := false
	leaf.Values = make([]column.Value, 0, len(literals))
	for _, x := range literals {
		if x.Kind == NullLiteral {
			null = true
			continue
		}
		_, v, none, err := b.bind(Equal, x)
		if err != nil {
			return nil, err
		}
		if !none {
			leaf.Values = append(leaf.Values, v)
		}
	}
	if !null {
		return Of(leaf), nil
	}
	unknown, err := b.unknown()
	if err != nil || len(leaf.Values) == 0 {
		return unknown, err
	}
	return Any(Of(leaf), unknown), nil
}

func (b binder) contains(leaf Leaf, x Literal) (*Tree, error) {
	path := b.column.Path
	at, ok := b.column.Around()
	if !ok {
		return nil, fault.New(fault.Invalid, b.column.Name(), "the column is a %s; contains is for lists", b.column.Type())
	}
	deeper := slices.ContainsFunc(path[at+1:], func(f column.Field) bool { return f.Type.Kind == column.List || f.Type.Kind == column.Map })
	if deeper || b.column.Type().Kind.Nested() {
		return nil, fault.New(fault.Invalid, b.column.Name(), "contains is for lists and maps of plain values, and for plain fields of structs in them")
	}
	if x.Kind == NullLiteral {
		return b.unknown()
	}
	_, v, none, err := b.bind(Equal, x)
	if err != nil {
		return nil, err
	}
	if none && !v.IsNaN() {
		return nil, b.wrong(x, "a value that the list can hold")
	}
	leaf.Values = []column.Value{v}
	return Of(leaf), nil
}
