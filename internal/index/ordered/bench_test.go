package ordered

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/predicate"
)

func longs(n int, draw func(i int) int64) *column.Vector {
	v := make([]int64, n)
	for i := range v {
		v[i] = draw(i)
	}
	return &column.Vector{Type: column.Of(column.Long), Len: n, Fixed: column.BytesOf(v)}
}

func texts(n int, draw func(i int) string) *column.Vector {
	b := column.NewBuilder(column.Of(column.String))
	for i := range n {
		b.Append(column.StringValue(draw(i)))
	}
	return b.Finish()
}

func build(b testing.TB, v *column.Vector, batch int, memory int64) (root []byte, body *indextest.Body) {
	bl, err := Kind{}.NewBuilder(index.Spec{Columns: []column.Path{indextest.Path(v.Type)}, Rows: uint32(v.Len)}, index.Budget{Memory: memory, TempDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = bl.Close() }()
	for i := 0; i < v.Len; i += batch {
		n := min(batch, v.Len-i)
		part := &column.Vector{Type: v.Type, Len: n, Bytes: v.Bytes}
		if v.Off != nil {
			part.Off = v.Off[i : i+n+1]
		} else {
			part.Fixed = v.Fixed[i*8 : (i+n)*8]
		}
		if err := bl.Add([]*column.Vector{part}); err != nil {
			b.Fatal(err)
		}
	}
	body = &indextest.Body{}
	if root, _, err = bl.Finish(body); err != nil {
		b.Fatal(err)
	}
	return root, body
}

func BenchmarkBuild(b *testing.B) {
	const n = 4 << 20
	r := rand.New(rand.NewPCG(1, 2))
	for name, v := range map[string]*column.Vector{
		"random": longs(n, func(int) int64 { return int64(r.Uint64()) }),
		"ids":    longs(n, func(int) int64 { return r.Int64N(n) }),
		"sorted": longs(n, func(i int) int64 { return int64(i) }),
		"few":    longs(n, func(int) int64 { return r.Int64N(1000) }),
		"text":   texts(n/4, func(int) string { return fmt.Sprintf("user-%012d", r.Int64N(1e12)) }),
	} {
		for _, memory := range []int64{0, 32 << 20} {
			b.Run(fmt.Sprintf("%s/memory=%dMiB", name, memory>>20), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					root, body := build(b, v, 8192, memory)
					b.ReportMetric(float64(body.Len())/float64(v.Len), "bytes/row")
					b.ReportMetric(float64(len(root)), "root")
				}
				b.ReportMetric(float64(v.Len)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
			})
		}
	}
}

func BenchmarkRadixSort(b *testing.B) {
	const n = 4 << 20
	r := rand.New(rand.NewPCG(1, 2))
	keys, rows := make([]uint64, n), make([]uint32, n)
	keys2, rows2 := make([]uint64, n), make([]uint32, n)
	for b.Loop() {
		b.StopTimer()
		for i := range keys {
			keys[i], rows[i] = r.Uint64(), uint32(i)
		}
		b.StartTimer()
		radixSort(keys, rows, keys2, rows2)
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

func BenchmarkPoint(b *testing.B) {
	const n = 4 << 20
	r := rand.New(rand.NewPCG(1, 2))
	root, body := build(b, longs(n, func(int) int64 { return r.Int64N(n) }), 8192, 0)
	x, err := Kind{}.Open(root, n)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		leaf := &predicate.Leaf{Column: predicate.Column{Path: indextest.Path(column.Of(column.Long))}, Op: predicate.Equal, Values: []column.Value{column.IntValue(column.Long, r.Int64N(n))}}
		if _, _, err := indextest.Run(x.Probe(leaf), body.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	const n = 500_000
	r := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func(int) int64{"random": func(int) int64 { return int64(r.Uint64()) }, "few": func(int) int64 { return r.Int64N(1000) }} {
		var sources []index.Source
		for range 2 {
			root, body := build(b, longs(n, draw), 1<<14, 0)
			sources = append(sources, indextest.SourceOf(&indextest.Artifact{Root: root, Body: body.Bytes()}, n))
		}
		m, err := index.Concatenated([]uint32{n, n}, nil)
		if err != nil {
			b.Fatal(err)
		}
		spec := index.Spec{Columns: []column.Path{indextest.Path(column.Of(column.Long))}, Rows: m.Rows()}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if root, reason, err := (Kind{}).Merge(spec, sources, m, index.Budget{}, &indextest.Body{}); root == nil || err != nil {
					b.Fatal(reason, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(m.Rows()), "ns/row")
		})
	}
}
