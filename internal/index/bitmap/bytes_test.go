package bitmap

import (
	"math/rand/v2"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index"
	it "github.com/skomerdb/skomer/internal/index/indextest"
)

var paged = Kind{sizes{inline: 1, page: 30}}

func sample(t testing.TB, k Kind) (it.Artifact, uint32) {
	t.Helper()
	c := it.Of(double, 1.0, nil, 2.5, nan, 1.0, nil, nil, 1.5, 1.0)
	spec := index.Spec{Columns: []column.Path{it.Path(double)}, Rows: 9, RowGroups: []uint32{0}, Pages: []uint32{0}}
	return it.Build(t, rand.New(rand.NewPCG(1, 1)), k, &c, spec, index.Budget{}), 9
}

func TestGoldenInline(t *testing.T) {
	a, _ := sample(t, Kind{})
	it.Golden(t, "inline.v1", `
double [1.0 null 2.5 NaN 1.0 null null 1.5 1.0]
01 version, 05 00 00 double, 00 a value a row, 09 rows, body bytes; 03 nulls and their unit, 01 NaN and its unit
04: 3 values, 00 dictionary in the root: 00 bff0..., 01 f8..., 00 c004...; 00 offset of the first row set
03 rows, 08 bytes, CRC32C; 01 row, 05 bytes, CRC32C; 01 row, 05 bytes, CRC32C
body: 01 chunk, 00 ranges, 03 of them: 00 00, 03 00, 03 00; row 7; row 2; nulls 1 and 5 to 6; NaN 3`, a)
}

func TestGoldenPages(t *testing.T) {
	a, _ := sample(t, paged)
	it.Golden(t, "pages.v1", `
The column of inline.v1 with a dictionary in pages of about 30 bytes at the end of the body
04: 3 values, 01 pages, 02 of them: 02 values, 08 bff0..., unit; 01 value, 08 c004..., unit`, a)
}

func TestGoldenTooMany(t *testing.T) {
	c := it.Of(str, "a", "b", nil)
	spec := index.Spec{Columns: []column.Path{it.Path(str)}, Rows: 3, RowGroups: []uint32{0}, Pages: []uint32{0}, Params: index.Params{index.ParamCap: "1"}}
	a := it.Build(t, rand.New(rand.NewPCG(1, 1)), Kind{}, &c, spec, index.Budget{})
	it.Golden(t, "toomany.v1", `
string [a b null], cap=1: 03 rows, 01 null and its unit, 00 too many values`, a)
}

// text is the vector of strings of the rows of a column.
func text(values ...string) *column.Vector {
	b := column.NewBuilder(str)
	for _, v := range values {
		b.Append(column.StringValue(v))
	}
	return b.Finish()
}

func TestGoldenLists(t *testing.T) {
	path := it.ListPath(str)
	b, err := Kind{}.NewBuilder(index.Spec{Columns: []column.Path{path}, Rows: 4, RowGroups: []uint32{0}, Pages: []uint32{0}}, index.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	lists := &column.Vector{Type: path[0].Type, Len: 4, Valid: []uint64{0b1011}, Off: []uint32{0, 3, 3, 3, 4}, Kids: []*column.Vector{text("b", "a", "b", "b")}}
	if err := b.Add([]*column.Vector{lists}); err != nil {
		t.Fatal(err)
	}
	var body it.Body
	root, _, err := b.Finish(&body)
	if err != nil {
		t.Fatal(err)
	}
	it.Golden(t, "lists.v1", `
lists of strings [[b a b] [] null [b]]
01 a list a row; 04 rows; 01 row is null or has a null element, and its unit
03: 2 values in the root: 00 01 a, 00 01 b; row sets: row 0; rows 0 and 3`, it.Artifact{Root: root, Body: body.Bytes()})
}

func TestHostile(t *testing.T) {
	for _, k := range []Kind{{}, paged} {
		a, rows := sample(t, k)
		it.Hostile(t, k, a, double, rows, it.Lit(double, 1.5))
	}
}

func hostileRoot(rest func(w *bytescan.Writer)) []byte {
	w := &bytescan.Writer{}
	w.U8(version)
	index.Encoding{Kind: column.String}.Append(w)
	w.U8(index.ShapeValues)
	w.Uvarint(1 << 30)
	w.Uvarint(1 << 40)
	w.Uvarint(0)
	w.Uvarint(maxCap + 1)
	w.U8(formPages)
	rest(w)
	return w.Buf
}

func TestOpenMemory(t *testing.T) {
	root := hostileRoot(func(w *bytescan.Writer) {
		w.Uvarint(maxCap)
		for i := range maxCap {
			w.Uvarint(1)
			w.Blob([]byte{byte(i >> 16), byte(i >> 8), byte(i)})
			index.Unit{}.Append(w)
		}
	})
	it.Allocates(t, 2, func() {
		if _, err := (Kind{}).Open(root, 1<<30); err != nil {
			t.Error(err)
		}
	})
}

func TestPageMemory(t *testing.T) {
	w := &bytescan.Writer{}
	keys := index.NewKeyWriter(index.Encoding{Kind: column.String})
	long := string(make([]byte, bytesPerValue-3))
	for i := range maxCap {
		keys.Append(w, long+string([]byte{byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	w.Uvarint(0)
	for range maxCap {
		w.Uvarint(1)
		w.Uvarint(1)
		w.U32(0)
	}
	x := &reader{rows: 1 << 30, enc: index.Encoding{Kind: column.String}, bodySize: 1 << 40}
	p := &probe{reader: x}
	it.Allocates(t, 8, func() {
		r := bytescan.NewReader("page", w.Buf)
		x.readPage(r, maxCap, func(key []byte) bool { return key[len(key)-1] == 0 }, func(s rowSet, _ bool) { p.other.add(s) })
		if err := r.Done(); err != nil || len(p.other.sets) != maxCap {
			t.Errorf("%d sets, %v", len(p.other.sets), err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	for _, k := range []Kind{{}, paged} {
		a, rows := sample(f, k)
		f.Add(a.Root, a.Body, rows, uint8(4))
		a, rows = pieced(f, k)
		f.Add(a.Root, a.Body, rows, uint8(4))
	}
	f.Fuzz(func(t *testing.T, root, body []byte, rows uint32, pick uint8) {
		if bad := it.FuzzReader(Kind{}, root, body, rows, pick); bad != "" {
			t.Error(bad)
		}
	})
}

// FuzzPage reads arbitrary pages as if their checksum were right.
func FuzzPage(f *testing.F) {
	f.Add([]byte("\x00\x01a\x00\x01b\x00\x01\x05\x00\x00\x00\x00\x02\x05\x00\x00\x00\x00"), uint8(2), uint32(9))
	f.Fuzz(func(t *testing.T, b []byte, n uint8, rows uint32) {
		x := &reader{rows: rows, enc: index.Encoding{Kind: column.String}, bodySize: 100}
		x.readPage(bytescan.NewReader("page", b), int(n), func([]byte) bool { return true }, func(s rowSet, _ bool) {
			if s.count == 0 || s.count > rows || s.unit.Off < 0 || s.unit.Off+s.unit.Len > 100 {
				t.Errorf("row set %+v", s)
			}
		})
	})
}
