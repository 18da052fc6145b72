package predicate_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
)

// seeded returns a random source whose seed is printed on failure and replayed by SKOMER_SEED.
func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay with SKOMER_SEED=%d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// literal is a literal in both syntaxes and, for the oracle, how a value compares with it.
type literal struct {
	sql, json string
	null      bool
	text      string // strings: what the literal says
	// order is the sign of value − literal; ok is false where they have no order (NaN).
	order func(v column.Value) (sign int, ok bool)
}

// syntax is an unbound filter. NOT is kept.
type syntax struct {
	op      string // and or not; = <> < <= > >= in not-in null not-null nan not-nan like not-like prefix not-prefix contains true false
	kids    []*syntax
	column  int
	values  []literal
	pattern string
	escape  rune
}

// truth is a truth value of three-valued logic.
type truth int

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// cell is one value of a row: null, a value, or a list of cells.
type cell struct {
	null bool
	v    column.Value
	list []cell
}

// sql evaluates in three-valued logic.
func (s *syntax) sql(row []cell) truth {
	switch s.op {
	case "true":
		return yes
	case "false":
		return no
	case "not":
		return yes - s.kids[0].sql(row)
	case "and", "or":
		out := s.kids[0].sql(row)
		for _, k := range s.kids[1:] {
			if s.op == "and" {
				out = min(out, k.sql(row))
			} else {
				out = max(out, k.sql(row))
			}
		}
		return out
	}
	return s.sqlTest(row[s.column])
}

func (s *syntax) sqlTest(c cell) truth {
	op, negated := strings.CutPrefix(s.op, "not-")
	if op == "<>" {
		op, negated = "=", true
	}
	var got truth
	switch {
	case op == "null":
		got = truthOf(c.null)
	case c.null:
		got = unknown
	case op == "contains":
		got = no
		for _, e := range c.list {
			got = max(got, compareSQL("=", e, s.values[0]))
		}
	case op == "nan":
		got = truthOf(c.v.IsNaN())
	case op == "like" || op == "ilike" || op == "prefix" || op == "match" || op == "match-any":
		got = truthOf(s.matchText(op, c.v.S))
	case op == "in":
		got = no
		for _, x := range s.values {
			got = max(got, compareSQL("=", c, x))
		}
	default:
		got = compareSQL(op, c, s.values[0])
	}
	if negated {
		return yes - got
	}
	return got
}

func (s *syntax) matchText(op, text string) bool {
	if op == "prefix" {
		return strings.HasPrefix(text, s.values[0].text)
	}
	switch op {
	case "match":
		return regexp.MustCompile(s.pattern).MatchString(text)
	case "match-any":
		return regexp.MustCompile("(?i)" + s.pattern).MatchString(text)
	case "ilike":
		return matchPoints(s.pattern, s.escape, text, anyCase)
	}
	return likeOracle(s.pattern, s.escape, text)
}

// anyCase compares two code points; bytes that are none equal themselves only.
func anyCase(a, b string) bool {
	return a == b || utf8.ValidString(a) && utf8.ValidString(b) && strings.EqualFold(a, b)
}

func compareSQL(op string, c cell, x literal) truth {
	if c.null || x.null {
		return unknown
	}
	return truthOf(holds(op, c.v, x))
}

func holds(op string, v column.Value, x literal) bool {
	sign, ok := x.order(v)
	if !ok {
		return false
	}
	switch op {
	case "=":
		return sign == 0
	case "<":
		return sign < 0
	case "<=":
		return sign <= 0
	case ">":
		return sign > 0
	case ">=":
		return sign >= 0
	}
	panic(op)
}

// iceberg evaluates in two values; negated says whether an odd number of nots stands above.
func (s *syntax) iceberg(row []cell, negated bool) bool {
	switch s.op {
	case "true", "false":
		return (s.op == "true") != negated
	case "not":
		return s.kids[0].iceberg(row, !negated)
	case "and", "or":
		all := (s.op == "and") != negated
		for _, k := range s.kids {
			if k.iceberg(row, negated) != all {
				return !all
			}
		}
		return all
	}
	op, not := strings.CutPrefix(s.op, "not-")
	if op == "<>" {
		op, not = "=", true
	}
	not = not != negated
	c := row[s.column]
	switch {
	case op == "null":
		return c.null != not
	case c.null:
		return not
	case op == "nan":
		return c.v.IsNaN() != not
	case c.v.IsNaN():
		return true
	case op == "prefix":
		return s.matchText(op, c.v.S) != not
	case op == "in":
		for _, x := range s.values {
			if holds("=", c.v, x) {
				return !not
			}
		}
		return not
	default:
		return holds(op, c.v, s.values[0]) != not
	}
}

// likeOracle matches by the definition, a code point at a time.
func likeOracle(pattern string, escape rune, text string) bool {
	return matchPoints(pattern, escape, text, func(a, b string) bool { return a == b })
}

func matchPoints(pattern string, escape rune, text string, same func(a, b string) bool) bool {
	type token struct {
		lit string
		any bool
		one bool
	}
	var tokens []token
	rs := []rune(pattern)
	for i := 0; i < len(rs); i++ {
		switch {
		case escape != 0 && rs[i] == escape:
			i++
			tokens = append(tokens, token{lit: string(rs[i])})
		case rs[i] == '%':
			tokens = append(tokens, token{any: true})
		case rs[i] == '_':
			tokens = append(tokens, token{one: true})
		default:
			tokens = append(tokens, token{lit: string(rs[i])})
		}
	}
	var points []string
	for text != "" {
		_, n := utf8.DecodeRuneInString(text)
		points = append(points, text[:n])
		text = text[n:]
	}
	reach := make([]bool, len(points)+1) // reach[i]: the tokens so far can end before point i
	reach[0] = true
	for _, tok := range tokens {
		next := make([]bool, len(points)+1)
		for i, ok := range reach {
			switch {
			case !ok && (!tok.any || i == 0 || !next[i-1]):
			case tok.any:
				next[i] = true
			case i < len(points) && (tok.one || same(points[i], tok.lit)):
				next[i+1] = true
			}
		}
		reach = next
	}
	return reach[len(points)]
}

