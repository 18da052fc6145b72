package predicate_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/predicate/icebergjson"
	"github.com/skomerdb/skomer/internal/predicate/sqltext"
)

// rounds is the number of random filters, SKOMER_ROUNDS for longer runs.
func rounds(n int) int {
	if s, err := strconv.Atoi(os.Getenv("SKOMER_ROUNDS")); err == nil {
		return s
	}
	return n
}

// randomCells draws the rows of one column.
func randomCells(r *rand.Rand, c testColumn, n int) []cell {
	nulls := pick(r, []float64{0, 0.2, 0.9, 1})
	one := func() cell {
		if c.pool == nil || r.Float64() < nulls {
			return cell{null: true}
		}
		return cell{v: pick(r, c.pool)}
	}
	out := make([]cell, n)
	for i := range out {
		if !c.list {
			out[i] = one()
			continue
		}
		if r.IntN(5) == 0 {
			out[i].null = true
			continue
		}
		for range r.IntN(4) {
			e := one()
			if c.path.Leaf().Name == "key" && e.null {
				e = cell{v: pick(r, c.pool)}
			}
			out[i].list = append(out[i].list, e)
		}
	}
	return out
}

// garbage is a value to leave in the slot of a null.
func garbage(r *rand.Rand, c testColumn) column.Value { return pick(r, c.pool) }

func plainVector(r *rand.Rand, c testColumn, cells []cell) *column.Vector {
	b := column.NewBuilder(c.typ())
	for _, x := range cells {
		switch {
		case c.pool == nil:
			b.AppendNull()
		case x.null:
			b.Append(garbage(r, c))
		default:
			b.Append(x.v)
		}
	}
	v := b.Finish()
	setValidity(r, v, cells)
	return v
}

// setValidity marks nulls, with noise past the last row, and without a bitmap where nothing is null, sometimes.
func setValidity(r *rand.Rand, v *column.Vector, cells []cell) {
	v.Valid = make([]uint64, (len(cells)+63)/64)
	nulls := false
	for i := range len(v.Valid) * 64 {
		null := i < len(cells) && cells[i].null
		nulls = nulls || null
		if i < len(cells) && !null || i >= len(cells) && r.IntN(2) == 0 {
			v.Valid[i/64] |= 1 << (i % 64)
		}
	}
	if !nulls && r.IntN(2) == 0 {
		v.Valid = nil
	}
}

func dictVector(r *rand.Rand, c testColumn, cells []cell) *column.Vector {
	values := append([]column.Value(nil), c.pool...)
	r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	b := column.NewBuilder(c.typ())
	at := map[column.Value]uint32{}
	for i, v := range values {
		b.Append(v)
		at[v] = uint32(i)
	}
	nullInDict := r.IntN(3) == 0
	if nullInDict {
		b.AppendNull()
	}
	v := &column.Vector{Type: c.typ(), Len: len(cells), Dict: b.Finish(), Idx: make([]uint32, len(cells))}
	for i, x := range cells {
		v.Idx[i] = uint32(r.IntN(len(values)))
		if !x.null {
			v.Idx[i] = at[x.v]
		}
	}
	setValidity(r, v, cells)
	if nullInDict { // and not in the vector
		for i, x := range cells {
			if x.null {
				v.Idx[i] = uint32(len(values))
			}
		}
		v.Valid = nil
	}
	return v
}

func vectorOf(r *rand.Rand, c testColumn, cells []cell) *column.Vector {
	switch {
	case c.list:
		return listVector(r, c, cells)
	case c.pool != nil && r.IntN(2) == 0:
		return dictVector(r, c, cells)
	default:
		return plainVector(r, c, cells)
	}
}

// listVector makes a list, or a map whose other side is empty of meaning.
func listVector(r *rand.Rand, c testColumn, cells []cell) *column.Vector {
	around := c.path[len(c.path)-2]
	inner := c
	inner.list = false
	elements := []cell{{v: pick(r, c.pool)}} // no row's
	v := &column.Vector{Type: around.Type, Len: len(cells), Off: []uint32{1}}
	for _, x := range cells {
		items := x.list
		if x.null && r.IntN(2) == 0 {
			items = []cell{{v: pick(r, c.pool)}}
		}
		elements = append(elements, items...)
		v.Off = append(v.Off, uint32(len(elements)))
	}
	setValidity(r, v, cells)
	v.Kids = []*column.Vector{vectorOf(r, inner, elements)}
	if around.Type.Kind == column.Map {
		other := &column.Vector{Type: column.Of(column.Unknown), Len: len(elements)}
		v.Kids = append(v.Kids, other)
		if c.path.Leaf().Name == "value" {
			v.Kids[0], v.Kids[1] = v.Kids[1], v.Kids[0]
		}
	}
	return v
}

