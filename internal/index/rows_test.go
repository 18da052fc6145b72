package index

import (
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/rowset"
)

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("SKOMER_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("replay: SKOMER_SEED=%d go test -run '^%s$'", seed, t.Name())
	return rand.New(rand.NewPCG(seed, 1))
}

// drawRanges draws sparse, dense or clustered ranges below size.
func drawRanges(r *rand.Rand, size uint32) []rowset.Range {
	var out []rowset.Range
	gap, run := 1+r.IntN(2000), 1+r.IntN(3)
	if r.IntN(3) == 0 {
		gap = 3
	}
	if r.IntN(3) == 0 {
		run = 200000
	}
	for at := uint64(r.IntN(gap + 1)); at < uint64(size); {
		end := min(at+1+uint64(r.IntN(run)), uint64(size))
		out = append(out, rowset.Range{Start: uint32(at), End: uint32(end)})
		at = end + 1 + uint64(r.IntN(gap))
	}
	return out
}

func TestRowSetsReadBack(t *testing.T) {
	r := seeded(t)
	forms := [2]int{}
	for range 60 {
		size := []uint32{0, 1, 64, 65535, 65536, 65537, 300000}[r.IntN(7)]
		set := rowset.FromRanges(size, drawRanges(r, size))
		w := &bytescan.Writer{}
		AppendRows(w, set)
		scan := bytescan.NewReader("rows", w.Buf)
		got := ReadRows(scan, size)
		if err := scan.Done(); err != nil || !got.Equal(set) {
			t.Fatalf("%d rows: %s became %s, %v", size, set, got, err)
		}
		again := &bytescan.Writer{}
		AppendRows(again, got)
		if string(again.Buf) != string(w.Buf) {
			t.Errorf("equal sets over %d rows give other bytes", size)
		}
		if len(w.Buf) > chunkBitmap {
			forms[1]++
		} else {
			forms[0]++
		}
		for n := range min(len(w.Buf), 200) {
			scan := bytescan.NewReader("rows", w.Buf[:n])
			if ReadRows(scan, size); !fault.Is(scan.Done(), fault.Corrupt) {
				t.Fatalf("cut to %d of %d bytes: %v", n, len(w.Buf), scan.Err())
			}
		}
		if size > 1 && !set.Empty() {
			scan := bytescan.NewReader("rows", w.Buf)
			last := set.Ranges()[len(set.Ranges())-1].End - 1
			if ReadRows(scan, last); scan.Err() == nil {
				t.Errorf("rows up to %d read into a set over %d", last, last)
			}
		}
	}
	if forms[0] == 0 || forms[1] == 0 {
		t.Errorf("forms drawn: %v", forms)
	}
}

func TestRowSetsAtTheEndOfTheOrdinals(t *testing.T) {
	const size = 1<<32 - 1
	for _, set := range []*rowset.Set{rowset.All(size), rowset.FromRows(size, []uint32{0, size - 1}), rowset.None(size)} {
		w := &bytescan.Writer{}
		AppendRows(w, set)
		scan := bytescan.NewReader("rows", w.Buf)
		if got := ReadRows(scan, size); scan.Done() != nil || !got.Equal(set) {
			t.Errorf("%s became %s, %v", set, got, scan.Err())
		}
	}
}

func TestRowsGatherInAnyOrder(t *testing.T) {
	r := seeded(t)
	for range 40 {
		size := []uint32{1, 100, 5000, 200000}[r.IntN(4)]
		ranges := drawRanges(r, size)
		want := rowset.FromRanges(size, ranges)
		r.Shuffle(len(ranges), func(i, j int) { ranges[i], ranges[j] = ranges[j], ranges[i] })
		rows := NewRows(size)
		for _, x := range ranges {
			if !rows.Add(x) {
				t.Fatalf("%v of %d refused", x, size)
			}
		}
		if rows.Add(rowset.Range{Start: 0, End: size + 1}) || rows.Add(rowset.Range{Start: 1, End: 1}) {
			t.Error("took rows past the end or none")
		}
		if got := rows.Set(); !got.Equal(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func FuzzReadRows(f *testing.F) {
	w := &bytescan.Writer{}
	AppendRows(w, rowset.FromRows(100000, []uint32{1, 2, 3, 70000}))
	f.Add(w.Buf, uint32(100000))
	f.Fuzz(func(t *testing.T, b []byte, size uint32) {
		size %= 1 << 22
		scan := bytescan.NewReader("rows", b)
		got := ReadRows(scan, size)
		if got.Size() != size || scan.Err() != nil && !got.Empty() {
			t.Errorf("%s after %v", got, scan.Err())
		}
	})
}

// TestRunsOfRows: they are those of the set, so many at a time, whether this is ranges or bits; none is kept behind a failure.
func TestRunsOfRows(t *testing.T) {
	r := seeded(t)
	for range 200 {
		size := []uint32{1, 63, 64, 65, 5000, 300000}[r.IntN(6)]
		ranges, most := drawRanges(r, size), 1+r.IntN(100)
		rows := NewRows(size)
		for _, x := range ranges {
			rows.Add(x)
		}
		var got []rowset.Range
		if err := rows.Runs(most, func(runs []rowset.Range) error {
			if len(runs) == 0 || len(runs) > most {
				t.Errorf("%d runs at a time, at most %d", len(runs), most)
			}
			got = append(got, runs...)
			return nil
		}); err != nil || !slices.Equal(got, rowset.FromRanges(size, ranges).Ranges()) {
			t.Fatalf("%d rows, %d ranges: %d runs, %v", size, len(ranges), len(got), err)
		}
	}
	const size = 1 << 21
	rows, visits := NewRows(size), 0
	for i := uint32(0); i < size; i += 2 {
		rows.Add(rowset.Range{Start: i, End: i + 1})
	}
	failed := errors.New("failed")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := rows.Runs(100, func([]rowset.Range) error { visits++; return failed }); !errors.Is(err, failed) || visits != 1 {
		t.Errorf("%v after %d visits", err, visits)
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%d bytes allocated", after.TotalAlloc-before.TotalAlloc)
	}
}
