package indextest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
)

// Law is the property test of a kind: random columns of every type, fed in random batches under random budgets, asked random
// leaves of every operator, sign and dialect, also at promoted types. It fails on a wrong "no", a wrong claim, a verdict weaker
// than Says = Exact promises (unless Weak excuses it), bytes that differ between two builds, more waves than MaxWaves, and on
// powers of the verdict table that were never reached.
type Law struct {
	Kind     index.Kind
	MaxWaves int
	Columns  int // drawn; × SKOMER_LONG
	Params   index.Params
	Types    []column.Type // that the kind takes; nil: all
	Weak     func(*predicate.Leaf, *Column) bool
	reached  map[string]int
}

// Run runs the law.
func (l *Law) Run(t *testing.T) {
	r := Rand(t)
	l.reached = map[string]int{}
	types := l.Types
	if types == nil {
		types = Types
	}
	for i := range Rounds(l.Columns) {
		c := DrawColumn(r, types[i%len(types)], []int{0, 1, 2, 63, 64, 65, 100, 500, 1500}[r.IntN(9)])
		l.column(t, r, &c)
		if t.Failed() {
			return
		}
	}
	for _, typ := range types {
		for _, op := range Ops(typ) {
			l.mustReach(t, r, typ, op)
		}
	}
}

func (l *Law) column(t *testing.T, r *rand.Rand, c *Column) {
	spec := SpecOf(r, c.Type, len(c.Values))
	spec.Params = l.Params
	budget := index.Budget{Memory: []int64{0, 1, 4 << 10, 64 << 10}[r.IntN(4)], TempDir: t.TempDir()}
	a, b := Build(t, r, l.Kind, c, spec, budget), Build(t, r, l.Kind, c, spec, budget)
	if !bytes.Equal(a.Root, b.Root) || !bytes.Equal(a.Body, b.Body) {
		t.Fatalf("%s: two builds of %d rows differ", c.Type, len(c.Values))
	}
	l.cut(t, r, c, spec, budget, &a)
	if left, _ := os.ReadDir(budget.TempDir); len(left) > 0 {
		t.Fatalf("%d temporary files left", len(left))
	}
	if a.Root == nil {
		if a.Reason == "" {
			t.Fatalf("%s: nothing kept and no reason", c.Type)
		}
		l.reached["not kept"]++
		return
	}
	reader, err := l.Kind.Open(a.Root, spec.Rows)
	if err != nil {
		t.Fatalf("%s: open: %v", c.Type, err)
	}
	present := Promotions(c.Type)
	for range 60 {
		l.leaf(t, reader, &a, c, DrawLeaf(r, c, present[r.IntN(len(present))]))
	}
}

// cut demands of a builder that can end its segment early that more rows announced make no other artifact.
func (l *Law) cut(t *testing.T, r *rand.Rand, c *Column, spec index.Spec, budget index.Budget, want *Artifact) {
	rows := spec.Rows
	builder := func() index.Builder {
		b, err := l.Kind.NewBuilder(spec, budget)
		if err != nil {
			t.Fatalf("%s: %v", c.Type, err)
		}
		return b
	}
	b := builder()
	_, ok := b.(index.Cutter)
	_ = b.Close()
	if !ok {
		return
	}
	spec.Rows += uint32(1 + r.IntN(3*len(c.Values)+100))
	b = builder()
	defer func() { _ = b.Close() }()
	x := b.(index.Cutter)
	for i := range c.Values {
		if err := b.Add([]*column.Vector{c.Vector(r, i, i+1)}); err != nil {
			t.Fatalf("%s: %v", c.Type, err)
		}
	}
	if err := x.Cut(rows + 1); err == nil {
		t.Fatalf("%s: a segment of %d rows ends with one more", c.Type, rows)
	}
	if err := x.Cut(rows); err != nil {
		t.Fatalf("%s: %v", c.Type, err)
	}
	var body Body
	root, reason, err := b.Finish(&body)
	if err != nil || !bytes.Equal(root, want.Root) || !bytes.Equal(body.Bytes(), want.Body) || reason != want.Reason {
		t.Fatalf("%s: %d rows make another artifact where %d were announced: %v", c.Type, rows, spec.Rows, err)
	}
	l.reached["cut"]++
}

