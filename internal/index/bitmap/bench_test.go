package bitmap

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
)

func BenchmarkMerge(b *testing.B) {
	for _, rows := range []int{10_000, 100_000} {
		r := rand.New(rand.NewPCG(1, 2))
		var sources []index.Source
		var counts []uint32
		for range 10 {
			c := it.Column{Type: column.Of(column.String)}
			for range rows {
				v := column.StringValue(fmt.Sprintf("city-%03d", r.IntN(997)))
				c.Values = append(c.Values, &v)
			}
			a := it.Build(b, r, Kind{}, &c, index.Spec{Columns: []column.Path{it.Path(c.Type)}, Rows: uint32(rows), RowGroups: []uint32{0}, Pages: []uint32{0}}, index.Budget{})
			sources, counts = append(sources, it.SourceOf(&a, uint32(rows))), append(counts, uint32(rows))
		}
		m, err := index.Concatenated(counts, nil)
		if err != nil {
			b.Fatal(err)
		}
		spec := index.Spec{Columns: []column.Path{it.Path(column.Of(column.String))}, Rows: m.Rows()}
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			for b.Loop() {
				if root, reason, err := (Kind{}).Merge(spec, sources, m, index.Budget{}, &discarded{}); root == nil || err != nil {
					b.Fatal(reason, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(m.Rows()), "ns/row")
		})
	}
}

// discarded is a sink that keeps nothing.
type discarded struct{ n int64 }

func (d *discarded) Write(p []byte) (int, error) { d.n += int64(len(p)); return len(p), nil }
func (d *discarded) Offset() int64               { return d.n }
