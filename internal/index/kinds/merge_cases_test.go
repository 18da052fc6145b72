package kinds

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
	"github.com/skomerdb/skomer/internal/rowset"
)

// merged merges artifacts of two columns, of which the kept rows stay.
func merged(t *testing.T, k index.Kind, a, b it.Column, kept ...*rowset.Set) (index.Reader, it.Artifact, it.Column) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	var sources []index.Source
	for _, c := range []it.Column{a, b} {
		n := uint32(len(c.Values))
		built := it.Build(t, r, k, &c, index.Spec{Columns: []column.Path{it.Path(c.Type)}, Rows: n, RowGroups: []uint32{0}, Pages: []uint32{0}}, index.Budget{})
		sources = append(sources, it.SourceOf(&built, n))
	}
	rows := []uint32{sources[0].Rows, sources[1].Rows}
	m, err := index.Concatenated(rows, kept)
	if err != nil {
		t.Fatal(err)
	}
	now := it.Column{Type: a.Type}
	for s, c := range []it.Column{a, b} {
		for i, v := range c.Values {
			if m.To(s, uint32(i)) != index.Gone {
				now.Values = append(now.Values, v)
			}
		}
	}
	body := &it.Body{}
	spec := index.Spec{Columns: []column.Path{it.Path(a.Type)}, Rows: m.Rows(), RowGroups: []uint32{0}, Pages: []uint32{0}}
	root, reason, err := k.Merge(spec, sources, m, index.Budget{}, body)
	if err != nil || root == nil {
		t.Fatal(reason, err)
	}
	reader, err := k.Open(root, m.Rows())
	if err != nil {
		t.Fatal(err)
	}
	return reader, it.Artifact{Root: root, Body: body.Bytes()}, now
}

// Null and NaN rows of every source are in the merged artifact.
func TestU63NullsArePartOfEveryMerge(t *testing.T) {
	double := column.Of(column.Double)
	a, b := it.Of(double, 1.0, nil, math.NaN(), 2.0), it.Of(double, nil, 3.0, math.NaN(), nil, 5.0)
	all := func() []*rowset.Set { return []*rowset.Set{nil, nil} }
	some := func() []*rowset.Set {
		return []*rowset.Set{rowset.FromRows(4, []uint32{0, 1, 2}), rowset.FromRows(5, []uint32{0, 2, 3, 4})}
	}
	for _, e := range All() {
		if len(mergeLaws[e.Name]) == 0 {
			continue
		}
		for what, kept := range map[string]func() []*rowset.Set{"all rows": all, "some rows": some} {
			reader, artifact, now := merged(t, e.Kind, a, b, kept()...)
			for _, op := range []predicate.Op{predicate.IsNull, predicate.IsNaN} {
				for _, leaf := range []*predicate.Leaf{it.Test(double, op), it.Not(it.Test(double, op)), it.In(predicate.Iceberg, it.Not(it.Test(double, op)))} {
					v, _, err := it.Run(reader.Probe(leaf), artifact.Body)
					if err != nil {
						t.Fatal(err)
					}
					if bad := it.Wrong(leaf, &now, v); bad != "" {
						t.Errorf("%s of %s: %s\n%s", e.Name, what, bad, it.Describe(leaf))
					}
					if e.Kind.Says([]column.Path{it.Path(double)}, leaf) == index.Exact && !v.Exact() {
						t.Errorf("%s of %s: must %s, may %s\n%s", e.Name, what, v.Must, v.May, it.Describe(leaf))
					}
				}
			}
		}
	}
}

// Artifacts whose values were taken in different encodings are not merged: one of them would be read wrongly.
func TestOtherEncodingsAreNotMerged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, e := range All() {
		if len(mergeLaws[e.Name]) == 0 {
			continue
		}
		var sources []index.Source
		for _, typ := range []column.Type{column.Of(column.Int), column.Of(column.Long)} {
			c := it.Of(typ, 1, 2)
			built := it.Build(t, r, e.Kind, &c, index.Spec{Columns: []column.Path{it.Path(typ)}, Rows: 2, RowGroups: []uint32{0}, Pages: []uint32{0}}, index.Budget{})
			sources = append(sources, it.SourceOf(&built, 2))
		}
		m, err := index.Concatenated([]uint32{2, 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		spec := index.Spec{Columns: []column.Path{it.Path(column.Of(column.Long))}, Rows: 4, RowGroups: []uint32{0}, Pages: []uint32{0}}
		if root, reason, err := e.Kind.Merge(spec, sources, m, index.Budget{}, &it.Body{}); root != nil || reason == "" || err != nil {
			t.Errorf("%s: merged %v, %q, %v", e.Name, root != nil, reason, err)
		}
	}
}

// sampled is a sink that looks now and then at how much memory is in use.
type sampled struct {
	n, next   int64
	base, top uint64
}

func (s *sampled) Write(p []byte) (int, error) {
	if s.n += int64(len(p)); s.n >= s.next {
		s.top, s.next = max(s.top, heap()), s.n+128<<10
	}
	return len(p), nil
}

func (s *sampled) Offset() int64 { return s.n }

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Merges hold what docs/format says: not the artifacts.
func TestMergesHoldTheirMemoryBound(t *testing.T) {
	const parts, rows = 6, 150_000
	r := it.Rand(t)
	for _, e := range All() {
		if len(mergeLaws[e.Name]) == 0 {
			continue
		}
		var sources []index.Source
		var counts, starts []uint32
		for i := range parts {
			c := it.Column{Type: column.Of(column.Long)}
			for range rows {
				v := column.IntValue(column.Long, r.Int64N(1<<40))
				if e.Name == "bitmap" || e.Name == "valueset" {
					v.Lo %= 500
				}
				c.Values = append(c.Values, &v)
			}
			spec := index.Spec{Columns: []column.Path{it.Path(c.Type)}, Rows: rows, RowGroups: []uint32{0}, Pages: []uint32{0}}
			built := it.Build(t, r, e.Kind, &c, spec, index.Budget{})
			file, err := os.CreateTemp(t.TempDir(), "body")
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := file.Write(built.Body); err != nil {
				t.Fatal(err)
			}
			sources = append(sources, index.Source{Root: built.Root, Rows: rows, Body: file, Size: int64(len(built.Body))})
			counts, starts = append(counts, rows), append(starts, uint32(i*rows))
		}
		m, err := index.Concatenated(counts, nil)
		if err != nil {
			t.Fatal(err)
		}
		spec := index.Spec{Columns: []column.Path{it.Path(column.Of(column.Long))}, Rows: m.Rows(), RowGroups: starts, Pages: starts}
		sink := &sampled{base: heap()}
		if root, reason, err := e.Kind.Merge(spec, sources, m, index.Budget{Memory: 8 << 20, TempDir: t.TempDir()}, sink); root == nil || err != nil {
			t.Fatal(e.Name, reason, err)
		}
		const limit = 6 << 20 // blocks, pages and sets of six sources; the bodies are up to 6 MB
		if sink.top > sink.base+limit {
			t.Errorf("%s holds %.1f MiB while it writes %.1f", e.Name, float64(sink.top-sink.base)/(1<<20), float64(sink.n)/(1<<20))
		}
		t.Logf("%s: %.2f MiB held, %.2f written", e.Name, float64(int64(sink.top)-int64(sink.base))/(1<<20), float64(sink.n)/(1<<20))
	}
}