func (l *Law) leaf(t *testing.T, reader index.Reader, a *Artifact, c *Column, leaf *predicate.Leaf) {
	p := reader.Probe(leaf)
	if bad := Wrong(leaf, c, p.Verdict()); bad != "" {
		t.Errorf("%s: before the first wave: %s\n%s", c.Type, bad, Describe(leaf))
	}
	v, cost, err := Run(p, a.Body)
	if err != nil {
		t.Errorf("%s: %v\n%s", c.Type, err, Describe(leaf))
	}
	if bad := Wrong(leaf, c, v); bad != "" {
		t.Errorf("%s: %s\n%s", c.Type, bad, Describe(leaf))
	}
	if cost.Waves > l.MaxWaves {
		t.Errorf("%s: %d waves\n%s", c.Type, cost.Waves, Describe(leaf))
	}
	power := l.Kind.Says([]column.Path{Path(leaf.Column.Type())}, leaf)
	if power == index.Exact && !v.Exact() && (l.Weak == nil || !l.Weak(leaf, c)) {
		t.Errorf("%s: said exact, must %s, may %s\n%s", c.Type, v.Must, v.May, Describe(leaf))
	}
	key := reachKey(c.Type, leaf.Op, leaf.Negated, leaf.Dialect)
	switch {
	case power == index.Nothing:
	case !v.May.Full() && !v.May.Empty() && power == index.Exact, power == index.Superset && (!v.May.Full() || !v.Must.Empty()):
		l.reached[key+power.String()]++
	}
	if power == index.Superset && !v.Must.Empty() {
		l.reached["claims"]++
	}
}

// mustReach draws more columns of the type until every power that Says grants to the operator has shown, and fails where one
// never does.
func (l *Law) mustReach(t *testing.T, r *rand.Rand, typ column.Type, op predicate.Op) {
	for _, negated := range []bool{false, true} {
		for _, d := range []predicate.Dialect{predicate.SQL, predicate.Iceberg} {
			leaf := &predicate.Leaf{Column: predicate.Column{Path: Path(typ)}, Op: op, Negated: negated, Dialect: d, Values: []column.Value{{Kind: typ.Kind}}}
			if op == predicate.Like {
				leaf.Pattern = Pattern("a%", 0)
			}
			switch op {
			case predicate.ILike:
				leaf.Pattern = AnyCase("%abc%", 0)
			case predicate.Match:
				leaf.Regex = Regex("abc", false)
			}
			power := l.Kind.Says([]column.Path{Path(typ)}, leaf)
			key := reachKey(typ, op, negated, d) + power.String()
			for tries := 0; power != index.Nothing && l.reached[key] == 0 && !t.Failed(); tries++ {
				if tries == 500 {
					t.Errorf("%s op %d negated %v dialect %d: says %s, never reached", typ, op, negated, d, power)
				}
				c := DrawColumn(r, typ, 200)
				l.column(t, r, &c)
			}
		}
	}
}

func reachKey(t column.Type, op predicate.Op, negated bool, d predicate.Dialect) string {
	family := t.Kind
	if !family.Floating() && family != column.Bool && family != column.String {
		family = column.Unknown
	}
	return fmt.Sprint(family, op, negated, d)
}

// Reached counts, for a kind's own assertions: "not kept", "claims".
func (l *Law) Reached(what string) int { return l.reached[what] }

// Promotions is the types under which a column built as t may be asked, t first.
func Promotions(t column.Type) []column.Type {
	switch t.Kind {
	case column.Int:
		return []column.Type{t, column.Of(column.Long)}
	case column.Float:
		return []column.Type{t, column.Of(column.Double)}
	case column.Decimal:
		return []column.Type{t, column.DecimalOf(38, t.Scale)}
	default:
		return []column.Type{t}
	}
}
