package ordered

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// FuzzMerge merges an artifact of any two blocks, under checksums that are right, with an honest one. Read as pairs and key by key it comes to
// the same, which is no panic and no other fault than that bytes are corrupt; what is merged can be read and has the honest rows.
func FuzzMerge(f *testing.F) {
	types := []column.Type{column.Of(column.Long), column.Of(column.String), column.Of(column.Int), column.FixedOf(3)}
	honest := make([]it.Column, len(types))
	sources := make([]index.Source, len(types))
	r := rand.New(rand.NewPCG(1, 1))
	for i, typ := range types {
		honest[i] = it.DrawColumn(r, typ, 9)
		spec := index.Spec{Columns: []column.Path{it.Path(typ)}, Rows: 9}
		a := it.Build(f, r, twoLevels, &honest[i], spec, index.Budget{})
		sources[i] = it.SourceOf(&a, 9)
		one := it.Build(f, r, Kind{}, &honest[i], spec, index.Budget{})
		x, err := open(one.Root, 9)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(one.Body[:x.dataBytes], []byte{}, uint32(9), uint8(i), false)
	}
	f.Add([]byte{1, 1, 1, 1, 'a', 2, 0}, []byte{1, 1, 0, 1, 'a', 2, 1}, uint32(2), uint8(1), true)
	f.Add([]byte{0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x87, 0, 2, 0b10}, []byte{}, uint32(2), uint8(0), false) // 7 shared bytes in two bytes
	f.Fuzz(func(t *testing.T, first, second []byte, rows uint32, pick uint8, continued bool) {
		if rows %= 1 << 16; len(first)+len(second) > 4096 {
			return
		}
		i := int(pick) % len(types)
		forged := blocksOf(t, types[i], rows, continued, first, second)
		m, err := index.Concatenated([]uint32{9, rows}, nil)
		if err != nil {
			t.Fatal(err)
		}
		spec := index.Spec{Columns: []column.Path{it.Path(types[i])}, Rows: 9 + rows}
		merge := func(memory int64) (it.Artifact, error) {
			body := &it.Body{}
			root, _, err := twoLevels.Merge(spec, []index.Source{sources[i], forged}, m, index.Budget{Memory: memory}, body)
			if err != nil && !fault.Is(err, fault.Corrupt) {
				t.Fatal(err)
			}
			return it.Artifact{Root: root, Body: body.Bytes()}, err
		}
		a, err := merge(0)
		b, other := merge(1)
		if (err == nil) != (other == nil) || err == nil && (!bytes.Equal(a.Root, b.Root) || !bytes.Equal(a.Body, b.Body)) {
			t.Fatalf("as pairs: %v, %d + %d bytes; key by key: %v, %d + %d", err, len(a.Root), len(a.Body), other, len(b.Root), len(b.Body))
		}
		if err == nil {
			hasHonest(t, &a, &honest[i], 9+rows)
		}
	})
}

// blocksOf is an artifact of one or two blocks.
func blocksOf(t *testing.T, typ column.Type, rows uint32, continued bool, blocks ...[]byte) index.Source {
	e, err := index.EncodingOf(typ)
	if err != nil {
		t.Fatal(err)
	}
	body := &it.Body{}
	w := newWriter(e, rows, Kind{}.orDefault(), body)
	for i, b := range blocks {
		if len(b) == 0 {
			continue
		}
		u, err := index.WriteUnit(body, b)
		if err != nil {
			t.Fatal(err)
		}
		w.blocks, w.dataBytes = append(w.blocks, entry{continued: continued && i > 0, unit: u}), w.dataBytes+u.Len
	}
	root, reason, err := w.seal(func(rest *bytescan.Writer) error { return writeUnordered(rest, body, rowset.None(rows)) })
	if err != nil || reason != "" {
		t.Fatal(reason, err)
	}
	return it.SourceOf(&it.Artifact{Root: root, Body: body.Bytes()}, rows)
}

// hasHonest asks an artifact for every value of the column whose rows are its first ones.
func hasHonest(t *testing.T, a *it.Artifact, c *it.Column, rows uint32) {
	x, err := twoLevels.Open(a.Root, rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range c.Values {
		if v == nil {
			continue
		}
		leaf := &predicate.Leaf{Column: predicate.Column{Path: it.Path(c.Type)}, Op: predicate.Equal, Values: []column.Value{*v}}
		verdict, _, err := it.Run(x.Probe(leaf), a.Body)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range c.Values {
			has := it.Passes(leaf, w)
			if has && !verdict.May.Contains(uint32(i)) || !has && verdict.Must.Contains(uint32(i)) {
				t.Fatalf("row %d passes %v, must %s, may %s\n%s", i, has, verdict.Must, verdict.May, it.Describe(leaf))
			}
		}
	}
}
