package ordered

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// tupleTable is some columns with the same rows; column i has field id 10 + i.
type tupleTable struct {
	cols []it.Column
	rows int
}

func pathOf(i int, t column.Type) column.Path {
	return column.Path{{ID: 10 + i, Name: fmt.Sprintf("c%d", i), Type: t}}
}

func (x *tupleTable) paths() (out []column.Path) {
	for i, c := range x.cols {
		out = append(out, pathOf(i, c.Type))
	}
	return out
}

func drawTable(r *rand.Rand, columns, rows int) *tupleTable {
	x := &tupleTable{rows: rows}
	for range columns {
		t := it.Types[r.IntN(len(it.Types))]
		pool := it.DrawColumn(r, t, 1+r.IntN(12)).Values
		c := it.Column{Type: t}
		for range rows {
			if v := pool[r.IntN(len(pool))]; r.IntN(10) > 0 {
				c.Values = append(c.Values, v)
			} else {
				c.Values = append(c.Values, nil)
			}
		}
		x.cols = append(x.cols, c)
	}
	return x
}

func (x *tupleTable) spec() index.Spec {
	return index.Spec{Columns: x.paths(), Rows: uint32(x.rows), RowGroups: []uint32{0}, Pages: []uint32{0}}
}

func (x *tupleTable) build(t testing.TB, r *rand.Rand, k Kind, budget index.Budget) it.Artifact {
	t.Helper()
	b, err := k.NewBuilder(x.spec(), budget)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	for i := 0; i < x.rows; {
		j := min(x.rows, i+1+r.IntN(80))
		vectors := make([]*column.Vector, len(x.cols))
		for c := range x.cols {
			vectors[c] = x.cols[c].Vector(r, i, j)
		}
		if err := b.Add(vectors); err != nil {
			t.Fatal(err)
		}
		i = j
	}
	body := &it.Body{}
	root, reason, err := b.Finish(body)
	if err != nil || reason != "" {
		t.Fatal(reason, err)
	}
	return it.Artifact{Root: root, Body: body.Bytes()}
}

// long reports whether tuples or what they are compared with may be cut.
func (x *tupleTable) long(leaves []*predicate.Leaf) bool {
	const most = maxKey / 4 // four columns at most
	for _, c := range x.cols {
		if slices.ContainsFunc(c.Values, func(v *column.Value) bool { return v != nil && len(v.S) > most-4 }) {
			return true
		}
	}
	return slices.ContainsFunc(leaves, func(l *predicate.Leaf) bool {
		return slices.ContainsFunc(l.Values, func(v column.Value) bool { return len(v.S) > most-4 })
	})
}

// leaves draws a conjunction; many of its leaves are equalities.
func (x *tupleTable) leaves(r *rand.Rand) (out []*predicate.Leaf) {
	for range 1 + r.IntN(4) {
		i := r.IntN(len(x.cols))
		c := &x.cols[i]
		present := it.Promotions(c.Type)
		l := it.DrawLeaf(r, c, present[r.IntN(len(present))])
		for tries := 0; tries < 4 && l.Op != predicate.Equal && l.Op != predicate.In && l.Op != predicate.IsNull; tries++ {
			l = it.DrawLeaf(r, c, c.Type)
		}
		l.Column = predicate.Column{Path: pathOf(i, l.Column.Type())}
		out = append(out, l)
	}
	return out
}

// passes is the rows that pass all leaves, by the oracle.
func (x *tupleTable) passes(leaves []*predicate.Leaf) *rowset.Set {
	rows := index.NewRows(uint32(x.rows))
	for i := range x.rows {
		pass := true
		for _, l := range leaves {
			v := x.cols[l.Column.ID()-10].Values[i]
			if v != nil {
				w := it.Promote(*v, l.Column.Type())
				v = &w
			}
			pass = pass && it.Passes(l, v)
		}
		if pass {
			rows.Add(rowset.Range{Start: uint32(i), End: uint32(i) + 1})
		}
	}
	return rows.Set()
}

