package verify

import (
	"math/rand/v2"
	"unicode/utf8"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/column"
)

// form is how a filter tests a term.
type form uint8

const (
	plain    form = iota // by comparing its value
	elements             // contains(name, value)
	words                // contains_token(name, 'words')
)

// sample is values of one term as they occur in the table.
type sample struct {
	name string // in SQL text; of elements that of the list, of words that of the text
	form form
	kind column.Kind
	reservoir[skomer.Value]
}

// keep is how many values of a term are kept, each value of the term with the same chance.
const keep = 256

// longest is the bytes of the longest value that becomes a literal: patterns and filters have limits.
const longest = 4 << 10

// reservoir is a random choice of what was added (Vitter, "Random Sampling with a Reservoir", 1985, algorithm R).
type reservoir[T any] struct {
	values []T
	seen   int64
}

func (r *reservoir[T]) add(v T, rng *rand.Rand) {
	r.seen++
	if len(r.values) < keep {
		r.values = append(r.values, v)
		return
	}
	if at := rng.Int64N(r.seen); at < keep {
		r.values[at] = v
	}
}

// writable tells whether a filter can name a value: not texts that are not UTF-8, nor very long ones.
func (s *sample) writable(v skomer.Value) bool {
	return len(v.S) <= longest && (s.kind != column.String || utf8.ValidString(v.S))
}

// add offers a value to the reservoir.
func (s *sample) add(v skomer.Value, rng *rand.Rand) {
	if s.writable(v) {
		s.reservoir.add(v, rng)
	}
}
