package column

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestPick: picked values are the values at those places, for every layout a decoder makes.
func TestPick(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	ints := NewBuilder(Of(Long))
	texts := NewBuilder(Of(String))
	flags := NewBuilder(Of(Bool))
	wide := NewBuilder(DecimalOf(30, 2))
	small := NewBuilder(Of(Int))
	const n = 300
	for i := range n {
		if rng.IntN(5) == 0 {
			for _, b := range []*Builder{ints, texts, flags, wide, small} {
				b.AppendNull()
			}
			continue
		}
		ints.Append(IntValue(Long, int64(i)))
		small.Append(IntValue(Int, int64(-i)))
		texts.Append(StringValue(fmt.Sprint("text", i%7)))
		flags.Append(BoolValue(i%3 == 0))
		wide.Append(DecimalValue(-1, uint64(i), 2))
	}
	text := texts.Finish()
	dict := NewBuilder(Of(String))
	for i := range 40 {
		dict.Append(StringValue(fmt.Sprint("d", i)))
	}
	coded := &Vector{Type: Of(String), Len: n, Valid: text.Valid, Dict: dict.Finish(), Idx: make([]uint32, n)}
	list := &Vector{Type: Type{Kind: List, Fields: []Field{{Name: "element", Type: Of(Long)}}}, Len: n, Off: make([]uint32, n+1), Valid: text.Valid}
	for i := range n {
		coded.Idx[i] = uint32(i % 40)
		list.Off[i+1] = min(list.Off[i]+uint32(i%3), n)
	}
	list.Kids = []*Vector{ints.Finish()}
	b := &Batch{Start: 1000, Rows: n, Cols: []*Vector{list.Kids[0], text, flags.Finish(), wide.Finish(), small.Finish(), coded, list}}
	for _, share := range []int{1, 2, 20} {
		var rows []uint32
		for i := range uint32(n) {
			if rng.IntN(share) == 0 {
				rows = append(rows, i)
			}
		}
		got := b.Pick(rows)
		for k, r := range rows {
			if got.Position(k) != b.Position(int(r)) {
				t.Fatalf("row %d has position %d", r, got.Position(k))
			}
			for c, v := range b.Cols {
				if a, w := shown(got.Cols[c], k), shown(v, int(r)); a != w {
					t.Fatalf("column %d, row %d: %s, want %s", c, r, a, w)
				}
			}
		}
	}
}

func shown(v *Vector, i int) string {
	if v.Null(i) {
		return "null"
	}
	if v.Type.Kind == List {
		out := "["
		for e := v.Off[i]; e < v.Off[i+1]; e++ {
			out += shown(v.Kids[0], int(e)) + " "
		}
		return out + "]"
	}
	x, ok := v.Value(i)
	return fmt.Sprint(x, ok)
}

// TestPickRuns: runs of rows are the same copy as the rows one by one, with nulls and without.
func TestPickRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const n = 300
	longs, ints, wide, texts, nulls := NewBuilder(Of(Long)), NewBuilder(Of(Int)), NewBuilder(DecimalOf(30, 2)), NewBuilder(Of(String)), NewBuilder(Of(Long))
	for i := range n {
		longs.Append(IntValue(Long, int64(i)))
		ints.Append(IntValue(Int, int64(-i)))
		wide.Append(DecimalValue(-1, uint64(i), 2))
		texts.Append(StringValue(fmt.Sprint("text", i)))
		if i%3 == 0 {
			nulls.AppendNull()
		} else {
			nulls.Append(IntValue(Long, int64(i)))
		}
	}
	b := &Batch{Start: 1000, Rows: n, Cols: []*Vector{longs.Finish(), ints.Finish(), wide.Finish(), texts.Finish(), nulls.Finish()}}
	for range 50 {
		var runs []Run
		var rows []uint32
		for at := uint32(rng.IntN(9)); at < n; {
			to := min(n, at+1+uint32(rng.IntN(30)))
			runs = append(runs, Run{at, to})
			for ; at < to; at++ {
				rows = append(rows, at)
			}
			at += 1 + uint32(rng.IntN(9))
		}
		got, want := b.PickRuns(runs), b.Pick(rows)
		if got.Rows != want.Rows {
			t.Fatalf("%d rows, want %d", got.Rows, want.Rows)
		}
		for k := range rows {
			if got.Position(k) != want.Position(k) {
				t.Fatalf("row %d has position %d, want %d", k, got.Position(k), want.Position(k))
			}
			for c := range b.Cols {
				if a, w := shown(got.Cols[c], k), shown(want.Cols[c], k); a != w {
					t.Fatalf("column %d, row %d: %s, want %s", c, k, a, w)
				}
			}
		}
	}
}
