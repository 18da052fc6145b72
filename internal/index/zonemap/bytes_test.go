package zonemap

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
)

// sample is two row groups of doubles, the first of two pages.
func sample(t testing.TB, k Kind) (it.Artifact, uint32) {
	t.Helper()
	c := it.Of(double, 1.0, nil, 2.5, nan, -1.0, nil, nil)
	spec := index.Spec{Columns: []column.Path{it.Path(double)}, Rows: 7, RowGroups: []uint32{0, 5}, Pages: []uint32{0, 3, 5}}
	return it.Build(t, rand.New(rand.NewPCG(1, 1)), k, &c, spec, index.Budget{}), 7
}

func TestGoldenInline(t *testing.T) {
	a, _ := sample(t, Kind{})
	it.Golden(t, "inline.v1", `
double [1.0 null 2.5 | NaN -1.0 || null null], || between row groups, | between pages
01 version, 05 00 00 double, 00 no body, 02 row groups
05 01 01 00: 5 rows, 1 null, 1 NaN, bounds whole; -1.0 as 400fffffffffffff, 2.5 as c004000000000000; 02 pages
02 02 00: 2 rows, 2 nulls; 01 page
00 pages in the root
03 01 00 00: 3 rows, 1 null; 1.0 to 2.5. 02 00 01 00: 2 rows, 1 NaN; -1.0 to -1.0`, a)
}

func TestGoldenBlocks(t *testing.T) {
	a, _ := sample(t, Kind{sizes{inline: 1, block: 10}})
	it.Golden(t, "blocks.v1", `
The column of inline.v1, with its two pages in two blocks of the body
28 body bytes; 01 at the end of the row groups: pages in the body
02 blocks: 01 page, unit at 00, 14 bytes long, and its CRC32C; 01 page, unit at 14, 14 bytes long`, a)
}

func TestGoldenCutText(t *testing.T) {
	c := it.Of(str, strings.Repeat("q", 70), strings.Repeat("r", 63)+"é")
	spec := index.Spec{Columns: []column.Path{it.Path(str)}, Rows: 2, RowGroups: []uint32{0}, Pages: []uint32{0}}
	a := it.Build(t, rand.New(rand.NewPCG(1, 1)), Kind{}, &c, spec, index.Budget{})
	it.Golden(t, "text.v1", `
string [70 × q, 63 × r + é]: min is cut to 64 bytes (flag 1), max is cut inside é, c3 incremented to c4 (flag 2)`, a)
}

func TestHostile(t *testing.T) {
	for _, k := range []Kind{{}, {sizes{inline: 1, block: 10}}} {
		a, rows := sample(t, k)
		if len(a.Body) > 0 {
			it.Hostile(t, k, a, double, rows, it.Lit(double, 1.5))
			continue
		}
		for n := range a.Root {
			if _, err := k.Open(a.Root[:n:n], rows); err == nil {
				t.Errorf("root cut to %d bytes opened", n)
			}
		}
	}
}

func TestOpenMemory(t *testing.T) {
	enc := index.Encoding{Kind: column.Long}
	null := zone{rows: 1, nulls: 1}
	many := &bytescan.Writer{}
	many.U8(version)
	enc.Append(many)
	many.Uvarint(1 << 40)
	many.Uvarint(index.MaxRowGroups)
	for range index.MaxRowGroups {
		null.append(many, enc)
		many.U8(1)
	}
	many.U8(1)
	blocks := &bytescan.Writer{}
	blocks.U8(version)
	enc.Append(blocks)
	blocks.Uvarint(1 << 40)
	blocks.U8(1)
	(&zone{rows: 1 << 30, nulls: 1 << 30}).append(blocks, enc)
	n := (maxRoot - 64) / 7
	blocks.Uvarint(uint64(n))
	blocks.U8(1)
	blocks.Uvarint(uint64(n))
	for range n {
		blocks.U8(1)
		index.Unit{}.Append(blocks)
	}
	for _, c := range []struct {
		root []byte
		rows uint32
	}{{many.Buf, index.MaxRowGroups}, {blocks.Buf, 1 << 30}} {
		it.Allocates(t, 32, func() {
			if _, err := (Kind{}).Open(c.root, c.rows); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBlockMemory(t *testing.T) {
	block := make([]byte, maxBlock)
	for i := range block {
		block[i] = 1 // a zone of one null row takes two bytes
	}
	it.Allocates(t, 3, func() {
		r := bytescan.NewReader("block", block)
		if z := readPages(r, index.Encoding{Kind: column.Long}, maxBlock/2, 0, 1<<20); r.Done() != nil || len(z) != maxBlock/2 {
			t.Errorf("%d zones, %v", len(z), r.Err())
		}
	})
}

func FuzzOpen(f *testing.F) {
	for _, k := range []Kind{{}, {sizes{inline: 1, block: 10}}} {
		a, rows := sample(f, k)
		f.Add(a.Root, a.Body, rows, uint8(4))
	}
	f.Fuzz(func(t *testing.T, root, body []byte, rows uint32, pick uint8) {
		if bad := it.FuzzReader(Kind{}, root, body, rows, pick); bad != "" {
			t.Error(bad)
		}
	})
}

func FuzzBlock(f *testing.F) {
	a, _ := sample(f, Kind{sizes{inline: 1, block: 10}})
	f.Add(a.Body, uint8(2), uint32(5), uint8(4))
	f.Fuzz(func(t *testing.T, block []byte, pages uint8, rows uint32, pick uint8) {
		rows = rows%1000 + 1
		enc, err := index.EncodingOf(it.Types[int(pick)%len(it.Types)])
		if err != nil {
			t.Fatal(err)
		}
		at := uint32(0)
		for _, z := range readPages(bytescan.NewReader("block", block), enc, int(pages), 0, rows) {
			if z.start != at || z.rows == 0 || z.nulls+z.nans > z.rows {
				t.Errorf("zone %+v at row %d", z, at)
			}
			at += z.rows
		}
		if at > rows {
			t.Errorf("pages hold %d rows of %d", at, rows)
		}
	})
}
