package predicate

import (
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/fault"
)

// MaxRegex is the longest regular expression in bytes.
const MaxRegex = 4 << 10

// Regex is a compiled regular expression in RE2's syntax (github.com/google/re2/wiki/Syntax), which matches in time linear in the
// text. It is found anywhere in a text unless ^ or $ say otherwise; a byte that is not UTF-8 is read as U+FFFD.
type Regex struct {
	Text    string // as written
	AnyCase bool   // letters match in any case, as with (?i)
	re      *regexp.Regexp
}

// CompileRegex parses a regular expression. Programs beyond the limits of package regexp/syntax (repeats above 1,000, deep nesting,
// sizes that multiply) are refused.
func CompileRegex(text string, anyCase bool) (*Regex, error) {
	switch {
	case len(text) > MaxRegex:
		return nil, fault.New(fault.Invalid, "regular expression", "%d bytes are more than the limit of %d", len(text), MaxRegex)
	case !utf8.ValidString(text):
		return nil, fault.New(fault.Invalid, "regular expression", "it is not valid UTF-8")
	}
	source := text
	if anyCase {
		source = "(?i)" + text
	}
	re, err := regexp.Compile(source)
	if err != nil {
		return nil, fault.New(fault.Invalid, "regular expression", "%s", regexReason(err)).
			WithFix("the syntax is RE2's: no backreferences and no look-around; a backslash takes the next sign literally")
	}
	return &Regex{Text: text, AnyCase: anyCase, re: re}, nil
}

func regexReason(err error) string {
	if e, ok := err.(*syntax.Error); ok { //nolint:errorlint // regexp.Compile returns it bare
		return e.Code.String() + ": `" + e.Expr + "`"
	}
	return err.Error()
}

// Match reports whether the expression is found in the text.
func (x *Regex) Match(text []byte) bool { return x.re.Match(text) }

// Syntax is the parsed expression, for those who derive from it what every match must hold.
func (x *Regex) Syntax() *syntax.Regexp {
	flags := syntax.Perl
	if x.AnyCase {
		flags |= syntax.FoldCase
	}
	parsed, err := syntax.Parse(x.Text, flags)
	if err != nil { // it compiled
		return &syntax.Regexp{Op: syntax.OpAnyChar}
	}
	return parsed.Simplify()
}
