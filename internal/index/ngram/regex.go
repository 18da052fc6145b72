package ngram

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/analysis"
)

// facts is what is known of the folded texts that a part of a regular expression matches.
type facts struct {
	// exact is all of them, where known.
	exact []string
	known bool
	// Where exact is not known: every match starts with one of prefix, ends with one of suffix and satisfies must. The empty text in a
	// set says nothing.
	prefix, suffix []string
	must           query
}

const (
	maxExact  = 16   // texts of a set
	maxLetter = 16   // runes of a character class
	maxText   = 1024 // bytes of the texts of a set
)

// matching is what a text must hold to have a match of the expression.
func matching(re *syntax.Regexp) query {
	f := factsOf(re)
	f.forget()
	return f.must
}

// anything is the facts of an expression of which nothing is known.
func anything() facts { return facts{prefix: []string{""}, suffix: []string{""}} }

func exactly(texts ...string) facts { return facts{exact: texts, known: true} }

func factsOf(re *syntax.Regexp) facts {
	switch re.Op {
	case syntax.OpNoMatch:
		return exactly()
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return exactly("")
	case syntax.OpLiteral:
		return literal(re.Rune)
	case syntax.OpCharClass:
		return class(re.Rune)
	case syntax.OpCapture:
		return factsOf(re.Sub[0])
	case syntax.OpPlus:
		f := factsOf(re.Sub[0])
		f.forget()
		return f
	case syntax.OpQuest:
		return alternative(factsOf(re.Sub[0]), exactly(""))
	case syntax.OpConcat:
		f := exactly("")
		for _, s := range re.Sub {
			f = concatenation(f, factsOf(s))
		}
		return f
	case syntax.OpAlternate:
		f := exactly()
		for _, s := range re.Sub {
			f = alternative(f, factsOf(s))
		}
		return f
	default: // OpStar, OpAnyChar, OpAnyCharNotNL; OpRepeat was simplified away
		return anything()
	}
}

// literal is the facts of a run of runes. Letters in any case fold as texts do. U+FFFD matches bytes that are no UTF-8 too.
func literal(runes []rune) facts {
	if slices.Contains(runes, utf8.RuneError) {
		return anything()
	}
	var b strings.Builder
	for _, r := range runes {
		b.WriteRune(analysis.FoldRune(r))
	}
	return exactly(b.String())
}

// class is the facts of a character class, given as ranges.
func class(ranges []rune) facts {
	var texts []string
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] > maxLetter || len(texts) > 4*maxLetter {
			return anything()
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if r == utf8.RuneError {
				return anything()
			}
			texts = append(texts, string(analysis.FoldRune(r)))
		}
	}
	slices.Sort(texts)
	if texts = slices.Compact(texts); len(texts) > maxLetter {
		return anything()
	}
	return exactly(texts...)
}

// forget gives up the exact set and keeps what follows from it.
func (f *facts) forget() {
	if !f.known {
		return
	}
	f.prefix, f.suffix, f.must = f.exact, f.exact, holdingOne(f.exact)
	f.exact, f.known = nil, false
	f.shorten()
}

// holdingOne is the texts that hold one of the pieces.
func holdingOne(pieces []string) query {
	q := query{op: none}
	for _, p := range pieces {
		if q = either(q, holding(p)); q.op == all {
			break
		}
	}
	return q
}

// shorten cuts prefixes and suffixes to the two bytes that a trigram across a border can still use.
func (f *facts) shorten() {
	f.prefix = cut(f.prefix, func(s string) string { return s[:min(len(s), 2)] })
	f.suffix = cut(f.suffix, func(s string) string { return s[max(len(s)-2, 0):] })
}

func cut(set []string, short func(string) string) []string {
	out := make([]string, len(set))
	for i, s := range set {
		out[i] = short(s)
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) > maxExact {
		return []string{""}
	}
	return out
}

// concatenation is the facts of a match of a followed by one of b.
func concatenation(a, b facts) facts {
	if a.known && b.known {
		if texts, ok := cross(a.exact, b.exact); ok {
			return exactly(texts...)
		}
	}
	prefix, suffix := a.prefix, b.suffix
	if a.known {
		prefix = crossOr(a.exact, b.starts(), a.exact)
	}
	if b.known {
		suffix = crossOr(a.ends(), b.exact, b.exact)
	}
	across := query{}
	if border, ok := cross(a.ends(), b.starts()); ok {
		across = holdingOne(border)
	}
	a.forget()
	b.forget()
	f := facts{prefix: prefix, suffix: suffix, must: both(both(a.must, b.must), across)}
	f.must = both(f.must, both(holdingOne(prefix), holdingOne(suffix)))
	f.shorten()
	return f
}

// starts is texts one of which every match starts with.
func (f *facts) starts() []string {
	if f.known {
		return f.exact
	}
	return f.prefix
}

func (f *facts) ends() []string {
	if f.known {
		return f.exact
	}
	return f.suffix
}

// alternative is the facts of a match of a or of b.
func alternative(a, b facts) facts {
	if a.known && b.known {
		texts := slices.Concat(a.exact, b.exact)
		slices.Sort(texts)
		if texts = slices.Compact(texts); small(texts) {
			return exactly(texts...)
		}
	}
	a.forget()
	b.forget()
	f := facts{prefix: slices.Concat(a.prefix, b.prefix), suffix: slices.Concat(a.suffix, b.suffix), must: either(a.must, b.must)}
	f.shorten()
	return f
}

// cross is every text of a followed by every one of b; false where they are too many.
func cross(a, b []string) ([]string, bool) {
	if len(a)*len(b) > maxExact {
		return nil, false
	}
	out := make([]string, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+y)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out, small(out)
}

func crossOr(a, b, otherwise []string) []string {
	if texts, ok := cross(a, b); ok {
		return texts
	}
	return otherwise
}

func small(texts []string) bool {
	size := 0
	for _, s := range texts {
		size += len(s)
	}
	return len(texts) <= maxExact && size <= maxText
}
