package ordered

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/rowset"
)

// TestMergesOfNumbersAreWhatIsBuilt merges artifacts of numbers, most of which have one row, in blocks of a few keys: the bytes must be those of
// the artifact that is built from the new rows.
func TestMergesOfNumbersAreWhatIsBuilt(t *testing.T) {
	r := it.Rand(t)
	long := column.Of(column.Long)
	spec := func(n int) index.Spec {
		return index.Spec{Columns: []column.Path{it.Path(long)}, Rows: uint32(n), RowGroups: []uint32{0}, Pages: []uint32{0}}
	}
	blocks := 0
	for range it.Rounds(60) {
		k := Kind{sizes{block: 40 + r.IntN(400), page: 1 + r.IntN(300), runs: 1 + r.IntN(4)}}
		var sources []index.Source
		var rows []uint32
		var kept []*rowset.Set
		now := it.Column{Type: long}
		start, spread := r.Int64(), int64(1)<<r.IntN(62)
		for range 1 + r.IntN(4) {
			c := it.Column{Type: long}
			n := r.IntN(400)
			if r.IntN(3) == 0 { // sources that follow each other
				start += spread
			}
			set := rowset.All(uint32(n))
			if r.IntN(2) == 0 {
				gone := uint32(r.IntN(n + 1))
				set = rowset.AndNot(set, rowset.FromRanges(uint32(n), []rowset.Range{{Start: gone / 2, End: gone}}))
			}
			for i := range n {
				v := column.IntValue(column.Long, start+r.Int64N(spread))
				c.Values = append(c.Values, &v)
				if set.Contains(uint32(i)) {
					now.Values = append(now.Values, &v)
				}
			}
			a := it.Build(t, r, k, &c, spec(n), index.Budget{TempDir: t.TempDir()})
			sources, rows, kept = append(sources, it.SourceOf(&a, uint32(n))), append(rows, uint32(n)), append(kept, set)
			x, err := open(a.Root, uint32(n))
			if err != nil {
				t.Fatal(err)
			}
			blocks += len(x.top)
		}
		m, err := index.Concatenated(rows, kept)
		if err != nil {
			t.Fatal(err)
		}
		body := &it.Body{}
		root, reason, err := k.Merge(spec(len(now.Values)), sources, m, index.Budget{Memory: []int64{0, 1, 4 << 10, 256 << 10}[r.IntN(4)], TempDir: t.TempDir()}, body)
		if root == nil || err != nil {
			t.Fatal(reason, err)
		}
		want := it.Build(t, r, k, &now, spec(len(now.Values)), index.Budget{TempDir: t.TempDir()})
		if !bytes.Equal(root, want.Root) || !bytes.Equal(body.Bytes(), want.Body) {
			t.Fatalf("%d sources of %v rows merged to %d + %d bytes, built to %d + %d", len(sources), rows, len(root), body.Len(), len(want.Root), len(want.Body))
		}
	}
	if blocks < 200 {
		t.Errorf("%d blocks in all", blocks)
	}
}

// BenchmarkMergeNumbers merges two artifacts of random numbers.
func BenchmarkMergeNumbers(b *testing.B) {
	const n = 1 << 19
	r := rand.New(rand.NewPCG(1, 2))
	var sources []index.Source
	for range 2 {
		root, body := build(b, longs(n, func(int) int64 { return int64(r.Uint64()) }), 1<<16, 1<<30)
		sources = append(sources, index.Source{Root: root, Rows: n, Body: bytes.NewReader(body.Bytes()), Size: int64(body.Len())})
	}
	m, err := index.Concatenated([]uint32{n, n}, nil)
	if err != nil {
		b.Fatal(err)
	}
	spec := index.Spec{Columns: []column.Path{it.Path(column.Of(column.Long))}, Rows: m.Rows()}
	for b.Loop() {
		if root, reason, err := (Kind{}).Merge(spec, sources, m, index.Budget{}, &discarded{}); root == nil || err != nil {
			b.Fatal(reason, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(m.Rows()), "ns/row")
}

// discarded is a sink that keeps nothing.
type discarded struct{ n int64 }

func (d *discarded) Write(p []byte) (int, error) { d.n += int64(len(p)); return len(p), nil }
func (d *discarded) Offset() int64               { return d.n }
