package column

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestKeep: kept values are the values of the rows whose bits are set, for every layout a decoder makes and every density of bits.
func TestKeep(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("replay: SKOMER_SEED=%d go test -run '^%s$'", seed, t.Name())
	rng := rand.New(rand.NewPCG(seed, 7))
	for range 6 {
		b := everyLayout(rng, rng.IntN(300))
		for _, density := range []int{0, 1, 3, 8, 50, 100} {
			words, rows := bitsOfRows(rng, b.Rows, density)
			got := b.Keep(words)
			if got.Rows != len(rows) {
				t.Fatalf("seed %d: %d rows of %d, want %d", seed, got.Rows, b.Rows, len(rows))
			}
			for k, r := range rows {
				if got.Position(k) != b.Position(int(r)) {
					t.Fatalf("seed %d: row %d has position %d, want %d", seed, r, got.Position(k), b.Position(int(r)))
				}
			}
			for c, v := range b.Cols {
				same(t, fmt.Sprintf("seed %d, column %d", seed, c), got.Cols[c], v, rows)
				same(t, fmt.Sprintf("seed %d, column %d picked", seed, c), v.Pick(rows), v, rows)
			}
		}
	}
}

// same compares values with those at rows of the vector that they come from, which is then overwritten: copies must not change.
func same(t *testing.T, what string, got, from *Vector, rows []uint32) {
	t.Helper()
	if got.Len != len(rows) {
		t.Fatalf("%s: %d values, want %d", what, got.Len, len(rows))
	}
	for k, r := range rows {
		if a, w := shown(got, k), shown(from, int(r)); a != w {
			t.Fatalf("%s, row %d: %s, want %s", what, r, a, w)
		}
	}
}

// TestKeptRowsAreCopies: what was kept does not change when the batch is overwritten by the next one.
func TestKeptRowsAreCopies(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for _, density := range []int{5, 50, 100} {
		b := everyLayout(rng, 300)
		words, rows := bitsOfRows(rng, b.Rows, density)
		got := b.Keep(words)
		var before []string
		for k := range rows {
			for _, v := range got.Cols {
				before = append(before, shown(v, k))
			}
		}
		for _, v := range b.Cols {
			overwrite(v)
		}
		for k := range rows {
			for _, v := range got.Cols {
				if now := shown(v, k); now != before[0] {
					t.Fatalf("row %d was %s, is %s", k, before[0], now)
				}
				before = before[1:]
			}
		}
	}
}

func overwrite(v *Vector) {
	clear(v.Valid)
	clear(v.Fixed)
	clear(v.Off)
	clear(v.Bytes)
	clear(v.Idx)
	for _, k := range v.Kids {
		overwrite(k)
	}
	if v.Dict != nil {
		overwrite(v.Dict)
	}
}

// bitsOfRows draws which rows of a batch are meant, density in a hundred, in stretches at times.
func bitsOfRows(rng *rand.Rand, n, density int) (words []uint64, rows []uint32) {
	words = make([]uint64, (n+63)/64)
	whole := rng.IntN(2) == 0
	for i := range n {
		word := i / 64
		if in := rng.IntN(100) < density || whole && word%3 == 1; in && !(whole && word%3 == 2) {
			words[word] |= 1 << (i % 64)
			rows = append(rows, uint32(i))
		}
	}
	return words, rows
}

// everyLayout is n rows of columns of every layout, with nulls and without.
func everyLayout(rng *rand.Rand, n int) *Batch {
	b := &Batch{Start: rng.Uint32N(1000), Rows: n}
	for _, nulls := range []int{0, 5, 80} {
		ints, texts, flags := NewBuilder(Of(Long)), NewBuilder(Of(String)), NewBuilder(Of(Bool))
		wide, small := NewBuilder(DecimalOf(30, 2)), NewBuilder(Of(Int))
		all := []*Builder{ints, texts, flags, wide, small}
		for range n {
			for _, c := range all {
				if rng.IntN(100) < nulls {
					c.AppendNull()
					continue
				}
				switch c {
				case ints:
					c.Append(IntValue(Long, rng.Int64()))
				case texts:
					c.Append(StringValue(fmt.Sprint("text", rng.IntN(20_000))[:4+rng.IntN(2)]))
				case flags:
					c.Append(BoolValue(rng.IntN(2) == 0))
				case wide:
					c.Append(DecimalValue(-1, rng.Uint64(), 2))
				case small:
					c.Append(IntValue(Int, int64(rng.Int32())))
				}
			}
		}
		for _, c := range all {
			b.Cols = append(b.Cols, c.Finish())
		}
		plain, text := b.Cols[len(b.Cols)-5], b.Cols[len(b.Cols)-4]
		b.Cols = append(b.Cols, coded(rng, n, 40, text.Valid), coded(rng, n, 300, text.Valid), lists(rng, n, plain, text.Valid))
		b.Cols = append(b.Cols, &Vector{Type: Type{Kind: Struct, Fields: []Field{{Name: "a", Type: Of(Long)}}}, Len: n, Valid: text.Valid, Kids: []*Vector{plain}})
	}
	if rng.IntN(2) == 0 {
		b.Pos = make([]uint32, n)
		for i, at := 0, b.Start; i < n; i++ {
			at += 1 + rng.Uint32N(4)
			b.Pos[i] = at
		}
	}
	return b
}

func coded(rng *rand.Rand, n, distinct int, valid []uint64) *Vector {
	dict := NewBuilder(Of(String))
	for i := range distinct {
		dict.Append(StringValue(fmt.Sprint("d", i)))
	}
	v := &Vector{Type: Of(String), Len: n, Valid: valid, Dict: dict.Finish(), Idx: make([]uint32, n)}
	for i := range v.Idx {
		v.Idx[i] = rng.Uint32N(uint32(distinct))
	}
	return v
}

func lists(rng *rand.Rand, n int, elements *Vector, valid []uint64) *Vector {
	v := &Vector{Type: Type{Kind: List, Fields: []Field{{Name: "element", Type: Of(Long)}}}, Len: n, Off: make([]uint32, n+1), Valid: valid}
	for i := range n {
		v.Off[i+1] = min(v.Off[i]+rng.Uint32N(3), uint32(n))
	}
	v.Kids = []*Vector{elements}
	return v
}

func shown(v *Vector, i int) string {
	if v.Null(i) {
		return "null"
	}
	switch v.Type.Kind {
	case Struct:
		return "{" + shown(v.Kids[0], i) + "}"
	case List:
		out := "["
		for e := v.Off[i]; e < v.Off[i+1]; e++ {
			out += shown(v.Kids[0], int(e)) + " "
		}
		return out + "]"
	}
	x, ok := v.Value(i)
	return fmt.Sprint(x, ok)
}
