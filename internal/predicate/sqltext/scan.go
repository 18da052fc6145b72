package sqltext

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2/lexer"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Limits of a text.
const (
	MaxText  = 1 << 20 // bytes
	MaxDepth = 256     // nested parentheses
)

// The kinds of tokens. A name's and a literal's Value is what it means, without quotes and escapes.
const (
	keyword lexer.TokenType = iota + 1
	name
	function
	punct
	operator
	number
	text
	hexBytes
	date
	clock
	timestamp
)

// functions is how many arguments each takes.
var functions = map[string]int{"CONTAINS": 2, "CONTAINS_TOKEN": 2, "TOKENS": 1, "MAP_KEYS": 1, "MAP_VALUES": 1}

var typedLiterals = map[string]lexer.TokenType{"DATE": date, "TIME": clock, "TIMESTAMP": timestamp, "TIMESTAMPTZ": timestamp}

// scanner turns a text into tokens. The grammar needs no look into the text itself, so all words, quotes and numbers
// are decided here.
type scanner struct {
	src    string
	at     int
	pos    lexer.Position // of src[at]
	depth  int
	tokens []lexer.Token
}

func scan(src string) ([]lexer.Token, error) {
	if len(src) > MaxText {
		return nil, fault.New(fault.Invalid, "filter", "%d bytes of text are more than the limit of %d", len(src), MaxText).
			WithFix("send long lists of values in several queries")
	}
	s := &scanner{src: src, pos: lexer.Position{Line: 1, Column: 1}}
	if i := invalidUTF8(src); i >= 0 {
		s.skip(i)
		return nil, at(s.pos, fault.New(fault.Invalid, "", "the text is not valid UTF-8"))
	}
	for {
		s.skip(len(s.rest()) - len(strings.TrimLeftFunc(s.rest(), unicode.IsSpace)))
		if s.at == len(s.src) {
			s.emit(lexer.EOF, "", 0)
			return s.tokens, nil
		}
		if err := s.next(); err != nil {
			return nil, at(s.pos, err)
		}
	}
}

func invalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return -1
}

// at adds a position to an error.
func at(pos lexer.Position, err error) error {
	return fault.About(fmt.Sprintf("filter, line %d, column %d", pos.Line, pos.Column), err)
}

func (s *scanner) rest() string { return s.src[s.at:] }

// skip moves n bytes ahead, counting lines and columns (of code points) on the way.
func (s *scanner) skip(n int) {
	for _, r := range s.src[s.at : s.at+n] {
		s.pos.Column++
		if r == '\n' {
			s.pos.Line++
			s.pos.Column = 1
		}
	}
	s.at += n
	s.pos.Offset = s.at
}

func (s *scanner) emit(kind lexer.TokenType, value string, n int) {
	s.tokens = append(s.tokens, lexer.Token{Type: kind, Value: value, Pos: s.pos})
	s.skip(n)
}

func (s *scanner) afterDot() bool {
	n := len(s.tokens)
	return n > 0 && s.tokens[n-1].Type == punct && s.tokens[n-1].Value == "."
}

func (s *scanner) afterName() bool {
	n := len(s.tokens)
	return n > 0 && s.tokens[n-1].Type == name
}

