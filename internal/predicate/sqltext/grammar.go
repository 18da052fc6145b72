package sqltext

import (
	"io"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// The grammar. It never needs to look further than the next token, so a text is read in time linear in its length.

type disjunction struct {
	Kids []*conjunction `parser:"@@ ( 'OR':Keyword @@ )*"`
}

type conjunction struct {
	Kids []*negation `parser:"@@ ( 'AND':Keyword @@ )*"`
}

type negation struct {
	Nots []string `parser:"@'NOT':Keyword*"`
	Test *test    `parser:"@@"`
}

type test struct {
	Left *operand `parser:"@@"`
	Tail *tail    `parser:"@@?"`
}

// tail is what is asked of the operand before it.
type tail struct {
	Pos     lexer.Position
	Compare *comparison `parser:"  @@"`
	Is      *is         `parser:"| @@"`
	Set     *set        `parser:"| @@"`
}

type comparison struct {
	Op    string   `parser:"@Operator"`
	Any   *operand `parser:"( 'ANY':Keyword '(':Punct @@ ')':Punct"`
	Right *operand `parser:"| @@ )"`
}

type is struct {
	Not  bool   `parser:"'IS':Keyword @'NOT':Keyword?"`
	What string `parser:"@( 'NULL':Keyword | 'NAN':Keyword )"`
}

type set struct {
	Not     bool          `parser:"@'NOT':Keyword?"`
	In      []lexer.Token `parser:"( 'IN':Keyword '(':Punct @( ( Number | String | Hex | Date | Time | Timestamp | 'NULL':Keyword | 'TRUE':Keyword | 'FALSE':Keyword ) ( ',':Punct ( Number | String | Hex | Date | Time | Timestamp | 'NULL':Keyword | 'TRUE':Keyword | 'FALSE':Keyword ) )* ) ')':Punct"` // the commas too
	Low     *operand      `parser:"| 'BETWEEN':Keyword @@"`
	High    *operand      `parser:"  'AND':Keyword @@"`
	AnyCase bool          `parser:"| ( 'LIKE':Keyword | @'ILIKE':Keyword )"`
	Like    *operand      `parser:"  @@"`
	Escape  *operand      `parser:"  ( 'ESCAPE':Keyword @@ )? )"`
}

type operand struct {
	Pos     lexer.Position
	Group   *disjunction `parser:"(  '(':Punct @@ ')':Punct"`
	Call    *call        `parser:"| @@"`
	Literal *literal     `parser:"| @@"`
	Name    []string     `parser:"| @Name ( '.':Punct @Name )* )"`
	Parts   []*part      `parser:"@@*"`
}

// part is what of a column's value is meant: a path in a JSON text or a key of a map.
type part struct {
	Pos  lexer.Position
	Path *lexer.Token `parser:"  '->':Punct @String"`
	Key  *lexer.Token `parser:"| '[':Punct @String ']':Punct"`
}

// call is a function with its arguments.
type call struct {
	Pos  lexer.Position
	Name string     `parser:"@Function '(':Punct"`
	Args []*operand `parser:"@@ ( ',':Punct @@ )* ')':Punct"`
}

type literal struct {
	Token lexer.Token `parser:"@( Number | String | Hex | Date | Time | Timestamp | 'NULL':Keyword | 'TRUE':Keyword | 'FALSE':Keyword )"`
}

var parser = participle.MustBuild[disjunction](participle.Lexer(definition{}), participle.UseLookahead(0))

// definition lends scan to participle.
type definition struct{}

func (definition) Symbols() map[string]lexer.TokenType {
	return map[string]lexer.TokenType{
		"EOF": lexer.EOF, "Keyword": keyword, "Name": name, "Function": function, "Punct": punct, "Operator": operator, "Number": number,
		"String": text, "Hex": hexBytes, "Date": date, "Time": clock, "Timestamp": timestamp,
	}
}

func (d definition) Lex(file string, r io.Reader) (lexer.Lexer, error) {
	src, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return d.LexString(file, string(src))
}

func (definition) LexString(_, src string) (lexer.Lexer, error) {
	tokens, err := scan(src)
	return &replay{tokens}, err
}

type replay struct{ tokens []lexer.Token }

// Next returns the tokens of scan, the last of which is the end of the text.
func (r *replay) Next() (lexer.Token, error) {
	t := r.tokens[0]
	if len(r.tokens) > 1 {
		r.tokens = r.tokens[1:]
	}
	return t, nil
}
