package mask

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/index/indextest"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// TestRandomKeys: a row is deleted where a later delete file has its key, whichever of both was written before columns were promoted or
// added, by files with and without dictionaries, with and without nulls.
func TestRandomKeys(t *testing.T) {
	rng := indextest.Rand(t)
	for range indextest.Rounds(40) {
		initial := column.IntValue(column.Int, int64(rng.IntN(9)))
		added := field(3, "z", column.Int)
		if rng.IntN(2) == 0 {
			added.Initial = &initial
		}
		narrow := schema(field(1, "x", column.Int), field(2, "y", column.Float), added)
		wide := schema(field(1, "x", column.Long), field(2, "y", column.Double), added)
		wide.ID = 1
		written := []*column.Schema{narrow, wide}
		f := newFixture(t, written[rng.IntN(2)])
		f.s.Schemas = map[int]*column.Schema{0: narrow, 1: wide}
		few := 2 + rng.IntN(60)

		type deletes struct {
			sequence int64
			columns  []int // by place in the schema
			keys     map[string]bool
		}
		var all []deletes
		for range 1 + rng.IntN(3) {
			f.layout = tabletest.NewLayout(rng)
			d := deletes{sequence: 2 + rng.Int64N(3), columns: [][]int{{0}, {1}, {2}, {0, 1}, {2, 0}}[rng.IntN(5)], keys: map[string]bool{}}
			s := &column.Schema{}
			for _, c := range d.columns {
				s.Fields = append(s.Fields, written[rng.IntN(2)].Fields[c])
			}
			keys, texts := keyRows(rng, s, 1+rng.IntN(40), few)
			for _, text := range texts {
				d.keys[fmt.Sprint(text)] = true
			}
			f.keys(d.sequence, s, keys...)
			all = append(all, d)
		}
		var want [][]uint32
		for range 1 + rng.IntN(3) {
			f.layout = tabletest.NewLayout(rng)
			s := written[rng.IntN(2)]
			if rng.IntN(3) == 0 {
				s = schema(s.Fields[:2]...)
			}
			n, sequence := 1+rng.IntN(250), 1+rng.Int64N(4)
			values, texts := keyRows(rng, s, n, few)
			var gone []uint32
			for i, text := range texts {
				if len(s.Fields) == 2 && added.Initial != nil {
					text = append(text, fmt.Sprint(initial.Int64()))
				} else if len(s.Fields) == 2 {
					text = append(text, "null")
				}
				for _, d := range all {
					var key []string
					for _, c := range d.columns {
						key = append(key, text[c])
					}
					if sequence < d.sequence && d.keys[fmt.Sprint(key)] {
						gone = append(gone, uint32(i))
						break
					}
				}
			}
			f.rowsOf(sequence, s, values...)
			want = append(want, gone)
		}
		f.gone(want...)
	}
}

// keyRows is the values of n rows and how they compare.
func keyRows(rng *rand.Rand, s *column.Schema, n, few int) (values []any, texts [][]string) {
	nulls := make([]bool, len(s.Fields))
	for c := range nulls {
		nulls[c] = rng.IntN(2) == 0
	}
	for range n {
		var text []string
		for c, field := range s.Fields {
			var v any = rng.IntN(few) - few/2
			if field.Type.Kind.Floating() {
				v = []float64{float64(v.(int)) / 4, math.NaN(), math.Copysign(0, -1)}[max(0, rng.IntN(12)-9)]
			}
			if nulls[c] && rng.IntN(10) == 0 {
				v = nil
			}
			values, text = append(values, v), append(text, fmt.Sprint(v))
			if v == nil {
				text[c] = "null"
			}
		}
		texts = append(texts, text)
	}
	return values, texts
}