// text renders the syntax as SQL.
func (s *syntax) text(cols []testColumn, r *rand.Rand) string {
	switch s.op {
	case "true", "false":
		return strings.ToUpper(s.op)
	case "not":
		return "NOT (" + s.kids[0].text(cols, r) + ")"
	case "and", "or":
		parts := make([]string, len(s.kids))
		for i, k := range s.kids {
			parts[i] = "(" + k.text(cols, r) + ")"
		}
		return strings.Join(parts, " "+s.op+" ")
	}
	name := cols[s.column].sqlName
	op, negated := strings.CutPrefix(s.op, "not-")
	not := ""
	if negated {
		not = "NOT "
	}
	switch op {
	case "null", "nan":
		return name + " IS " + not + strings.ToUpper(op)
	case "match", "match-any":
		sign := map[bool]string{false: " ~", true: " !~"}[negated]
		if op == "match-any" {
			sign += "*"
		}
		return name + sign + " '" + strings.ReplaceAll(s.pattern, "'", "''") + "'"
	case "like", "ilike":
		escape := ""
		if s.escape != 0 {
			escape = " ESCAPE '" + string(s.escape) + "'"
		}
		return name + " " + not + strings.ToUpper(op) + " '" + strings.ReplaceAll(s.pattern, "'", "''") + "'" + escape
	case "prefix":
		escaped := strings.NewReplacer("!", "!!", "%", "!%", "_", "!_", "'", "''").Replace(s.values[0].text)
		return name + " " + not + "LIKE '" + escaped + "%' ESCAPE '!'"
	case "contains":
		if r.IntN(2) == 0 {
			return not + s.values[0].sql + " = ANY(" + name + ")"
		}
		return not + "contains(" + name + ", " + s.values[0].sql + ")"
	case "in":
		parts := make([]string, len(s.values))
		for i, x := range s.values {
			parts[i] = x.sql
		}
		return name + " " + not + "IN (" + strings.Join(parts, ", ") + ")"
	}
	if r.IntN(4) == 0 {
		flipped := map[string]string{"=": "=", "<>": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}[s.op]
		return s.values[0].sql + " " + flipped + " " + name
	}
	return name + s.op + s.values[0].sql
}

// json renders the syntax as an Iceberg expression, in one of the forms clients send.
func (s *syntax) json(cols []testColumn, r *rand.Rand) string {
	switch s.op {
	case "true", "false":
		return pick(r, []string{s.op, `{"type":"` + s.op + `"}`, `{"type":"literal","value":` + s.op + `}`})
	case "not":
		return `{"type":"not","child":` + s.kids[0].json(cols, r) + `}`
	case "and", "or":
		out := s.kids[0].json(cols, r)
		for _, k := range s.kids[1:] {
			out = fmt.Sprintf(`{"type":%q,"left":%s,"right":%s}`, s.op, out, k.json(cols, r))
		}
		return out
	}
	name := map[string]string{
		"null": "is-null", "not-null": "not-null", "nan": "is-nan", "not-nan": "not-nan", "=": "eq", "<>": "not-eq", "<": "lt", "<=": "lt-eq",
		">": "gt", ">=": "gt-eq", "in": "in", "not-in": "not-in", "prefix": "starts-with", "not-prefix": "not-starts-with",
	}[s.op]
	old := r.IntN(2) == 0
	c := cols[s.column]
	term := fmt.Sprintf(`{"type":"reference","id":%d}`, c.path.Leaf().ID)
	if old {
		term = pick(r, []string{fmt.Sprintf("%q", c.path.Name()), fmt.Sprintf(`{"type":"reference","term":%q}`, c.path.Name())})
	}
	var values []string
	for _, x := range s.values {
		values = append(values, x.json)
	}
	list := "[" + strings.Join(values, ",") + "]"
	switch {
	case strings.HasSuffix(name, "null") || strings.HasSuffix(name, "nan"):
		key := "child"
		if old {
			key = "term"
		}
		return fmt.Sprintf(`{"type":%q,%q:%s}`, name, key, term)
	case strings.HasSuffix(name, "in"):
		if old {
			return fmt.Sprintf(`{"type":%q,"term":%s,"values":%s}`, name, term, list)
		}
		return fmt.Sprintf(`{"type":%q,"child":%s,"values":{"type":"literals","values":%s}}`, name, term, list)
	case old:
		return fmt.Sprintf(`{"type":%q,"term":%s,"value":%s}`, name, term, values[0])
	default:
		return fmt.Sprintf(`{"type":%q,"left":%s,"right":{"type":"literal","value":%s}}`, name, term, values[0])
	}
}

// matchTree asks a tree by the scalar meaning of its leaves.
func matchTree(t *predicate.Tree, cols []testColumn, row []cell) bool {
	switch t.Kind {
	case predicate.True, predicate.False:
		return t.Kind == predicate.True
	case predicate.Test:
		for i, c := range cols {
			if c.path.Leaf().ID == t.Leaf.Column.ID() {
				return t.Leaf.Matches(row[i].v, row[i].null)
			}
		}
		panic("no such column")
	}
	for _, k := range t.Kids {
		if matchTree(k, cols, row) == (t.Kind == predicate.Or) {
			return t.Kind == predicate.Or
		}
	}
	return t.Kind == predicate.And
}
