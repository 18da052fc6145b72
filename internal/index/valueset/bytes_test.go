package valueset

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
)

// sample is four row groups of doubles: two values, a null and a NaN; nulls only; too many; one value.
func sample(t testing.TB, k Kind) (it.Artifact, uint32) {
	t.Helper()
	c := it.Of(double, 1.0, nil, 2.5, nan, 1.0, nil, nil, 1.0, 2.0, 3.0, 1.5)
	cuts := []uint32{0, 5, 7, 10}
	spec := index.Spec{Columns: []column.Path{it.Path(double)}, Rows: 11, RowGroups: cuts, Pages: cuts, Params: index.Params{index.ParamCap: "2"}}
	return it.Build(t, rand.New(rand.NewPCG(1, 1)), k, &c, spec, index.Budget{}), 11
}

func TestGoldenInline(t *testing.T) {
	a, _ := sample(t, Kind{})
	it.Golden(t, "inline.v1", `
double [1.0 null 2.5 NaN 1.0 || null null || 1.0 2.0 3.0 || 1.5], || between row groups, cap=2
01 version, 05 00 00 double, 00 a value a row, 00 no body, 04 row groups, 00 sets in the root
05 01 01: 5 rows, 1 null, 1 NaN; 03: 2 values: 00 bff0000000000000, 00 c004000000000000
02 02 00: 2 rows, 2 nulls
03 00 00 00: 3 rows, too many values
01 00 00 02: 1 row, 1 value`, a)
}

func TestGoldenUnits(t *testing.T) {
	a, _ := sample(t, Kind{inline: 1})
	it.Golden(t, "units.v1", `
The column of inline.v1, with its two sets in units of the body: offset, length, CRC32C in place of each set`, a)
}

func TestGoldenText(t *testing.T) {
	c := it.Of(str, "pear", "apple", nil, "apricot", "", "apple")
	spec := index.Spec{Columns: []column.Path{it.Path(str)}, Rows: 6, RowGroups: []uint32{0}, Pages: []uint32{0}}
	a := it.Build(t, rand.New(rand.NewPCG(1, 1)), Kind{}, &c, spec, index.Budget{})
	it.Golden(t, "text.v1", `
string [pear apple null apricot "" apple]
05: 4 values: 00 00, 00 05 apple, 02 05 ricot, 00 04 pear`, a)
}

func TestHostile(t *testing.T) {
	a, rows := sample(t, Kind{inline: 1})
	it.Hostile(t, Kind{}, a, double, rows, it.Lit(double, 1.5))
	inline, _ := sample(t, Kind{})
	for n := range inline.Root {
		if _, err := (Kind{}).Open(inline.Root[:n:n], rows); err == nil {
			t.Errorf("root cut to %d bytes opened", n)
		}
	}
}

func TestOpenMemory(t *testing.T) {
	w := &bytescan.Writer{}
	w.U8(version)
	index.Encoding{Kind: column.Long}.Append(w)
	w.U8(index.ShapeValues)
	w.Uvarint(1 << 40)
	w.Uvarint(index.MaxRowGroups)
	w.U8(formUnits)
	g := group{Granule: index.Granule{Rows: 1}, values: 1}
	for range index.MaxRowGroups {
		g.append(w, index.Encoding{Kind: column.Long}, false, formUnits)
	}
	it.Allocates(t, 8, func() {
		if _, err := (Kind{}).Open(w.Buf, index.MaxRowGroups); err != nil {
			t.Error(err)
		}
	})
}

// A set is not spelled out, and keys that would take more than the cap are refused.
func TestSetMemory(t *testing.T) {
	e := index.Encoding{Kind: column.String}
	for _, size := range []int{bytesPerValue, maxKeys / 4} {
		w, keys := &bytescan.Writer{}, index.NewKeyWriter(e)
		n := min(maxCap, 64*maxKeys/size)
		long := string(make([]byte, size-4))
		for i := range n {
			keys.Append(w, long+string(binary.BigEndian.AppendUint32(nil, uint32(i))))
		}
		seen := 0
		it.Allocates(t, 3, func() {
			r := bytescan.NewReader("set", w.Buf)
			index.ReadKeys(r, e, n, maxKeys, func(int, []byte) { seen++ })
			if err := r.Done(); (err == nil) != (size == bytesPerValue) {
				t.Error(err)
			}
		})
		if want := min(n, maxKeys/size); seen != want {
			t.Errorf("%d keys of %d bytes, want %d", seen, size, want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, k := range []Kind{{}, {inline: 1}} {
		a, rows := sample(f, k)
		f.Add(a.Root, a.Body, rows, uint8(4))
	}
	f.Fuzz(func(t *testing.T, root, body []byte, rows uint32, pick uint8) {
		if bad := it.FuzzReader(Kind{}, root, body, rows, pick); bad != "" {
			t.Error(bad)
		}
	})
}
