package indextest

import (
	"math/rand/v2"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// Of is a column of written values: nil is null, int an integer-like kind or unscaled decimal, float64, bool, string (bytes of
// byte kinds).
func Of(t column.Type, values ...any) Column {
	c := Column{Type: t}
	for _, x := range values {
		if x == nil {
			c.Values = append(c.Values, nil)
			continue
		}
		v := Lit(t, x)
		c.Values = append(c.Values, &v)
	}
	return c
}

// Lit is one value as Of writes it.
func Lit(t column.Type, x any) column.Value {
	switch x := x.(type) {
	case bool:
		return column.BoolValue(x)
	case float64:
		if t.Kind == column.Float {
			return column.FloatValue(float32(x))
		}
		return column.DoubleValue(x)
	case string:
		return column.BytesValue(t.Kind, []byte(x))
	case int:
		if t.Kind == column.Decimal {
			return column.DecimalValue(int64(x)>>63, uint64(int64(x)), t.Scale)
		}
		return column.IntValue(t.Kind, int64(x))
	}
	panic("indextest: no value of this Go type")
}

// Test is a positive SQL leaf.
func Test(t column.Type, op predicate.Op, values ...any) *predicate.Leaf {
	l := &predicate.Leaf{Column: predicate.Column{Path: Path(t)}, Op: op}
	for _, x := range values {
		l.Values = append(l.Values, Lit(t, x))
	}
	return l
}

// Pattern compiles a LIKE pattern that is known to be good.
func Pattern(text string, escape rune) *predicate.Pattern {
	p, err := predicate.CompilePattern(text, escape)
	if err != nil {
		panic(err)
	}
	return p
}

// AnyCase compiles an ILIKE pattern that is known to be good.
func AnyCase(text string, escape rune) *predicate.Pattern {
	p, err := predicate.CompileAnyCase(text, escape)
	if err != nil {
		panic(err)
	}
	return p
}

// Regex compiles a regular expression that is known to be good.
func Regex(text string, anyCase bool) *predicate.Regex {
	x, err := predicate.CompileRegex(text, anyCase)
	if err != nil {
		panic(err)
	}
	return x
}

// Not is the negation of a leaf.
func Not(l *predicate.Leaf) *predicate.Leaf {
	c := *l
	c.Negated = !l.Negated
	return &c
}

// In is a leaf in a dialect.
func In(d predicate.Dialect, l *predicate.Leaf) *predicate.Leaf {
	c := *l
	c.Dialect = d
	return &c
}

// Small is an artifact over a written column, for named cases.
type Small struct {
	t      testing.TB
	c      Column
	Reader index.Reader
	Artifact
}

// Open builds c, row groups and pages starting at the given rows, and opens it.
func Open(t testing.TB, k index.Kind, c Column, groups ...uint32) *Small {
	t.Helper()
	return OpenWith(t, k, c, nil, groups...)
}

// OpenWith is Open with parameters.
func OpenWith(t testing.TB, k index.Kind, c Column, params index.Params, groups ...uint32) *Small {
	t.Helper()
	if len(groups) == 0 {
		groups = []uint32{0}
	}
	spec := index.Spec{Columns: []column.Path{Path(c.Type)}, Rows: uint32(len(c.Values)), RowGroups: groups, Pages: groups, Params: params}
	a := Build(t, rand.New(rand.NewPCG(1, 1)), k, &c, spec, index.Budget{})
	reader, err := k.Open(a.Root, spec.Rows)
	if err != nil {
		t.Fatal(err)
	}
	return &Small{t: t, c: c, Reader: reader, Artifact: a}
}

// Ask probes a leaf and fails the test when the verdict is wrong.
func (s *Small) Ask(leaf *predicate.Leaf) rowset.Verdict {
	s.t.Helper()
	v, _, err := Run(s.Reader.Probe(leaf), s.Body)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, Describe(leaf))
	}
	if bad := Wrong(leaf, &s.c, v); bad != "" {
		s.t.Fatalf("%s\n%s", bad, Describe(leaf))
	}
	return v
}

// Keeps fails unless the rows that may match are exactly those given.
func (s *Small) Keeps(leaf *predicate.Leaf, rows ...uint32) {
	s.t.Helper()
	if want, got := rowset.FromRows(uint32(len(s.c.Values)), rows), s.Ask(leaf).May; !got.Equal(want) {
		s.t.Errorf("keeps %s, want %s\n%s", got, want, Describe(leaf))
	}
}

// Finds fails unless the verdict is exactly the rows given.
func (s *Small) Finds(leaf *predicate.Leaf, rows ...uint32) {
	s.t.Helper()
	s.Keeps(leaf, rows...)
	if v := s.Ask(leaf); !v.Exact() {
		s.t.Errorf("must %s, may %s: not exact\n%s", v.Must, v.May, Describe(leaf))
	}
}
