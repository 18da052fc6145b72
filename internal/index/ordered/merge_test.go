package ordered

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/rowset"
)

// mergeCase is sources and where their rows go.
type mergeCase struct {
	kind    Kind
	typ     column.Type
	sources []it.Column
	order   [][2]uint32 // source and row of every new row
}

// TestMergesOfManySources merges up to nine artifacts in which keys have one row, a few or very many, together or scattered, by maps of every
// kind: the bytes must be those of the artifact that is built from the new rows.
func TestMergesOfManySources(t *testing.T) {
	r := it.Rand(t)
	for i := range it.Rounds(120) {
		typ := it.Types[r.IntN(len(it.Types))]
		if i%3 == 0 {
			typ = column.Of(column.String)
		}
		c := mergeCase{typ: typ, kind: Kind{sizes{block: 40 + r.IntN(600), page: 1 + r.IntN(300), runs: 1 + r.IntN(8)}}}
		values := make([]column.Value, 1<<r.IntN(10))
		for i := range values {
			values[i] = drawKey(r, typ)
		}
		for range 1 + r.IntN(9) {
			x := it.Column{Type: typ}
			together := 1 << r.IntN(6)
			for n := r.IntN(300); len(x.Values) < n; {
				v := &values[r.IntN(len(values))]
				if r.IntN(20) == 0 {
					v = nil
				}
				for range 1 + r.IntN(together) {
					x.Values = append(x.Values, v)
				}
			}
			c.sources = append(c.sources, x)
		}
		c.drawOrder(r)
		c.check(t, r)
	}
}

// drawKey is any value, or a text that shares more than eight bytes with others and may end in zero bytes, or a text that is cut.
func drawKey(r *rand.Rand, typ column.Type) column.Value {
	if typ.Kind != column.String {
		return it.Value(r, typ)
	}
	switch r.IntN(4) {
	case 0:
		return it.Lit(typ, strings.Repeat("a", []int{7, 8, 9, 16, 17, 100}[r.IntN(6)])+strings.Repeat("\x00", r.IntN(12))+strings.Repeat("b", r.IntN(2)))
	case 1:
		return it.Lit(typ, "twenty bytes or more"+strings.Repeat("\xff", r.IntN(10))+strings.Repeat("\x00", r.IntN(10)))
	case 2:
		return it.Lit(typ, strings.Repeat("k", maxKey-1+r.IntN(4))+string(rune('a'+r.IntN(3))))
	default:
		return it.Value(r, typ)
	}
}

// drawOrder keeps all rows or some, in order or not.
func (c *mergeCase) drawOrder(r *rand.Rand) {
	share := []float64{1, 1, 0.9, 0.3}[r.IntN(4)]
	for s := range c.sources {
		for i := range c.sources[s].Values {
			if r.Float64() < share {
				c.order = append(c.order, [2]uint32{uint32(s), uint32(i)})
			}
		}
	}
	switch n := len(c.order); {
	case n > 0 && r.IntN(4) == 0:
		r.Shuffle(n, func(i, j int) { c.order[i], c.order[j] = c.order[j], c.order[i] })
	case n > 0 && r.IntN(3) == 0: // stretches change places
		at := r.IntN(n)
		c.order = append(append([][2]uint32{}, c.order[at:]...), c.order[:at]...)
	}
}