// randomSyntax draws a filter over cols. icebergOnly leaves out what expression JSON cannot say.
func randomSyntax(r *rand.Rand, cols []testColumn, depth int, icebergOnly bool) *syntax {
	if depth > 0 && r.IntN(3) > 0 {
		if r.IntN(4) == 0 {
			return &syntax{op: "not", kids: []*syntax{randomSyntax(r, cols, depth-1, icebergOnly)}}
		}
		s := &syntax{op: pick(r, []string{"and", "or"})}
		for range 2 + r.IntN(2) {
			s.kids = append(s.kids, randomSyntax(r, cols, depth-1, icebergOnly))
		}
		return s
	}
	if r.IntN(30) == 0 {
		return &syntax{op: pick(r, []string{"true", "false"})}
	}
	at := r.IntN(len(cols))
	for icebergOnly && cols[at].list {
		at = r.IntN(len(cols))
	}
	return randomTest(r, cols[at], at, icebergOnly)
}

func randomTest(r *rand.Rand, c testColumn, at int, icebergOnly bool) *syntax {
	ops := []string{"=", "<>", "<", "<=", ">", ">=", "in", "not-in", "null", "not-null"}
	kind := c.typ().Kind
	switch {
	case c.list:
		ops = []string{"contains", "not-contains"}
	case kind == column.String && icebergOnly:
		ops = append(ops, "prefix", "not-prefix")
	case kind == column.String:
		ops = append(ops, "prefix", "not-prefix", "like", "not-like", "like", "not-like", "ilike", "not-ilike", "match", "not-match", "match-any", "not-match-any")
	case kind.Floating():
		ops = append(ops, "nan", "not-nan")
	}
	s := &syntax{op: pick(r, ops), column: at}
	n := 1
	switch s.op {
	case "in", "not-in":
		n = 1 + r.IntN(12)
	case "like", "not-like", "ilike", "not-ilike":
		s.pattern, s.escape = randomPattern(r)
	case "match", "not-match", "match-any", "not-match-any":
		s.pattern = randomRegex(r)
	}
	for range n {
		x := c.literal(r)
		if !icebergOnly && s.op != "prefix" && s.op != "not-prefix" && r.IntN(15) == 0 {
			x = literal{sql: "NULL", null: true}
		}
		s.values = append(s.values, x)
	}
	if (s.op == "contains" || s.op == "not-contains") && s.values[0].null {
		s.values[0] = c.literal(r)
	}
	return s
}

