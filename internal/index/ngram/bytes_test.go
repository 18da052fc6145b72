package ngram

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/rowset"
)

func sample(t testing.TB, k Kind) (it.Artifact, uint32) {
	t.Helper()
	c := it.Of(str, "Figs", nil, "fig", "ab", "", "figure", "a fig", "FIG", "京", nil, "fig", "fig", "fig", "fig")
	spec := index.Spec{Columns: []column.Path{it.Path(str)}, Rows: uint32(len(c.Values))}
	return it.Build(t, rand.New(rand.NewPCG(1, 1)), k, &c, spec, index.Budget{}), spec.Rows
}

func TestGoldenInside(t *testing.T) {
	a, _ := sample(t, Kind{})
	it.Golden(t, "inside.v1", `
string [Figs null fig ab '' figure 'a fig' FIG 京 null fig fig fig fig]
root: 01 version, 0d 00 00 string, the Unicode version, 0e rows, 07 body bytes; 02 nulls and their unit; 00 dictionary inside: 08 trigrams,
postings at 00
per trigram the gap from the one before, rows << 1 | inside, length, posting: " fi" e9cc8101 in row 6, "a f", "fig" in 9 rows:
06 bytes: chunk 00, 08 rows - 1, gaps of 02 bits: 0 1 2 0 | 0 2 0 0 | 0 = 24 08 00; "gs" and so on
body: null rows`, a)
}

func TestGoldenBlocks(t *testing.T) {
	a, _ := sample(t, manyBlocks)
	it.Golden(t, "blocks.v1", `
The column of inside.v1 in dictionary blocks of about 20 bytes`, a)
}

func TestHostile(t *testing.T) {
	a, rows := sample(t, Kind{sizes{block: 20, inside: 0}})
	it.Hostile(t, Kind{}, a, str, rows, it.Lit(str, "fig"))
	a, rows = sample(t, Kind{})
	it.Hostile(t, Kind{}, a, str, rows, it.Lit(str, "fig"))
}

func TestOpenMemory(t *testing.T) {
	w := index.StartRoot(version, textEncoding)
	w.String("15.0.0")
	w.Uvarint(1 << 30)
	w.Uvarint(1 << 40)
	w.Uvarint(0)
	w.U8(formBlocks)
	n := (maxRoot - 40) / 6
	w.Uvarint(uint64(n))
	w.Uvarint(0)
	for range n {
		w.Uvarint(0)
		w.Uvarint(0)
		w.U32(0)
	}
	it.Allocates(t, 6, func() {
		if _, err := (Kind{}).Open(w.Buf, 1<<30); err != nil {
			t.Error(err)
		}
	})
}

func TestDictionaryMemory(t *testing.T) {
	var w bytescan.Writer
	n := maxBlock/2 - 20
	w.Uvarint(uint64(n))
	w.Uvarint(0)
	for range n {
		w.Uvarint(0)
		w.Uvarint(0)
	}
	x, seen := &reader{rows: 1}, 0
	it.Allocates(t, 0.1, func() {
		if err := x.eachEntry(w.Buf, func(entry) { seen++ }); err != nil || seen != n {
			t.Errorf("%d entries, %v", seen, err)
		}
	})
}

// TestPostingMemory: a posting that alternates single rows and gaps allocates six bits a row, however long it is.
func TestPostingMemory(t *testing.T) {
	var w bytescan.Writer
	const size = 1 << 26
	for range size / chunkRows {
		w.Uvarint(1)
		w.Bytes([]byte(strings.Repeat("\x55", chunkBitmap)))
	}
	it.Allocates(t, 6*size/8/(1<<20)+1, func() {
		if s, err := readPosting(w.Buf, size, size/2); err != nil || s.Count() != size/2 {
			t.Error(err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	for _, k := range []Kind{{}, manyBlocks} {
		a, rows := sample(f, k)
		f.Add(a.Root, a.Body, rows, uint8(13))
	}
	a, rows := seamedSample(f)
	f.Add(a.Root, a.Body, rows, uint8(13))
	f.Fuzz(func(t *testing.T, root, body []byte, rows uint32, pick uint8) {
		if bad := it.FuzzReader(Kind{}, root, body, rows, pick); bad != "" {
			t.Error(bad)
		}
	})
}

func FuzzPosting(f *testing.F) {
	var p posting
	for row := uint32(0); row < 200_000; row += 1 + row/40 {
		p.add(row)
	}
	f.Add(p.finish(), uint32(200_000))
	p.reset()
	p.add(70_000)
	p.copy(90_001, &run{bytes: []byte("\x01\x10\x05\x00\x07\x00"), span: 1, rows: 2})
	p.add(90_100)
	f.Add(p.finish(), uint32(200_000))
	f.Fuzz(func(t *testing.T, b []byte, size uint32) {
		size %= 1 << 22
		last, n := int64(-1), uint32(0)
		visit := func(x rowset.Range) bool {
			if int64(x.Start) <= last || x.End <= x.Start || x.End > size {
				t.Errorf("rows %v after %d", x, last)
			}
			last, n = int64(x.End)-1, n+x.Len()
			return true
		}
		if eachRow(b, size, math.MaxUint32, visit); n == 0 {
			return
		}
		rows := n
		last, n = -1, 0
		if err := eachRow(b, size, rows, visit); err == nil && n != rows {
			t.Errorf("%d rows, then %d", rows, n)
		}
	})
}