func (s *scanner) next() error {
	rest := s.rest()
	c := rest[0]
	switch {
	case c == '\'':
		value, n, err := quoted(rest)
		if err == nil {
			s.emit(text, value, n)
		}
		return err
	case c == '"' || c == '`':
		value, n, err := quoted(rest)
		if err == nil && value == "" {
			err = fault.New(fault.Invalid, "", "a column name is empty")
		}
		if err == nil {
			s.emit(name, value, n)
		}
		return err
	case (c == 'x' || c == 'X') && strings.HasPrefix(rest[1:], "'"):
		return s.hex(rest)
	case c == '.' && s.afterName():
		s.emit(punct, ".", 1)
		return nil
	case numberLength(rest) > 0:
		n := numberLength(rest)
		s.emit(number, strings.Join(strings.Fields(rest[:n]), ""), n)
		return nil
	case strings.HasPrefix(rest, "->"):
		s.emit(punct, "->", 2)
		return nil
	case strings.IndexByte("(),[]", c) >= 0:
		return s.punct(c)
	}
	if n := operatorLength(rest); n > 0 {
		s.emit(operator, rest[:n], n)
		return nil
	}
	if n := wordLength(rest); n > 0 {
		return s.word(rest[:n], rest[n:])
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return fault.New(fault.Invalid, "", "unexpected character %q", r).WithFix("quote text with '…' and unusual column names with \"…\"")
}

func (s *scanner) punct(c byte) error {
	switch c {
	case '(':
		s.depth++
	case ')':
		s.depth--
	}
	if s.depth > MaxDepth {
		return fault.New(fault.Invalid, "", "parentheses are nested more than %d deep", MaxDepth)
	}
	s.emit(punct, string(c), 1)
	return nil
}

// quoted reads a text in quotes of its first character, which stands doubled for itself.
func quoted(src string) (value string, n int, err error) {
	q := src[:1]
	for i := 1; ; {
		j := strings.Index(src[i:], q)
		if j < 0 {
			return "", 0, fault.New(fault.Invalid, "", "the quote %s is never closed", q)
		}
		i += j + 1
		if !strings.HasPrefix(src[i:], q) {
			return strings.ReplaceAll(src[1:i-1], q+q, q), i, nil
		}
		i++
	}
}

func (s *scanner) hex(rest string) error {
	digits, n, err := quoted(rest[1:])
	if err != nil {
		return err
	}
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return fault.New(fault.Invalid, "", "X'…' holds pairs of hexadecimal digits only")
	}
	s.emit(hexBytes, string(raw), n+1)
	return nil
}

func (s *scanner) word(word, rest string) error {
	upper := strings.ToUpper(word)
	behind := strings.TrimLeftFunc(rest, unicode.IsSpace)
	switch {
	case s.afterDot():
		s.emit(name, word, len(word))
	case predicate.Reserved(word):
		s.emit(keyword, upper, len(word))
	case typedLiterals[upper] != 0 && strings.HasPrefix(behind, "'"):
		value, n, err := quoted(behind)
		if err != nil {
			return err
		}
		s.emit(typedLiterals[upper], value, len(word)+len(rest)-len(behind)+n)
	case strings.HasPrefix(behind, "("):
		if functions[upper] == 0 {
			return fault.New(fault.Invalid, "", "there is no function %s", word).
				WithFix("the functions are contains(list, value), contains_token(text, words), tokens(text), map_keys(map) and map_values(map)")
		}
		s.emit(function, upper, len(word))
	default:
		s.emit(name, word, len(word))
	}
	return nil
}

func wordLength(src string) int {
	for i, r := range src {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) && r != '$') {
			return i
		}
	}
	return len(src)
}

func operatorLength(src string) int {
	for _, op := range []string{"!~*", "!~", "~*", "~", "==", "!=", "<>", "<=", ">=", "=", "<", ">"} {
		if strings.HasPrefix(src, op) {
			return len(op)
		}
	}
	return 0
}

// numberLength is the length of [+-] [space] (digits [. [digits]] | . digits) [e [+-] digits] at the start of src, 0 if
// there is none.
func numberLength(src string) int {
	i := 0
	if src[0] == '+' || src[0] == '-' {
		i = 1
		i += len(src[i:]) - len(strings.TrimLeft(src[i:], " \t\n\r"))
	}
	whole := digitsLength(src[i:])
	i += whole
	fraction := 0
	if strings.HasPrefix(src[i:], ".") {
		if fraction = digitsLength(src[i+1:]); whole+fraction > 0 {
			i += 1 + fraction
		}
	}
	if whole+fraction == 0 {
		return 0
	}
	if strings.HasPrefix(src[i:], "e") || strings.HasPrefix(src[i:], "E") {
		sign := 0
		if strings.HasPrefix(src[i+1:], "+") || strings.HasPrefix(src[i+1:], "-") {
			sign = 1
		}
		if n := digitsLength(src[i+1+sign:]); n > 0 {
			i += 1 + sign + n
		}
	}
	return i
}

func digitsLength(src string) int {
	return len(src) - len(strings.TrimLeft(src, "0123456789"))
}