func randomPattern(r *rand.Rand) (string, rune) {
	escape := pick(r, []rune{0, 0, '!', 'é'})
	var out string
	for range r.IntN(5) {
		x := pick(r, []string{"%", "_", "a", "b", "é", "foo", "%", `\`, "日", "ab", "'"})
		if escape != 0 && r.IntN(3) == 0 {
			out += string(escape) + pick(r, []string{"%", "_", "a", string(escape)})
			continue
		}
		if x == string(escape) {
			continue
		}
		out += x
	}
	return out, escape
}

func randomRegex(r *rand.Rand) string {
	out := ""
	for range 1 + r.IntN(4) {
		out += pick(r, []string{"a", "b", "é", "foo", ".", "[ab]", "(a|FOO)", "日?", `\\`, "^", "$", "b*", "[^a]", `\x{FFFD}`, "(?i)É", "'"})
	}
	return out
}

// testBatch is rows of all columns and their vectors.
type testBatch struct {
	rows [][]cell
	vecs []*column.Vector
}

func randomBatch(r *rand.Rand, cols []testColumn) testBatch {
	n := pick(r, []int{0, 1, 7, 63, 64, 65, 130, 300})
	b := testBatch{rows: make([][]cell, n)}
	for _, c := range cols {
		cells := randomCells(r, c, n)
		b.vecs = append(b.vecs, vectorOf(r, c, cells))
		for i := range cells {
			b.rows[i] = append(b.rows[i], cells[i])
		}
	}
	return b
}

func (b testBatch) batch(reads []column.Path, cols []testColumn) *column.Batch {
	out := &column.Batch{Rows: len(b.rows)}
	for _, p := range reads {
		for i, c := range cols {
			if (predicate.Column{Path: c.path}).Read().Leaf().ID == p.Leaf().ID {
				out.Cols = append(out.Cols, b.vecs[i])
				break
			}
		}
	}
	return out
}

// without leaves out one of the map's two test columns, whose vectors are made apart.
func without(cols []testColumn, name string) []testColumn {
	return slices.DeleteFunc(slices.Clone(cols), func(c testColumn) bool { return c.sqlName == name })
}

func hasList(t *predicate.Tree) bool {
	found := false
	t.Leaves(func(l *predicate.Leaf) { found = found || l.Op == predicate.Contains })
	return found
}

func TestFiltersEqualTheOracle(t *testing.T) {
	r := seeded(t)
	all, schema := testColumns()
	passed, tested := 0, 0
	for range rounds(1000) {
		cols := without(all, "m.value")
		if r.IntN(2) == 0 {
			cols = without(all, "m.key")
		}
		b := randomBatch(r, cols)
		for _, iceberg := range []bool{false, true} {
			s := randomSyntax(r, cols, 4, iceberg)
			text := s.text(cols, r)
			tree, err := sqltext.Parse(text, schema)
			if iceberg {
				text = s.json(cols, r)
				tree, err = icebergjson.Parse([]byte(text), schema, true)
			}
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			checkNormalForm(t, tree)
			want := make([]bool, len(b.rows))
			for i, row := range b.rows {
				if want[i] = s.sql(row) == yes; iceberg {
					want[i] = s.iceberg(row, false)
				}
				tested++
				if want[i] {
					passed++
				}
				if !hasList(tree) && matchTree(tree, cols, row) != want[i] {
					t.Fatalf("row %v of %s, bound as %s: Matches is not %v", row, text, tree, want[i])
				}
			}
			e := predicate.Compile(tree)
			checkBits(t, text, tree, e.Rows(b.batch(e.Reads(), cols)), want, b.rows)
			if !iceberg {
				checkNegation(t, s, tree, b, cols)
				checkText(t, text, tree, schema)
			}
		}
	}
	if share := float64(passed) / float64(tested); share < 0.2 || share > 0.8 {
		t.Errorf("%.2f of the rows passed: the filters are too dull", share)
	}
}

func checkBits(t *testing.T, text string, tree *predicate.Tree, got []uint64, want []bool, rows [][]cell) {
	t.Helper()
	if len(got) != (len(want)+63)/64 {
		t.Fatalf("%d words for %d rows", len(got), len(want))
	}
	for i := range len(got) * 64 {
		bit := got[i/64]>>(i%64)&1 == 1
		if i >= len(want) && bit {
			t.Fatalf("%s: bit %d past the %d rows is set", text, i, len(want))
		}
		if i < len(want) && bit != want[i] {
			t.Fatalf("row %d %v of %s\nbound as %s: got %v", i, rows[i], text, tree, bit)
		}
	}
}

func checkNegation(t *testing.T, s *syntax, tree *predicate.Tree, b testBatch, cols []testColumn) {
	t.Helper()
	not := predicate.Not(tree)
	e := predicate.Compile(not)
	want := make([]bool, len(b.rows))
	for i, row := range b.rows {
		want[i] = s.sql(row) == no
	}
	checkBits(t, "NOT "+tree.String(), not, e.Rows(b.batch(e.Reads(), cols)), want, b.rows)
	if again := predicate.Not(not).String(); again != tree.String() {
		t.Fatalf("NOT NOT %s is %s", tree, again)
	}
}

func checkText(t *testing.T, text string, tree *predicate.Tree, schema *column.Schema) {
	t.Helper()
	again, err := sqltext.Parse(tree.String(), schema)
	if err != nil {
		t.Fatalf("%s\nbound as %s does not parse again: %v", text, tree, err)
	}
	if again.String() != tree.String() {
		t.Fatalf("%s\nparses again as\n%s", tree, again)
	}
}

func checkNormalForm(t *testing.T, tree *predicate.Tree) {
	t.Helper()
	var walk func(n *predicate.Tree, above predicate.Kind)
	walk = func(n *predicate.Tree, above predicate.Kind) {
		switch n.Kind {
		case predicate.And, predicate.Or:
			if n.Kind == above || len(n.Kids) < 2 {
				t.Fatalf("%s is not in normal form", tree)
			}
		case predicate.True, predicate.False:
			if n != tree {
				t.Fatalf("%s has a constant inside", tree)
			}
		}
		seen := map[string]bool{}
		for _, k := range n.Kids {
			if k.Kind == predicate.Test {
				if text := k.String() + fmt.Sprint(k.Leaf.Unknown); seen[text] {
					t.Fatalf("%s repeats %s", tree, k)
				} else {
					seen[text] = true
				}
			}
			walk(k, n.Kind)
		}
	}
	walk(tree, predicate.True)
}