func describeAll(leaves []*predicate.Leaf) (s string) {
	for _, l := range leaves {
		s += it.Describe(l) + fmt.Sprintf(" on %d\n", l.Column.ID())
	}
	return s
}

// TestTuples: random conjunctions over one to four columns of any type, nulls and NaNs in any of them, asked jointly and leaf by leaf.
func TestTuples(t *testing.T) {
	r := it.Rand(t)
	joined, narrowed, exact := map[int]int{}, 0, 0
	for round := range it.Rounds(150) {
		x := drawTable(r, 1+r.IntN(4), []int{0, 1, 65, 300}[r.IntN(4)])
		k := []Kind{{}, {sizes{block: 60, page: 300, runs: 3}}}[round%2]
		a := x.build(t, r, k, index.Budget{Memory: 1 << (10 + r.IntN(8)), TempDir: t.TempDir()})
		if b := x.build(t, r, k, index.Budget{}); !bytes.Equal(a.Root, b.Root) || !bytes.Equal(a.Body, b.Body) {
			t.Fatal("the budget changes the bytes")
		}
		reader, err := k.Open(a.Root, uint32(x.rows))
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			leaves := x.leaves(r)
			used := k.Joins(x.paths(), leaves)
			joined[len(used)]++
			check := func(asked []*predicate.Leaf, p index.Probe, power index.Power) {
				v, cost, err := it.Run(p, a.Body)
				if err != nil || cost.Waves > 2 {
					t.Fatalf("%d waves, %v\n%s", cost.Waves, err, describeAll(asked))
				}
				want := x.passes(asked)
				if !rowset.AndNot(want, v.May).Empty() || !rowset.AndNot(v.Must, want).Empty() {
					t.Fatalf("must %s, may %s, want %s\n%s", v.Must, v.May, want, describeAll(asked))
				}
				if !v.May.Full() {
					narrowed++
				}
				if v.Exact() {
					exact++
				} else if power == index.Exact && !x.long(asked) && !slices.ContainsFunc(asked, func(l *predicate.Leaf) bool {
					return l.Op == predicate.Like || l.Op == predicate.In && len(l.Values) == 0 && index.PassesNaN(l)
				}) {
					t.Fatalf("not exact: must %s, may %s, want %s\n%s", v.Must, v.May, want, describeAll(asked))
				}
			}
			if len(used) > 1 {
				check(used, reader.(index.JointReader).ProbeAll(used), index.Exact)
			}
			check(leaves, reader.(index.JointReader).ProbeAll(leaves), index.Superset) // more than Joins picked: still sound
			for _, l := range leaves {
				check([]*predicate.Leaf{l}, reader.Probe(l), k.Says(x.paths(), l))
			}
		}
	}
	t.Logf("leaves joined: %v; %d answers narrow, %d exact", joined, narrowed, exact)
	if joined[2] < 300 || joined[3] < 50 || narrowed < 1000 {
		t.Error("too few conjunctions were joined")
	}
}

// TestTupleOrder: tuples compare as their columns do, one after the other; null below every value, NaN above.
func TestTupleOrder(t *testing.T) {
	r := it.Rand(t)
	rank := func(v *column.Value) int {
		switch {
		case v == nil:
			return 0
		case v.IsNaN():
			return 2
		default:
			return 1
		}
	}
	for range it.Rounds(300) {
		x := drawTable(r, 2+r.IntN(2), 40)
		parts, err := partsOf(x.paths())
		if err != nil {
			t.Fatal(err)
		}
		ts := newTuples(parts)
		var vectors []*column.Vector
		for c := range x.cols {
			vectors = append(vectors, x.cols[c].Vector(r, 0, 40))
		}
		if err := ts.load(vectors); err != nil {
			t.Fatal(err)
		}
		var keys [][]byte
		for i := range 40 {
			keys = append(keys, bytes.Clone(ts.of(i)))
		}
		for i := range 40 {
			for j := range 40 {
				want := 0
				for c := 0; c < len(x.cols) && want == 0; c++ {
					a, b := x.cols[c].Values[i], x.cols[c].Values[j]
					if want = rank(a) - rank(b); want == 0 && rank(a) == 1 {
						want = column.Compare(*a, *b)
					}
				}
				if got := bytes.Compare(keys[i], keys[j]); got*want < 0 || (got == 0) != (want == 0) {
					t.Fatalf("rows %d and %d compare as %d, their tuples %x and %x as %d", i, j, want, keys[i], keys[j], got)
				}
			}
		}
	}
}

