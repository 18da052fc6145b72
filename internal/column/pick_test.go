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
