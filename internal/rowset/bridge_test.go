package rowset

import (
	"math/rand/v2"
	"testing"
)

// TestBridge: nothing is lost, every gap of at most gap rows is filled, nothing grows past the ends, and no empty run longer
// than 126 rows is taken in.
func TestBridge(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 300 {
		size := uint32(1 + rng.IntN(5000))
		var rows []uint32
		for r := uint32(rng.IntN(200)); r < size; r += 1 + uint32(rng.IntN([]int{2, 60, 400}[rng.IntN(3)])) {
			rows = append(rows, r)
		}
		s := FromRows(size, rows)
		const gap = 48
		b := Bridge(s, gap)
		if !AndNot(s, b).Empty() {
			t.Fatalf("rows of %v are missing in %v", s, b)
		}
		if len(rows) > 0 && (b.Ranges()[0].Start != rows[0] || b.Ranges()[len(b.Ranges())-1].End != rows[len(rows)-1]+1) {
			t.Fatalf("%v reaches past %v", b, s)
		}
		for i := 1; i < len(rows); i++ {
			between := rows[i] - rows[i-1] - 1
			filled := between == 0 || b.Contains(rows[i-1]+1)
			if between <= gap && !filled && s.bits == nil || between > 126 && filled && between > 0 {
				t.Fatalf("a gap of %d rows behind %d is filled: %v", between, rows[i-1], filled)
			}
		}
	}
}