// TestTuplesOfLowBytes: texts made of the bytes that tuples use for themselves keep their order, and no two pairs have one tuple.
func TestTuplesOfLowBytes(t *testing.T) {
	texts := []*column.Value{nil}
	var grow func(string)
	grow = func(s string) {
		v := column.StringValue(s)
		if texts = append(texts, &v); len(s) < 2 {
			for _, c := range []string{"\x00", "\x01", "\x02", "\x7f"} {
				grow(s + c)
			}
		}
	}
	grow("")
	x := &tupleTable{cols: []it.Column{{Type: str}, {Type: str}}}
	for _, a := range texts {
		for _, b := range texts {
			x.cols[0].Values, x.cols[1].Values = append(x.cols[0].Values, a), append(x.cols[1].Values, b)
			x.rows++
		}
	}
	parts, err := partsOf(x.paths())
	if err != nil {
		t.Fatal(err)
	}
	ts, r := newTuples(parts), it.Rand(t)
	if err := ts.load([]*column.Vector{x.cols[0].Vector(r, 0, x.rows), x.cols[1].Vector(r, 0, x.rows)}); err != nil {
		t.Fatal(err)
	}
	last := []byte(nil) // pairs were made in their order
	for i := range x.rows {
		key := bytes.Clone(ts.of(i))
		if i > 0 && bytes.Compare(last, key) >= 0 {
			t.Fatalf("tuple %x of pair %d is not above %x", key, i, last)
		}
		last = key
	}
}

func two(long, text it.Column) *tupleTable {
	return &tupleTable{cols: []it.Column{long, text}, rows: len(long.Values)}
}

func tupleSample() *tupleTable {
	long := column.Of(column.Long)
	return two(it.Of(long, 2, 1, nil, 1, 2, 1), it.Of(str, "b", "a", "a", nil, "", "a\x00b"))
}

func on(i int, l *predicate.Leaf) *predicate.Leaf {
	c := *l
	c.Column = predicate.Column{Path: pathOf(i, l.Column.Type())}
	return &c
}

func TestGoldenTuples(t *testing.T) {
	a := tupleSample().build(t, rand.New(rand.NewPCG(1, 1)), Kind{}, index.Budget{})
	it.Golden(t, "tuples.v2", `
long [2 1 null 1 2 1], string [b a a null '' 'a 00 b']
root: 02 version, 02 columns: 0a field id, 03 00 00 long; 0b field id, 0d 00 00 string; 06 rows, body bytes; 00 nulls;
the last tuple, data bytes, 00 blocks, one entry
body: 00 unique, 06 keys: 00, 01 61 00; 01 long 1, 00; 01 long 1, 01 61 00; 01 long 1, 01 61 00 ff 62 00; …`, a)
}

