package index

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/rowset"
)

// drawMap is sources of up to some chunks, whose rows go one source after the other, in stretches that moved apart, or less than all.
func drawMap(t *testing.T, r *rand.Rand) *OrdinalMap {
	t.Helper()
	var rows, source, old []uint32
	for s := range 1 + r.IntN(3) {
		n := uint32([]int{0, 1, 64, 1000, 65536, 65537, 131072, 200000}[r.IntN(8)])
		rows = append(rows, n)
		for i := range n {
			source, old = append(source, uint32(s)), append(old, i)
		}
	}
	switch n := len(source); {
	case r.IntN(3) == 0 || n == 0:
	case r.IntN(2) == 0: // cut and put together in another order
		for range 1 + r.IntN(3) {
			a, b := r.IntN(n), r.IntN(n)
			a, b = min(a, b), max(a, b)
			source, old = slices.Concat(source[b:], source[:a], source[a:b]), slices.Concat(old[b:], old[:a], old[a:b])
		}
	default: // some are gone, in stretches that begin and end anywhere
		for range 1 + r.IntN(6) {
			a := r.IntN(len(source))
			b := min(a+1+r.IntN(70000), len(source))
			if b-a == len(source) {
				break
			}
			source, old = slices.Delete(source, a, b), slices.Delete(old, a, b)
		}
	}
	m, err := Originating(rows, source, old)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSplicesAreWhatIsWrittenAnew sends sets through maps as bytes and row by row: the bytes must be equal.
func TestSplicesAreWhatIsWrittenAnew(t *testing.T) {
	r := seeded(t)
	var spliced RowsWriter
	bits, lists := 0, 0
	for range 40 {
		m := drawMap(t, r)
		sets, encoded := make([]*rowset.Set, m.Sources()), make([][]byte, m.Sources())
		want := NewRows(m.Rows())
		ranges := drawRanges(r, 1<<18)
		for i := range sets {
			if r.IntN(3) == 0 {
				ranges = drawRanges(r, 1<<18)
			}
			var in []rowset.Range
			for _, x := range ranges {
				if x.End = min(x.End, m.SourceRows(i)); x.Start < x.End {
					in = append(in, x)
				}
			}
			sets[i] = rowset.FromRanges(m.SourceRows(i), in)
			w := &bytescan.Writer{}
			AppendRows(w, sets[i])
			encoded[i] = w.Buf
			for _, x := range in {
				m.Each(i, x, func(_, to rowset.Range) { want.Add(to) })
			}
		}
		spliced.Reset()
		along := m.Stretches()
		if along == nil {
			t.Fatal("a map of a few stretches is none")
		}
		for _, a := range along {
			i := a[0].Source
			n, err := spliced.Splice("rows", encoded[i], rowset.Range{End: m.SourceRows(i)}, a, 0)
			if err != nil || n != sets[i].Count() {
				t.Fatalf("%d of %d rows, %v", n, sets[i].Count(), err)
			}
		}
		all, got, own := want.Set(), &bytescan.Writer{}, &bytescan.Writer{}
		n := spliced.Count()
		spliced.Append(got)
		AppendRows(own, all)
		if n != all.Count() || string(got.Buf) != string(own.Buf) {
			scan := bytescan.NewReader("rows", got.Buf)
			back := ReadRows(scan, m.Rows())
			t.Fatalf("%d rows in %d bytes (%v, equal: %v), want %d in %d", n, len(got.Buf), scan.Done(), back.Equal(all), all.Count(), len(own.Buf))
		}
		if len(got.Buf) > chunkBitmap {
			bits++
		} else {
			lists++
		}
	}
	if bits == 0 || lists == 0 {
		t.Errorf("%d sets of bits, %d of lists", bits, lists)
	}
}

// TestSplicesOfTheLastOrdinals has rows up to the greatest ordinal there is.
func TestSplicesOfTheLastOrdinals(t *testing.T) {
	const last = 1<<32 - 2
	w := &bytescan.Writer{}
	AppendRows(w, rowset.FromRows(70000, []uint32{0, 69998, 69999}))
	var out RowsWriter
	if _, err := out.Splice("rows", w.Buf, rowset.Range{End: 70000}, []Stretch{{Old: rowset.Range{End: 70000}, To: last - 69999}}, 0); err != nil {
		t.Fatal(err)
	}
	got := &bytescan.Writer{}
	out.Append(got)
	scan := bytescan.NewReader("rows", got.Buf)
	if set := ReadRows(scan, last+1); scan.Done() != nil || !set.Equal(rowset.FromRows(last+1, []uint32{last - 69999, last - 1, last})) {
		t.Errorf("%s, %v", set, scan.Err())
	}
}

func TestMapsOfManyStretchesAreNotSpliced(t *testing.T) {
	var kept []uint32
	for i := uint32(0); i < 4*maxMapped; i += 2 {
		kept = append(kept, i)
	}
	m, err := Concatenated([]uint32{4 * maxMapped}, []*rowset.Set{rowset.FromRows(4*maxMapped, kept)})
	if err != nil {
		t.Fatal(err)
	}
	if m.Stretches() != nil {
		t.Errorf("%d stretches are few", len(kept))
	}
}

// TestInterleavedSourcesAreMappedRowByRow: to go along their groups would read each source once for every group.
func TestInterleavedSourcesAreMappedRowByRow(t *testing.T) {
	const rows = 1 << 16
	for groups, along := range map[uint32]bool{1: true, maxPasses: true, maxPasses + 1: false, maxMapped: false} {
		m, to := NewOrdinalMap([]uint32{rows, rows}), uint32(0)
		for k := range groups {
			old := rowset.Range{Start: k * rows / groups, End: (k + 1) * rows / groups}
			for i := range m.Sources() {
				m.Move(i, old, to)
				to += old.Len()
			}
		}
		if err := m.Seal(to); err != nil {
			t.Fatal(err)
		}
		if got := m.Stretches() != nil; got != along {
			t.Errorf("two sources in %d groups each: along these %v", groups, got)
		}
	}
}

// FuzzSplice splices arbitrary bytes: what it takes must be what is read row by row, and what it wrote must read back.
func FuzzSplice(f *testing.F) {
	w := &bytescan.Writer{}
	AppendRows(w, rowset.FromRows(100000, []uint32{1, 2, 3, 70000}))
	f.Add(w.Buf, uint32(100000), uint32(10), uint32(99990), uint32(5))
	dense := NewRows(70000)
	for i := uint32(0); i < 70000; i += 3 {
		dense.Add(rowset.Range{Start: i, End: i + 1})
	}
	bits := &bytescan.Writer{}
	AppendRows(bits, dense.Set())
	f.Add(bits.Buf, uint32(70000), uint32(0), uint32(70000), uint32(65536))
	f.Fuzz(func(t *testing.T, b []byte, size, from, end, to uint32) {
		size %= 1 << 20
		end = min(end, size)
		from, to = min(from, end), to%(1<<20)
		scan := bytescan.NewReader("rows", b)
		set := ReadRows(scan, size)
		read := scan.Done() == nil
		var out RowsWriter
		var along []Stretch
		if from < end {
			along = []Stretch{{Old: rowset.Range{Start: from, End: end}, To: to}}
		}
		n, err := out.Splice("rows", b, rowset.Range{End: size}, along, 0)
		if err != nil {
			if !fault.Is(err, fault.Corrupt) {
				t.Error(err)
			}
			return
		}
		if !read {
			t.Skip() // ranges that touch or of many bytes are read by one and not by the other
		}
		want := NewRows(to + end - from)
		for _, x := range set.Ranges() {
			if x.Start, x.End = max(x.Start, from), min(x.End, end); x.Start < x.End {
				want.Add(rowset.Range{Start: x.Start - from + to, End: x.End - from + to})
			}
		}
		got := &bytescan.Writer{}
		out.Append(got)
		back := bytescan.NewReader("rows", got.Buf)
		if moved := ReadRows(back, to+end-from); back.Done() != nil || n != set.Count() || !moved.Equal(want.Set()) {
			t.Errorf("%s became %s, %v", set, moved, back.Err())
		}
	})
}
