package verify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"unicode"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/predicate/sqltext"
)

// drawer makes random filters over the terms of a table, and its indexes'.
type drawer struct {
	rng     *rand.Rand
	schema  *column.Schema
	terms   []*term
	targets []*target
}

// filter is a random filter of at most depth levels of AND, OR and NOT.
func (d *drawer) filter(depth int) string {
	if depth == 0 || d.rng.IntN(2) == 0 {
		return d.leaf()
	}
	switch d.rng.IntN(5) {
	case 0:
		return "NOT (" + d.filter(depth-1) + ")"
	case 1, 2:
		return "(" + d.filter(depth-1) + " OR " + d.filter(depth-1) + ")"
	default:
		return "(" + d.filter(depth-1) + " AND " + d.filter(depth-1) + ")"
	}
}

// leaf is a test of some term; half of them are of indexes.
func (d *drawer) leaf() string {
	if len(d.targets) > 0 && d.rng.IntN(2) == 0 {
		return d.of(d.targets[d.rng.IntN(len(d.targets))])
	}
	return d.test(&d.terms[d.rng.IntN(len(d.terms))].sample)
}

// of is a test that an index is for: of the first of several terms, or of all of them with values of one row.
func (d *drawer) of(t *target) string {
	if len(t.terms) == 1 || len(t.together.values) == 0 || d.rng.IntN(4) == 0 {
		return d.test(&t.terms[0].sample)
	}
	values := t.together.values[d.rng.IntN(len(t.together.values))]
	parts := make([]string, len(values))
	for i, v := range values {
		op := " = "
		if i == len(values)-1 {
			op = pick(d.rng, " = ", " = ", " < ", " <= ", " > ", " >= ")
		}
		parts[i] = t.terms[i].name + op + literal(v)
	}
	return "(" + strings.Join(parts, " AND ") + ")"
}

// attempts is how many tests are drawn to find one that an index can answer.
const attempts = 64

// answerable is a test that the index can answer; false where none was found.
func (d *drawer) answerable(t *target) (string, bool) {
	for range attempts {
		text := d.of(t)
		tree, err := sqltext.Parse(text, d.schema)
		if err != nil {
			return "", false
		}
		says := index.Nothing
		tree.Leaves(func(l *predicate.Leaf) { says = max(says, t.declaration.Kind.Says(t.declaration.Columns, l)) })
		if says > index.Nothing {
			return text, true
		}
	}
	return "", false
}

// next is filter number n: the first ones are answered by one index after the other.
func (d *drawer) next(n int) string {
	if n < len(d.targets) {
		if text, ok := d.answerable(d.targets[n]); ok {
			return text
		}
	}
	return d.filter(2)
}

// test is a random test of a term.
func (d *drawer) test(s *sample) string {
	none := len(s.values) == 0
	one := func() skomer.Value { return s.values[d.rng.IntN(len(s.values))] }
	switch {
	case s.form == elements && !none:
		return pick(d.rng, "", "", "NOT ") + "contains(" + s.name + ", " + literal(one()) + ")"
	case s.form == words && !none:
		text := one().S
		if d.rng.IntN(3) == 0 {
			text += " " + one().S
		}
		return pick(d.rng, "", "", "NOT ") + "contains_token(" + s.name + ", " + quote(text) + ")"
	case s.form == elements:
		return "contains(" + s.name + ", NULL)"
	case none || d.rng.IntN(12) == 0:
		return s.name + pick(d.rng, " IS NULL", " IS NOT NULL")
	}
	switch d.rng.IntN(8) {
	case 0, 1:
		return s.name + " = " + literal(one())
	case 2:
		return s.name + " IN (" + literal(one()) + ", " + literal(one()) + ", " + literal(one()) + ")"
	case 3:
		return s.name + pick(d.rng, " <> ", " < ", " <= ", " > ", " >= ") + literal(one())
	case 4:
		return s.name + " NOT IN (" + literal(one()) + ", " + literal(one()) + ")"
	case 5, 6:
		if s.kind == column.String {
			return s.name + d.pattern(one().S)
		}
		if s.kind.Floating() && d.rng.IntN(2) == 0 {
			return s.name + pick(d.rng, " IS NAN", " IS NOT NAN")
		}
		fallthrough
	default:
		return s.name + " BETWEEN " + literal(one()) + " AND " + literal(one())
	}
}

// pattern is a test of text by a pattern made of s.
func (d *drawer) pattern(s string) string {
	switch d.rng.IntN(3) {
	case 0:
		return pick(d.rng, " LIKE ", " NOT LIKE ") + like(s, d.rng)
	case 1:
		return pick(d.rng, " ILIKE ", " NOT ILIKE ") + like(otherCase(s, d.rng), d.rng)
	default:
		return pick(d.rng, " ~ ", " !~ ", " ~* ", " !~* ") + quote(regex(s, d.rng))
	}
}

// otherCase is a text with some letters in the other case.
func otherCase(s string, rng *rand.Rand) string {
	return strings.Map(func(r rune) rune {
		switch rng.IntN(4) {
		case 0:
			return unicode.ToUpper(r)
		case 1:
			return unicode.ToLower(r)
		default:
			return r
		}
	}, s)
}

// longestRegex is the runes of a text that become a regular expression.
const longestRegex = 64

// regex is a regular expression that the text s matches.
func regex(s string, rng *rand.Rand) string {
	runes := []rune(s)
	from := rng.IntN(len(runes) + 1)
	to := from + rng.IntN(min(len(runes)-from, longestRegex)+1)
	var out strings.Builder
	if from == 0 && rng.IntN(2) == 0 {
		out.WriteString("^")
	}
	for i, r := range runes[from:to] {
		switch {
		case i > 0 && rng.IntN(12) == 0:
			out.WriteString(".*")
		case rng.IntN(12) == 0 && r != '\n':
			out.WriteByte('.')
		default:
			out.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	if to == len(runes) && rng.IntN(2) == 0 {
		out.WriteString("$")
	}
	return out.String()
}

func pick(rng *rand.Rand, from ...string) string { return from[rng.IntN(len(from))] }

// like is a pattern that the text s matches: a prefix, a suffix or a piece of it.
func like(s string, rng *rand.Rand) string {
	runes := []rune(s)
	from := rng.IntN(len(runes) + 1)
	to := from + rng.IntN(len(runes)-from+1)
	switch rng.IntN(3) {
	case 0:
		from = 0
	case 1:
		to = len(runes)
	}
	var pattern strings.Builder
	if from > 0 {
		pattern.WriteByte('%')
	}
	for _, r := range runes[from:to] {
		if strings.ContainsRune(`%_\`, r) {
			r = '_'
		}
		pattern.WriteRune(r)
	}
	if to < len(runes) {
		pattern.WriteByte('%')
	}
	return quote(pattern.String())
}

// literal is a value as SQL text.
func literal(v skomer.Value) string {
	switch v.Kind {
	case column.Bool, column.Int, column.Long, column.Decimal:
		return render.Text(v)
	case column.Float, column.Double:
		switch f := v.Float64(); {
		case math.IsNaN(f):
			return "'NaN'"
		case math.IsInf(f, 1):
			return "'Infinity'"
		case math.IsInf(f, -1):
			return "'-Infinity'"
		}
		return render.Text(v)
	case column.Fixed, column.Binary:
		return fmt.Sprintf("X'%x'", v.S)
	default:
		return quote(render.Text(v))
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
