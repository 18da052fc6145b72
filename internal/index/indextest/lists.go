package indextest

import (
	"math/rand/v2"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// ListPath is a column of lists of t; it ends at the element, field id 8.
func ListPath(t column.Type) column.Path {
	element := column.Field{ID: 8, Name: "element", Type: t}
	return column.Path{{ID: 7, Name: "x", Type: column.Type{Kind: column.List, Fields: []column.Field{element}}}, element}
}

// lists is rows of lists; a nil row is null, an element may be nil too.
type lists struct {
	typ  column.Type
	rows [][]*column.Value
}

func drawLists(r *rand.Rand, t column.Type, n int) lists {
	l := lists{typ: t, rows: make([][]*column.Value, n)}
	elements := DrawColumn(r, t, 4*n)
	at := 0
	for i := range l.rows {
		if r.IntN(5) == 0 {
			continue
		}
		size := r.IntN(min(4, 4*n-at) + 1)
		l.rows[i] = append([]*column.Value{}, elements.Values[at:at+size]...)
		at += size
	}
	return l
}

// vector is rows i to j, plain or with a dictionary of lists.
func (l *lists) vector(r *rand.Rand, i, j int) *column.Vector {
	elements := Column{Type: l.typ}
	v := &column.Vector{Type: ListPath(l.typ)[0].Type, Len: j - i, Valid: make([]uint64, (j-i+63)/64), Off: []uint32{0}}
	for k, row := range l.rows[i:j] {
		if row != nil {
			v.Valid[k>>6] |= 1 << (k & 63)
		}
		elements.Values = append(elements.Values, row...)
		v.Off = append(v.Off, uint32(len(elements.Values)))
	}
	v.Kids = []*column.Vector{elements.Vector(r, 0, len(elements.Values))}
	if r.IntN(3) > 0 || v.Len == 0 {
		return v
	}
	out := &column.Vector{Type: v.Type, Len: v.Len, Dict: v, Idx: make([]uint32, v.Len)}
	for k := range out.Idx {
		out.Idx[k] = uint32(k)
	}
	if r.IntN(2) == 0 {
		out.Valid = v.Valid
	} else {
		out.Valid = make([]uint64, len(v.Valid)) // the nulls are the dictionary's
		for w := range out.Valid {
			out.Valid[w] = ^uint64(0)
		}
	}
	return out
}

// contains is the oracle: whether a row passes.
func (l *lists) contains(leaf *predicate.Leaf, row []*column.Value) bool {
	hit, doubt := false, row == nil
	for _, v := range row {
		switch {
		case v == nil:
			doubt = true
		case order(*v, leaf.Values[0]) == "=":
			hit = true
		}
	}
	switch {
	case !leaf.Negated:
		return hit
	case leaf.Dialect == predicate.Iceberg:
		return !hit
	default:
		return !hit && !doubt
	}
}

// ListLaw is the law of a kind on list elements: random lists of every type, asked Contains in every sign and dialect.
func ListLaw(t *testing.T, k index.Kind, columns, maxWaves int) {
	r := Rand(t)
	narrowed := map[[2]bool]int{}
	for i := range Rounds(columns) {
		l := drawLists(r, Types[i%len(Types)], []int{0, 1, 2, 63, 64, 65, 100, 500}[r.IntN(8)])
		spec := SpecOf(r, l.typ, len(l.rows))
		spec.Columns = []column.Path{ListPath(l.typ)}
		a, err := l.build(r, k, spec)
		if err != nil {
			t.Fatal(err)
		}
		if a.Root == nil {
			continue
		}
		reader, err := k.Open(a.Root, spec.Rows)
		if err != nil {
			t.Fatal(err)
		}
		present := Promotions(l.typ)
		for range 40 {
			as := present[r.IntN(len(present))]
			leaf := &predicate.Leaf{
				Column: predicate.Column{Path: ListPath(as)}, Op: predicate.Contains, Negated: r.IntN(2) == 0,
				Dialect: predicate.Dialect(r.IntN(2)), Values: []column.Value{l.literal(r, as)},
			}
			v := l.ask(t, reader, &a, leaf, maxWaves)
			power := k.Says(spec.Columns, leaf)
			if power == index.Exact && !v.Exact() {
				t.Errorf("%s: said exact, must %s, may %s\n%s", l.typ, v.Must, v.May, Describe(leaf))
			}
			if power != index.Nothing && (!v.May.Full() || !v.Must.Empty()) {
				narrowed[[2]bool{leaf.Negated, leaf.Dialect == predicate.Iceberg}]++
			}
			if t.Failed() {
				return
			}
		}
	}
	for i := range 4 {
		leaf := &predicate.Leaf{Column: predicate.Column{Path: ListPath(column.Of(column.Long))}, Op: predicate.Contains, Negated: i&1 == 1, Dialect: predicate.Dialect(i >> 1)}
		said := k.Says([]column.Path{leaf.Column.Path}, leaf) != index.Nothing
		if n := narrowed[[2]bool{leaf.Negated, leaf.Dialect == predicate.Iceberg}]; said != (n > 0) {
			t.Errorf("negated %v, dialect %d: says something %v, did so %d times", leaf.Negated, leaf.Dialect, said, n)
		}
	}
}

func (l *lists) literal(r *rand.Rand, t column.Type) column.Value {
	c := Column{Type: l.typ}
	for _, row := range l.rows {
		c.Values = append(c.Values, row...)
	}
	return literal(r, &c, t)
}

func (l *lists) build(r *rand.Rand, k index.Kind, spec index.Spec) (a Artifact, err error) {
	b, err := k.NewBuilder(spec, index.Budget{})
	if err != nil {
		return a, err
	}
	defer func() { _ = b.Close() }()
	for i := 0; i < len(l.rows); {
		j := min(len(l.rows), i+1+r.IntN(80))
		if err := b.Add([]*column.Vector{l.vector(r, i, j)}); err != nil {
			return a, err
		}
		i = j
	}
	var body Body
	a.Root, a.Reason, err = b.Finish(&body)
	a.Body = body.Bytes()
	return a, err
}

func (l *lists) ask(t *testing.T, reader index.Reader, a *Artifact, leaf *predicate.Leaf, maxWaves int) rowset.Verdict {
	v, cost, err := Run(reader.Probe(leaf), a.Body)
	if err != nil || cost.Waves > maxWaves {
		t.Errorf("%s: %d waves, %v\n%s", l.typ, cost.Waves, err, Describe(leaf))
	}
	for i, row := range l.rows {
		switch passes := l.contains(leaf, row); {
		case passes && !v.May.Contains(uint32(i)):
			t.Errorf("%s: row %d matches and is ruled out\n%s", l.typ, i, Describe(leaf))
		case !passes && v.Must.Contains(uint32(i)):
			t.Errorf("%s: row %d does not match and is claimed\n%s", l.typ, i, Describe(leaf))
		}
	}
	return v
}