func TestTuplesByName(t *testing.T) {
	x := tupleSample()
	a := x.build(t, rand.New(rand.NewPCG(1, 1)), Kind{}, index.Budget{})
	reader, err := Kind{}.Open(a.Root, uint32(x.rows))
	if err != nil {
		t.Fatal(err)
	}
	long := column.Of(column.Long)
	one := on(0, it.Test(long, predicate.Equal, 1))
	for _, c := range []struct {
		leaves []*predicate.Leaf
		joins  int
		rows   []uint32
	}{
		{[]*predicate.Leaf{one, on(1, it.Test(str, predicate.Greater, "a"))}, 2, []uint32{5}},
		{[]*predicate.Leaf{one, on(1, it.Test(str, predicate.LessEqual, "a"))}, 2, []uint32{1}},
		{[]*predicate.Leaf{one, on(1, it.Test(str, predicate.IsNull))}, 2, []uint32{3}},
		{[]*predicate.Leaf{one, on(1, it.Not(it.Test(str, predicate.Equal, "a")))}, 2, []uint32{5}},
		{[]*predicate.Leaf{one, on(1, it.In(predicate.Iceberg, it.Not(it.Test(str, predicate.Equal, "a"))))}, 2, []uint32{3, 5}},
		{[]*predicate.Leaf{on(1, it.Test(str, predicate.StartsWith, "a")), on(0, it.Test(long, predicate.In, 1, 2))}, 2, []uint32{1, 5}},
		{[]*predicate.Leaf{on(0, it.Test(long, predicate.IsNull)), on(1, it.Test(str, predicate.Equal, "a"))}, 2, []uint32{2}},
		{[]*predicate.Leaf{on(0, it.Test(long, predicate.Greater, 0)), on(0, it.Test(long, predicate.Less, 2)), on(1, it.Test(str, predicate.Equal, "a"))}, 2, []uint32{1, 3, 5}},
		{[]*predicate.Leaf{on(1, it.Test(str, predicate.Equal, "a"))}, 0, nil},
	} {
		used := Kind{}.Joins(x.paths(), c.leaves)
		if len(used) != c.joins {
			t.Errorf("joins %d leaves, want %d\n%s", len(used), c.joins, describeAll(c.leaves))
			continue
		}
		if len(used) == 0 {
			continue
		}
		v, _, err := it.Run(reader.(index.JointReader).ProbeAll(used), a.Body)
		if err != nil || !v.Exact() || !v.May.Equal(rowset.FromRows(uint32(x.rows), c.rows)) {
			t.Errorf("must %s, may %s, want %v, %v\n%s", v.Must, v.May, c.rows, err, describeAll(used))
		}
	}
}

// TestJoinedRange: both ends of a range on one column are one look-up, which reads the blocks between them only.
func TestJoinedRange(t *testing.T) {
	long := column.Of(column.Long)
	c := it.Column{Type: long}
	for i := range 5000 {
		v := column.IntValue(column.Long, int64(i*7919%5000))
		c.Values = append(c.Values, &v)
	}
	k := Kind{sizes{block: 256, page: 512, runs: 8}}
	s := it.Open(t, k, c)
	leaves := []*predicate.Leaf{it.Test(long, predicate.GreaterEqual, 1000), it.Test(long, predicate.Less, 1010), it.Test(long, predicate.In, 3, 1003, 1009, 1010)}
	used := k.Joins([]column.Path{it.Path(long)}, leaves)
	if len(used) != 3 {
		t.Fatalf("joins %d leaves", len(used))
	}
	for n := 2; n <= 3; n++ {
		v, cost, err := it.Run(s.Reader.(index.JointReader).ProbeAll(used[:n]), s.Body)
		if err != nil || !v.Exact() || v.May.Count() != int64([]int{2: 10, 3: 2}[n]) || cost.Units > 6 {
			t.Errorf("%d leaves: %s, %+v, %v", n, v.May, cost, err)
		}
	}
}

