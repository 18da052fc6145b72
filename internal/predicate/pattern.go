package predicate

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/analysis"
	"github.com/skomerdb/skomer/internal/fault"
)

// MaxPattern is the longest LIKE pattern in bytes.
const MaxPattern = 16 << 10

// Pattern is a compiled LIKE pattern: '%' is any run of code points, '_' one code point, Escape (if not zero) takes the
// next pattern character literally. Texts are matched as bytes; a byte that is not part of valid UTF-8 counts as one
// code point.
type Pattern struct {
	Text    string // as written
	Escape  rune
	AnyCase bool // ILIKE: texts are folded before they are matched (analysis.FoldRune), the pattern's literals are
	// The pieces between the '%', each a sequence of parts of fixed length in code points. There is always at least
	// one; the first is anchored at the start of the text and the last at its end (one piece: at both).
	pieces [][]part
}

// part is a run of literal bytes or, if empty, one arbitrary code point.
type part []byte

// CompilePattern parses a LIKE pattern. An escape of 0 means that no character escapes.
func CompilePattern(text string, escape rune) (*Pattern, error) {
	return compilePattern(text, escape, false)
}

// CompileAnyCase parses an ILIKE pattern: runes that differ in case only match each other, one rune one rune.
func CompileAnyCase(text string, escape rune) (*Pattern, error) {
	return compilePattern(text, escape, true)
}

func compilePattern(text string, escape rune, anyCase bool) (*Pattern, error) {
	switch {
	case len(text) > MaxPattern:
		return nil, fault.New(fault.Invalid, "LIKE pattern", "%d bytes are more than the limit of %d", len(text), MaxPattern)
	case !utf8.ValidString(text):
		return nil, fault.New(fault.Invalid, "LIKE pattern", "it is not valid UTF-8")
	}
	p := &Pattern{Text: text, Escape: escape, AnyCase: anyCase}
	fold := func(r rune) rune { return r }
	if anyCase {
		fold = analysis.FoldRune
	}
	var piece []part
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			piece = append(piece, part(literal.String()))
			literal.Reset()
		}
	}
	escaped := false
	for _, r := range text {
		switch {
		case escaped:
			literal.WriteRune(fold(r))
			escaped = false
		case escape != 0 && r == escape:
			escaped = true
		case r == '%':
			flush()
			p.pieces = append(p.pieces, piece)
			piece = nil
		case r == '_':
			flush()
			piece = append(piece, nil)
		default:
			literal.WriteRune(fold(r))
		}
	}
	if escaped {
		return nil, fault.New(fault.Invalid, "LIKE pattern", "it ends with the escape character %q", escape).
			WithFix("double the escape character to match it literally")
	}
	flush()
	p.pieces = collapse(append(p.pieces, piece))
	return p, nil
}

// collapse drops the empty pieces of repeated '%' between the first and the last piece.
func collapse(pieces [][]part) [][]part {
	out := pieces[:1]
	for i, piece := range pieces[1:] {
		if last := i+2 == len(pieces); last || len(piece) > 0 {
			out = append(out, piece)
		}
	}
	return out
}

// Exact returns the only text that matches (folded, of an ILIKE pattern); ok is false if the pattern has wildcards.
func (p *Pattern) Exact() (text string, ok bool) {
	if len(p.pieces) != 1 {
		return "", false
	}
	lit, ok := literalOf(p.pieces[0])
	return string(lit), ok
}

// Prefix returns the literal text before the first wildcard; only reports whether the pattern is that text and one '%'.
func (p *Pattern) Prefix() (text string, only bool) {
	first := p.pieces[0]
	if len(first) > 0 {
		text = string(first[0])
	}
	_, literal := literalOf(first)
	return text, literal && len(p.pieces) == 2 && len(p.pieces[1]) == 0
}

// Literals returns the runs of literal text in order; every matching text, folded where AnyCase is set, has them all, apart and in this
// order.
func (p *Pattern) Literals() []string {
	var out []string
	for _, piece := range p.pieces {
		for _, x := range piece {
			if len(x) > 0 {
				out = append(out, string(x))
			}
		}
	}
	return out
}

// literalOf returns the bytes of a piece without '_'.
func literalOf(piece []part) ([]byte, bool) {
	switch {
	case len(piece) == 0:
		return nil, true
	case len(piece) == 1 && len(piece[0]) > 0:
		return piece[0], true
	default:
		return nil, false
	}
}

// Match reports whether the whole text matches.
func (p *Pattern) Match(text []byte) bool {
	if p.AnyCase {
		text = analysis.AppendFold(nil, text)
	}
	return p.matchFolded(text)
}

// matchFolded is Match of a text that is folded already where the pattern wants it so.
func (p *Pattern) matchFolded(text []byte) bool {
	n := matchAt(p.pieces[0], text)
	if n < 0 {
		return false
	}
	if len(p.pieces) == 1 {
		return n == len(text)
	}
	text = text[n:]
	last := len(p.pieces) - 1
	for _, piece := range p.pieces[1:last] {
		end := find(piece, text)
		if end < 0 {
			return false
		}
		text = text[end:]
	}
	return matchEnd(p.pieces[last], text)
}

// matchAt returns the bytes that piece takes at the start of text, -1 if it does not match there.
func matchAt(piece []part, text []byte) int {
	at := 0
	for _, x := range piece {
		rest := text[at:]
		switch {
		case len(x) == 0 && len(rest) > 0:
			_, n := utf8.DecodeRune(rest)
			at += n
		case len(x) > 0 && bytes.HasPrefix(rest, x):
			at += len(x)
		default:
			return -1
		}
	}
	return at
}

func matchEnd(piece []part, text []byte) bool {
	for i := len(piece) - 1; i >= 0; i-- {
		x := piece[i]
		switch {
		case len(x) == 0 && len(text) > 0:
			_, n := utf8.DecodeLastRune(text)
			text = text[:len(text)-n]
		case len(x) > 0 && bytes.HasSuffix(text, x):
			text = text[:len(text)-len(x)]
		default:
			return false
		}
	}
	return true
}

// find returns the end of the leftmost match of piece in text, -1 if there is none. The leftmost match is enough:
// pieces have a fixed length in code points, so a later one never leaves more text for the pieces behind it.
func find(piece []part, text []byte) int {
	if lit, ok := literalOf(piece); ok {
		if i := bytes.Index(text, lit); i >= 0 {
			return i + len(lit)
		}
		return -1
	}
	for at := 0; ; {
		if first := piece[0]; len(first) > 0 {
			i := bytes.Index(text[at:], first)
			if i < 0 {
				return -1
			}
			at += i
		}
		if n := matchAt(piece, text[at:]); n >= 0 {
			return at + n
		}
		if at == len(text) {
			return -1
		}
		_, n := utf8.DecodeRune(text[at:])
		at += n
	}
}
