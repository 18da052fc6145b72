// Package predicate answers: does a row match, and what is asked of which column?
//
// A bound predicate is a Tree of AND and OR over signed leaves. There is no NOT node: binding pushes every negation into
// the leaves (the normal form), where Leaf.Negated and Leaf.Dialect say which rows pass. A row then either passes or it does
// not; three-valued logic lives inside a leaf. Columns are named by field id. Texts are parsed by the edge packages
// sqltext and icebergjson. The package knows nothing of files, indexes or plans.
package predicate

import "github.com/skomerdb/skomer/internal/column"

// Op is what a leaf asks of a value.
type Op uint8

// The leaf operators. Comparisons hold one value, In any number (sorted, distinct, maybe none: then nothing matches).
const (
	IsNull       Op = iota // two-valued: its negation is IS NOT NULL
	IsNaN                  // a null is neither NaN nor not NaN in SQL
	Equal                  //
	Less                   //
	LessEqual              //
	Greater                //
	GreaterEqual           //
	In                     // equal to any of Values
	StartsWith             // String: Values[0] is the prefix
	Like                   // String: Pattern
	Contains               // List, Map: some element equals Values[0] (SQL's v = ANY(list))
	ILike                  // String: Pattern, whose AnyCase is set
	Match                  // String: Regex
)

// Dialect says which rows a leaf passes when the plain answer is not a simple yes.
type Dialect uint8

const (
	// SQL is three-valued: a leaf and its negation both fail on null. Floats follow IEEE 754 with -0.0 = 0.0: a comparison
	// with NaN is false, its negation true.
	SQL Dialect = iota
	// Iceberg is expression JSON: a negated leaf passes null rows too, and every float comparison passes NaN rows,
	// negated or not, since engines differ there and a residual follows.
	Iceberg
)

// Column is the column of a leaf: the path from a top-level field to the primitive field whose values are compared, or to an
// expression of it. For Contains the path runs through one list or map and ends at its element, key or value, or at a field of structs in
// it. A null test may end at a nested field.
type Column struct{ Path column.Path }

// ID is the field id of the compared values.
func (c Column) ID() int { return c.Path.Leaf().ID }

// Type is the type of the compared values.
func (c Column) Type() column.Type { return c.Path.Leaf().Type }

// Name is the dotted name, for people.
func (c Column) Name() string { return c.Path.Name() }

// Read is the path whose vector the evaluator wants: the column itself, the list around a repeated element, or the column that an
// expression is made of. Nulls of optional structs above it are merged into the vector.
func (c Column) Read() column.Path {
	base := c.Path.Base()
	for i, f := range base {
		if f.Type.Kind == column.List || f.Type.Kind == column.Map {
			return base[:i+1]
		}
	}
	return base
}

// Around is where in the path the list or map around a repeated value stands; ok is false where a row holds one value.
func (c Column) Around() (at int, ok bool) {
	for i := range len(c.Path) - 1 {
		if k := c.Path[i].Type.Kind; (k == column.List || k == column.Map) && c.Path[i+1].Expr == "" {
			return i, true
		}
	}
	return 0, false
}

// Leaf is a signed test of one column. Leaves made by Of and Bind are canonical: Values are sorted and distinct, without
// NaN and -0.0, one value of In is Equal, and what SQL can say without a negation is not Negated (x >= 5, not NOT x < 5;
// never so on floats).
type Leaf struct {
	Column  Column
	Op      Op
	Values  []column.Value // of the column's type exactly; see Op
	Pattern *Pattern       // Like, ILike
	Regex   *Regex         // Match
	Negated bool
	Dialect Dialect
	// Unknown marks a comparison with SQL's NULL, which passes no row and whose negation passes none either. Op is then
	// In, Values is empty and Negated false, so that a reader who ignores the mark is right.
	Unknown bool
	made    *made
}

// Kind tells the nodes of a Tree apart.
type Kind uint8

// The nodes. True and False appear only as the whole tree.
const (
	True Kind = iota
	False
	And
	Or
	Test // a leaf
)

// Tree is a predicate in normal form: And and Or have two or more kids and alternate, Test has a Leaf.
type Tree struct {
	Kind Kind
	Kids []*Tree
	Leaf *Leaf
}

// Leaves calls visit for every leaf, left to right.
func (t *Tree) Leaves(visit func(*Leaf)) {
	if t.Kind == Test {
		visit(t.Leaf)
	}
	for _, k := range t.Kids {
		k.Leaves(visit)
	}
}