// TestTuplesMerge: merges of tables in blocks of a few tuples, some of whose rows go or come in another order, have the bytes of builds.
func TestTuplesMerge(t *testing.T) {
	r := it.Rand(t)
	for range it.Rounds(60) {
		k := Kind{sizes{block: 40 + r.IntN(600), page: 1 + r.IntN(300), runs: 1 + r.IntN(8)}}
		x := drawTable(r, 2+r.IntN(2), 1+r.IntN(200))
		cut := r.IntN(x.rows + 1)
		var sources []index.Source
		var rows, from, old []uint32
		var order []int // rows of the table
		share := []float64{1, 0.8, 0}[r.IntN(3)]
		for i, at := range [][2]int{{0, cut}, {cut, x.rows}} {
			part := &tupleTable{rows: at[1] - at[0]}
			for _, c := range x.cols {
				part.cols = append(part.cols, it.Column{Type: c.Type, Values: c.Values[at[0]:at[1]]})
			}
			a := part.build(t, r, k, index.Budget{})
			sources = append(sources, it.SourceOf(&a, uint32(part.rows)))
			rows = append(rows, uint32(part.rows))
			for row := range part.rows {
				if i > 0 || r.Float64() < share {
					order = append(order, at[0]+row)
				}
			}
		}
		if r.IntN(3) == 0 {
			r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		now := &tupleTable{rows: len(order)}
		for _, c := range x.cols {
			of := it.Column{Type: c.Type}
			for _, row := range order {
				of.Values = append(of.Values, c.Values[row])
			}
			now.cols = append(now.cols, of)
		}
		for _, row := range order {
			if row < cut {
				from, old = append(from, 0), append(old, uint32(row))
			} else {
				from, old = append(from, 1), append(old, uint32(row-cut))
			}
		}
		m, err := index.Originating(rows, from, old)
		if err != nil {
			t.Fatal(err)
		}
		body := &it.Body{}
		root, reason, err := k.Merge(now.spec(), sources, m, index.Budget{}, body)
		if err != nil || reason != "" {
			t.Fatal(reason, err)
		}
		if want := now.build(t, r, k, index.Budget{}); !bytes.Equal(root, want.Root) || !bytes.Equal(body.Bytes(), want.Body) {
			t.Fatalf("%d and %d rows, %d of which stay: a merge of other bytes than a build", rows[0], rows[1], now.rows)
		}
	}
}

func TestHostileTuples(t *testing.T) {
	x := tupleSample()
	a := x.build(t, rand.New(rand.NewPCG(1, 1)), Kind{}, index.Budget{})
	for n := range a.Root {
		if _, err := (Kind{}).Open(a.Root[:n:n], 6); !fault.Is(err, fault.Corrupt) {
			t.Fatalf("root cut to %d bytes: %v", n, err)
		}
	}
	long := column.Of(column.Long)
	leaves := []*predicate.Leaf{on(0, it.Test(long, predicate.Equal, 1)), on(1, it.Test(str, predicate.Greater, "a"))}
	for bit := range len(a.Root) * 8 {
		root := bytes.Clone(a.Root)
		root[bit/8] ^= 1 << (bit % 8)
		if reader, err := (Kind{}).Open(root, 6); err == nil {
			if v, _, _ := it.Run(reader.(index.JointReader).ProbeAll(leaves), a.Body); v.May.Size() != 6 {
				t.Fatalf("bit %d: verdict over %d rows", bit, v.May.Size())
			}
		}
	}
}

func TestTupleDeclarations(t *testing.T) {
	long := column.Of(column.Long)
	many := make([]column.Path, maxColumns+1)
	for i := range many {
		many[i] = pathOf(i, long)
	}
	for what, cols := range map[string][]column.Path{
		"twice": {pathOf(0, long), pathOf(0, long)}, "at most": many, "inside a list": {pathOf(0, long), it.ListPath(long)}, "one column": {},
	} {
		if err := (Kind{}).Check(cols, nil); err == nil {
			t.Errorf("%s: declared", what)
		}
	}
	if err := (Kind{}).Check(many[:maxColumns], nil); err != nil {
		t.Error(err)
	}
}

func FuzzTuples(f *testing.F) {
	x := tupleSample()
	a := x.build(f, rand.New(rand.NewPCG(1, 1)), Kind{}, index.Budget{})
	f.Add(a.Root, a.Body, uint32(6))
	long := column.Of(column.Long)
	leaves := []*predicate.Leaf{on(0, it.Test(long, predicate.Equal, 1)), on(1, it.Test(str, predicate.Greater, "a"))}
	f.Fuzz(func(t *testing.T, root, body []byte, rows uint32) {
		rows %= 1 << 20
		reader, err := Kind{}.Open(root, rows)
		if err != nil {
			return
		}
		if v, _, _ := it.Run(reader.(index.JointReader).ProbeAll(leaves), body); v.May.Size() != rows {
			t.Error("verdict over other rows")
		}
	})
}
