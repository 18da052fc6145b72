package kinds

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
)

// Declaration is an index as declared: a kind, the columns it indexes and its parameters.
type Declaration struct {
	Entry
	Columns []column.Path
	Params  index.Params
}

const quoteNames = `names with spaces or signs are written in double quotes: "Order Date"`

// maxExpr bounds the text of a declaration.
const maxExpr = 16 << 10

// ParseExpr reads "kind(column, …) key=value …" against a schema and lets the kind check it. A list's name stands for its element. Column names with other characters
// than letters, digits, _ and . are written in double quotes, values with spaces in single or double quotes; a quote inside is doubled.
func ParseExpr(text string, schema *column.Schema) (Declaration, error) {
	s := &scanner{text: text}
	if len(text) > maxExpr || !utf8.ValidString(text) {
		return Declaration{}, fault.New(fault.Invalid, "index declaration", "is longer than %d bytes or not UTF-8", maxExpr)
	}
	d, columns := s.declaration()
	if s.err != nil {
		return Declaration{}, s.err
	}
	for i := range columns {
		path, err := columns[i].path(schema)
		if err != nil {
			return Declaration{}, err
		}
		d.add(path)
	}
	if err := d.Kind.Check(d.Columns, d.Params); err != nil {
		return Declaration{}, err
	}
	return d, nil
}

// String is the declaration in a form that ParseExpr reads, parameters sorted: equal declarations give equal texts.
func (d Declaration) String() string {
	var b strings.Builder
	b.WriteString(d.Name)
	b.WriteByte('(')
	for i, c := range d.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(d.columnText(c))
	}
	b.WriteByte(')')
	keys := make([]string, 0, len(d.Params))
	for k := range d.Params {
		if k != index.ExprParam {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		b.WriteString(" " + k + "=" + quoted(d.Params[k], isValueRune))
	}
	return b.String()
}

func quoted(s string, plain func(rune) bool) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

func isNameRune(r rune) bool {
	return r == '_' || r == '.' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

func isValueRune(r rune) bool { return !unicode.IsSpace(r) && r != '"' && r != '\'' }

func columnOf(schema *column.Schema, name string) (column.Path, error) {
	path, ambiguous := schema.ByName(name)
	switch {
	case path != nil && path.Leaf().Type.Kind == column.List:
		return append(slices.Clone(path), path.Leaf().Type.Fields[0]), nil
	case path != nil:
		return path, nil
	case shortNamed(schema, name) != nil:
		return shortNamed(schema, name), nil
	case len(ambiguous) > 0:
		return nil, fault.New(fault.Invalid, name, "could be any of the columns %s", strings.Join(ambiguous, ", ")).
			WithFix("write the name with the letters' exact case")
	}
	var names []string
	schema.Walk(func(p column.Path) bool {
		if !p.Leaf().Type.Kind.Nested() {
			names = append(names, p.Name())
		}
		return true
	})
	err := fault.New(fault.Invalid, name, "the table has no column of this name")
	if near := nearest(name, names); near != "" {
		return nil, err.WithFix("did you mean %s?", near)
	}
	return nil, err.WithFix("columns: %s", strings.Join(names[:min(len(names), 20)], ", "))
}

// scanner reads a declaration; the first fault sticks.
type scanner struct {
	text string
	at   int
	err  error
}

func (s *scanner) fail(fix, reason string, args ...any) {
	if s.err == nil {
		s.err = fault.New(fault.Invalid, "index declaration", "at character "+position(s.text, s.at)+": "+reason, args...).WithFix("%s", fix)
	}
}

func (s *scanner) declaration() (d Declaration, columns []columnExpr) {
	kind := s.word(isNameRune)
	if s.err == nil && kind == "" {
		s.fail("write for example "+table[0].Example, "expected the name of an index kind")
	}
	entry, ok := ByName(strings.ToLower(kind))
	if s.err == nil && !ok {
		s.unknownKind(kind)
	}
	d.Entry, d.Params = entry, index.Params{}
	if !s.take('(') {
		s.fail("write for example "+entry.Example, "expected ( and the columns to index")
	}
	for s.err == nil {
		c := s.column()
		columns = append(columns, c)
		if s.take(')') {
			break
		}
		if !s.take(',') {
			s.fail(quoteNames, "expected , or ) after column %s", c.name)
		}
	}
	for s.err == nil && s.more() {
		s.param(d.Params)
	}
	return d, columns
}

func (s *scanner) unknownKind(kind string) {
	var names, lines []string
	for _, e := range table {
		names = append(names, e.Name)
		lines = append(lines, e.Example+" ("+e.Purpose+")")
	}
	e := fault.New(fault.Invalid, kind, "there is no index kind of this name")
	if near := nearest(kind, names); near != "" {
		e.WithFix("did you mean %s?", near)
	} else {
		e.WithFix("kinds: %s", strings.Join(lines, "; "))
	}
	s.err = e
}

func (s *scanner) param(params index.Params) {
	key := s.word(isNameRune)
	if key == "" || !s.take('=') {
		s.fail("parameters follow the columns: bloom(user_id) fpp=0.01", "expected key=value")
		return
	}
	if key == index.ExprParam {
		s.fail("write the expression for the column: bloom(payload -> '$.user.id')", "%s is no parameter", key)
	}
	value := s.token(isValueRune, `"'`)
	if _, twice := params[key]; twice {
		s.fail("give it once", "parameter %s is given twice", key)
	}
	if s.err == nil && value == "" {
		s.fail("write a value after =, in quotes if it has spaces", "parameter %s has no value", key)
	}
	params[key] = value
}

// more skips spaces and reports whether text is left.
func (s *scanner) more() bool {
	for s.at < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[s.at:])
		if !unicode.IsSpace(r) {
			return true
		}
		s.at += n
	}
	return false
}

func (s *scanner) take(c byte) bool {
	if s.err == nil && s.more() && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// word reads the longest run of accepted characters, maybe empty.
func (s *scanner) word(accept func(rune) bool) string {
	if s.err != nil || !s.more() {
		return ""
	}
	end := strings.IndexFunc(s.text[s.at:], func(r rune) bool { return !accept(r) })
	if end < 0 {
		end = len(s.text) - s.at
	}
	w := s.text[s.at : s.at+end]
	s.at += end
	return w
}

// token reads a word, or a text between any of the quotes.
func (s *scanner) token(accept func(rune) bool, quotes string) string {
	if s.err != nil || !s.more() {
		return ""
	}
	q := s.text[s.at]
	if !strings.ContainsRune(quotes, rune(q)) {
		return s.word(accept)
	}
	var b strings.Builder
	for i := s.at + 1; i < len(s.text); i++ {
		switch {
		case s.text[i] != q:
			b.WriteByte(s.text[i])
		case i+1 < len(s.text) && s.text[i+1] == q:
			b.WriteByte(q)
			i++
		default:
			s.at = i + 1
			return b.String()
		}
	}
	s.fail("a quote inside is doubled", "the quote %c is not closed", q)
	return ""
}
