package bloom

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
)

// sample is three row groups of doubles: two values and a NaN, nulls only, one value.
func sample(t testing.TB) (it.Artifact, uint32) {
	t.Helper()
	c := it.Of(double, 1.0, math.NaN(), 2.5, nil, nil, 1.5)
	spec := index.Spec{Columns: []column.Path{it.Path(double)}, Rows: 6, RowGroups: []uint32{0, 3, 5}, Pages: []uint32{0, 3, 5}}
	return it.Build(t, rand.New(rand.NewPCG(1, 1)), Kind{}, &c, spec, index.Budget{}), 6
}

func TestGolden(t *testing.T) {
	a, _ := sample(t)
	it.Golden(t, "filters.v1", `
double [1.0 NaN 2.5 || null null || 1.5], || between row groups
01 version, 05 00 00 double, 40 body bytes, 03 row groups
03 04: 3 rows, a filter and NaN rows; 02 distinct values, fill 0010 hex (16 of 256 bits, in 65,535ths), 01 block, CRC32C of its unit
02 01: 2 rows, no values
01 00: 1 row, a filter; 01 distinct value, fill 0800, 01 block, CRC32C
body: two blocks of 32 bytes`, a)
}

func TestHostile(t *testing.T) {
	a, rows := sample(t)
	it.Hostile(t, Kind{}, a, double, rows, it.Lit(double, 1.5))
}

func TestOpenMemory(t *testing.T) {
	w := &bytescan.Writer{}
	w.U8(version)
	index.Encoding{Kind: column.Long}.Append(w)
	w.Uvarint(0)
	w.Uvarint(index.MaxRowGroups)
	for range index.MaxRowGroups {
		w.Uvarint(1)
		w.U8(stateEmpty)
	}
	it.Allocates(t, 4, func() {
		if _, err := (Kind{}).Open(w.Buf, index.MaxRowGroups); err != nil {
			t.Error(err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	a, rows := sample(f)
	f.Add(a.Root, a.Body, rows, uint8(4))
	f.Fuzz(func(t *testing.T, root, body []byte, rows uint32, pick uint8) {
		if bad := it.FuzzReader(Kind{}, root, body, rows, pick); bad != "" {
			t.Error(bad)
		}
	})
}
