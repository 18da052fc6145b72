package ordered

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/rowset"
)

var twoLevels = Kind{sizes{block: 10, page: 30, runs: 2}}

func sample(t testing.TB, k Kind) (it.Artifact, uint32) {
	t.Helper()
	c := it.Of(str, "pear", "apple", nil, "fig", "apple", "apricot", nil, nil, "fig", "fig", "fig", "quince", "fig")
	spec := index.Spec{Columns: []column.Path{it.Path(str)}, Rows: uint32(len(c.Values))}
	return it.Build(t, rand.New(rand.NewPCG(1, 1)), k, &c, spec, index.Budget{}), spec.Rows
}

func TestGoldenOneBlock(t *testing.T) {
	a, _ := sample(t, Kind{})
	it.Golden(t, "text.v1", `
string [pear apple null fig apple apricot null null fig fig fig quince fig]
root: 01 version, 0d 00 00 string, 0d rows, 39 body bytes; 03 nulls and their unit; 06 quince, 32 data bytes, 00 blocks,
one entry at 00: 00 05 apple, length, CRC32C
body: 01 postings, 05 keys: 00 05 apple, 02 05 ricot, 00 03 fig, 00 04 pear, 00 06 quince
rows of each: 04 01 02: 2, 1 and 4; 02 05; 0a 03 04 00 00 01: 5, 3 8 9 10 12; 02 00; 02 0b
null rows: 01 chunk, 00 ranges, 02 of them: 02 00, 03 01`, a)
}

func TestGoldenTwoLevels(t *testing.T) {
	a, _ := sample(t, twoLevels)
	it.Golden(t, "levels.v1", `
The column of text.v1 in blocks of about 10 bytes, at most 2 runs of one key in a block, and pages of about 30 bytes`, a)
}

func TestGoldenUnique(t *testing.T) {
	c := it.Of(double, 2.0, nan, -1.0, 0.5, nil)
	spec := index.Spec{Columns: []column.Path{it.Path(double)}, Rows: 5}
	a := it.Build(t, rand.New(rand.NewPCG(1, 1)), Kind{}, &c, spec, index.Budget{})
	it.Golden(t, "unique.v1", `
double [2.0 NaN -1.0 0.5 null]
root: 01 nulls and 01 NaNs with their units; last key c000000000000000
body: 00 unique, 03 keys: 00 400fffffffffffff, 00 bfe0000000000000, 00 c000000000000000
rows 2 3 0 in 3 bits each: 010 | 011 << 3 | 000 << 6 = 1a 00`, a)
}

func TestHostile(t *testing.T) {
	for _, k := range []Kind{{}, twoLevels} {
		a, rows := sample(t, k)
		it.Hostile(t, k, a, str, rows, it.Lit(str, "fig"))
	}
}

func hostileDirectory(entries, separator int) []byte {
	w := &bytescan.Writer{}
	w.Uvarint(uint64(entries))
	w.Uvarint(0)
	w.Uvarint(0)
	w.Blob(make([]byte, separator))
	w.Uvarint(0)
	w.U32(0)
	for range entries - 1 {
		w.Uvarint(uint64(separator) << 1)
		w.Blob(nil)
		w.Uvarint(0)
		w.U32(0)
	}
	return w.Buf
}

func TestOpenMemory(t *testing.T) {
	long := &bytescan.Writer{} // every entry spells out 1,000 shared bytes
	n := maxRoot/12 - 1000
	long.Uvarint(uint64(n))
	long.Uvarint(0)
	for i := range n {
		if i == 0 {
			long.Uvarint(0)
			long.Blob(make([]byte, 1003))
		} else {
			long.Uvarint(1000 << 1)
			long.Blob([]byte{byte(i >> 16), byte(i >> 8), byte(i)})
		}
		long.Uvarint(0)
		long.U32(0)
	}
	for what, dir := range map[string][]byte{"": hostileDirectory(maxRoot/9-1000, 900), "separator": long.Buf} {
		w := &bytescan.Writer{}
		w.U8(version)
		index.Encoding{Kind: column.String}.Append(w)
		w.Uvarint(1 << 30)
		w.Uvarint(1 << 40)
		w.Uvarint(0)
		w.Blob([]byte("z"))
		w.Uvarint(0)
		w.U8(levelBlocks)
		w.Bytes(dir)
		it.Allocates(t, 28, func() {
			_, err := Kind{}.Open(w.Buf, 1<<30)
			if (err != nil) != (what != "") || err != nil && !strings.Contains(err.Error(), what) {
				t.Errorf("want a fault about %q, got %v", what, err)
			}
		})
	}
}