func (c *mergeCase) check(t *testing.T, r *rand.Rand) {
	t.Helper()
	spec := func(n int) index.Spec {
		return index.Spec{Columns: []column.Path{it.Path(c.typ)}, Rows: uint32(n), RowGroups: []uint32{0}, Pages: []uint32{0}}
	}
	var sources []index.Source
	var rows []uint32
	for i := range c.sources {
		n := len(c.sources[i].Values)
		a := it.Build(t, r, c.kind, &c.sources[i], spec(n), index.Budget{TempDir: t.TempDir()})
		sources, rows = append(sources, it.SourceOf(&a, uint32(n))), append(rows, uint32(n))
	}
	now := it.Column{Type: c.typ}
	source, old := make([]uint32, len(c.order)), make([]uint32, len(c.order))
	for i, o := range c.order {
		source[i], old[i] = o[0], o[1]
		now.Values = append(now.Values, c.sources[o[0]].Values[o[1]])
	}
	m, err := index.Originating(rows, source, old)
	if err != nil {
		t.Fatal(err)
	}
	body := &it.Body{}
	root, reason, err := c.kind.Merge(spec(len(now.Values)), sources, m, index.Budget{Memory: []int64{0, 1, 4 << 10, 256 << 10}[r.IntN(4)], TempDir: t.TempDir()}, body)
	if root == nil || err != nil {
		t.Fatal(reason, err)
	}
	want := it.Build(t, r, c.kind, &now, spec(len(now.Values)), index.Budget{TempDir: t.TempDir()})
	if !bytes.Equal(root, want.Root) || !bytes.Equal(body.Bytes(), want.Body) {
		t.Fatalf("%s: %d sources of %v rows merged to %d + %d bytes, built to %d + %d", c.typ, len(sources), rows, len(root), body.Len(), len(want.Root), len(want.Body))
	}
}

// TestMergesOfBlocksThatAreNoPairs merges blocks that take too much memory as pairs, of many rows or of long keys, with others.
func TestMergesOfBlocksThatAreNoPairs(t *testing.T) {
	r := it.Rand(t)
	const rows = 2 * maxPairs
	for name, draw := range map[string]func(source, i int) (column.Type, any){
		"numbers of many rows": func(source, i int) (column.Type, any) {
			return column.Of(column.Long), i / []int{rows / 2, 1000, 3}[source]
		},
		"texts of many rows": func(source, i int) (column.Type, any) {
			return column.Of(column.String), fmt.Sprint(i / []int{rows / 2, 1000, 3}[source])
		},
		"long texts": func(source, i int) (column.Type, any) {
			return column.Of(column.String), strings.Repeat("x", []int{900, 10, 899}[source]) + fmt.Sprint(i%5000)
		},
	} {
		c := mergeCase{}
		for s := range 3 {
			x := it.Column{}
			for i := range []int{rows, 5000, 5000}[s] {
				if x.Type.Kind == column.String && strings.HasPrefix(name, "long") && i == 5000 {
					break
				}
				typ, v := draw(s, i)
				lit := it.Lit(typ, v)
				x.Type, x.Values = typ, append(x.Values, &lit)
				c.order = append(c.order, [2]uint32{uint32(s), uint32(i)})
			}
			c.typ, c.sources = x.Type, append(c.sources, x)
		}
		t.Run(name, func(t *testing.T) {
			keyed := 0
			for i := range c.sources {
				keyed += keyByKey(t, r, &c, i)
			}
			if keyed == 0 {
				t.Error("no block is read key by key")
			}
			c.check(t, r)
		})
	}
}

// keyByKey is the number of blocks of a source that are read key by key although no key of theirs goes on in another.
func keyByKey(t *testing.T, r *rand.Rand, c *mergeCase, i int) (blocks int) {
	t.Helper()
	n := uint32(len(c.sources[i].Values))
	a := it.Build(t, r, c.kind, &c.sources[i], index.Spec{Columns: []column.Path{it.Path(c.typ)}, Rows: n, RowGroups: []uint32{0}, Pages: []uint32{0}}, index.Budget{TempDir: t.TempDir()})
	x, err := open(a.Root, n)
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.Concatenated([]uint32{n}, []*rowset.Set{nil})
	if err != nil {
		t.Fatal(err)
	}
	from := it.SourceOf(&a, n)
	s := newSource(x, &from, m, 0, shareOf(index.Budget{}, 1), func([]rowset.Range) {})
	for {
		ok, err := s.fill()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return blocks
		}
		if s.pairs = nil; !s.keyed {
			continue
		}
		if err := s.gatherKey(); err != nil {
			t.Fatal(err)
		}
		blocks++
	}
}