func TestPageMemory(t *testing.T) {
	page := hostileDirectory(maxPage/9-1000, 900)
	it.Allocates(t, 40, func() {
		r := bytescan.NewReader("page", page)
		if d := readDirectory(r, 1<<40, maxBlock); r.Done() != nil || len(d) != maxPage/9-1000 {
			t.Errorf("%d entries, %v", len(d), r.Err())
		}
	})
}

// blockProbe is a probe for every key over rows rows.
func blockProbe(e index.Encoding, rows uint32) *probe {
	return &probe{
		reader: &reader{rows: rows, enc: e}, side: side{intervals: []index.Interval{{NoHi: true}}},
		may: index.NewRows(rows), unsure: index.NewRows(rows),
	}
}

func TestBlockMemory(t *testing.T) {
	w := &bytescan.Writer{}
	w.U8(formPostings)
	w.Uvarint(1)
	w.Uvarint(0)
	w.Bytes(make([]byte, 8))
	w.Uvarint((maxBlock - 32) << 1)
	for range maxBlock - 32 {
		w.U8(1)
	}
	p := blockProbe(index.Encoding{Kind: column.Long}, 1<<31)
	it.Allocates(t, 8, func() {
		if err := p.takeBlock(w.Buf); err != nil {
			t.Error(err)
		}
	})
	if n := p.may.Set().Count(); n != maxBlock-32 {
		t.Errorf("%d rows", n)
	}
	// One run of half a billion rows must not be spelled out.
	w = &bytescan.Writer{}
	w.U8(formPostings)
	w.Uvarint(1)
	w.Uvarint(0)
	w.Bytes(make([]byte, 8))
	w.Uvarint(1<<1 | 1)
	w.Uvarint(0)
	w.Uvarint(1<<29 - 1)
	p = blockProbe(index.Encoding{Kind: column.Long}, 1<<31)
	it.Allocates(t, 1, func() {
		if err := p.takeBlock(w.Buf); err != nil {
			t.Error(err)
		}
	})
	if !p.may.Set().Equal(rowset.FromRanges(1<<31, []rowset.Range{{Start: 0, End: 1 << 29}})) {
		t.Error("the run is not what was written")
	}
}

func FuzzOpen(f *testing.F) {
	for _, k := range []Kind{{}, twoLevels} {
		a, rows := sample(f, k)
		f.Add(a.Root, a.Body, rows, uint8(13))
	}
	f.Fuzz(func(t *testing.T, root, body []byte, rows uint32, pick uint8) {
		if bad := it.FuzzReader(Kind{}, root, body, rows, pick); bad != "" {
			t.Error(bad)
		}
	})
}

func FuzzBlock(f *testing.F) {
	a, rows := sample(f, Kind{})
	f.Add(a.Body[:len(a.Body)-6], rows, uint8(13))
	f.Fuzz(func(t *testing.T, block []byte, rows uint32, pick uint8) {
		rows %= 1 << 20
		e, err := index.EncodingOf(it.Types[int(pick)%len(it.Types)])
		if err != nil {
			t.Fatal(err)
		}
		p := blockProbe(e, rows)
		if err := p.takeBlock(block); err == nil && p.may.Set().Size() != rows {
			t.Error("rows of another artifact")
		}
	})
}

func FuzzDirectory(f *testing.F) {
	f.Add(hostileDirectory(5, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytescan.NewReader("directory", b)
		d := readDirectory(r, 1<<20, 1<<16)
		if r.Err() != nil {
			return
		}
		w := &bytescan.Writer{}
		d.append(w)
		again := readDirectory(bytescan.NewReader("directory", w.Buf), 1<<20, 1<<16)
		for i := range d {
			if string(d[i].sep) != string(again[i].sep) || d[i].unit != again[i].unit || d[i].continued != again[i].continued {
				t.Errorf("entry %d: %+v became %+v", i, d[i], again[i])
			}
		}
	})
}
