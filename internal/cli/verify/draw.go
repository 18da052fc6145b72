package verify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/column"
)

// sample is values of one column as they occur in the table.
type sample struct {
	name   string // dotted, quoted where needed
	kind   column.Kind
	values []skomer.Value
	seen   int64
}

// keep is how many values of a column are kept, each value of the column with the same chance.
const keep = 256

// longest is the bytes of the longest value that becomes a literal: patterns and filters have limits.
const longest = 4 << 10

// add offers a value to the reservoir (Vitter, "Random Sampling with a Reservoir", 1985, algorithm R). Texts that are not UTF-8 and very
// long values cannot be written in a filter.
func (s *sample) add(v skomer.Value, rng *rand.Rand) {
	if len(v.S) > longest || s.kind == column.String && !utf8.ValidString(v.S) {
		return
	}
	s.seen++
	if len(s.values) < keep {
		s.values = append(s.values, v)
		return
	}
	if at := rng.Int64N(s.seen); at < keep {
		s.values[at] = v
	}
}

// drawer makes random filters over samples.
type drawer struct {
	rng     *rand.Rand
	samples []*sample
}

// filter is a random filter of at most depth levels of AND, OR and NOT.
func (d *drawer) filter(depth int) string {
	if depth == 0 || d.rng.IntN(2) == 0 {
		return d.leaf()
	}
	switch d.rng.IntN(5) {
	case 0:
		return "NOT (" + d.filter(depth-1) + ")"
	case 1, 2:
		return "(" + d.filter(depth-1) + " OR " + d.filter(depth-1) + ")"
	default:
		return "(" + d.filter(depth-1) + " AND " + d.filter(depth-1) + ")"
	}
}

func (d *drawer) leaf() string {
	s := d.samples[d.rng.IntN(len(d.samples))]
	if len(s.values) == 0 || d.rng.IntN(12) == 0 {
		return s.name + pick(d.rng, " IS NULL", " IS NOT NULL")
	}
	one := func() string { return literal(s.values[d.rng.IntN(len(s.values))]) }
	switch d.rng.IntN(8) {
	case 0, 1:
		return s.name + " = " + one()
	case 2:
		return s.name + " IN (" + one() + ", " + one() + ", " + one() + ")"
	case 3:
		return s.name + pick(d.rng, " <> ", " < ", " <= ", " > ", " >= ") + one()
	case 4:
		return s.name + " NOT IN (" + one() + ", " + one() + ")"
	case 5:
		if s.kind == column.String {
			return s.name + pick(d.rng, " LIKE ", " NOT LIKE ") + like(s.values[d.rng.IntN(len(s.values))].S, d.rng)
		}
		if s.kind.Floating() {
			return s.name + pick(d.rng, " IS NAN", " IS NOT NAN")
		}
		fallthrough
	default:
		return s.name + " BETWEEN " + one() + " AND " + one()
	}
}

func pick(rng *rand.Rand, from ...string) string { return from[rng.IntN(len(from))] }

// like is a pattern that the text s matches: a prefix, a suffix or a piece of it.
func like(s string, rng *rand.Rand) string {
	runes := []rune(s)
	from := rng.IntN(len(runes) + 1)
	to := from + rng.IntN(len(runes)-from+1)
	switch rng.IntN(3) {
	case 0:
		from = 0
	case 1:
		to = len(runes)
	}
	var pattern strings.Builder
	if from > 0 {
		pattern.WriteByte('%')
	}
	for _, r := range runes[from:to] {
		if strings.ContainsRune(`%_\`, r) {
			r = '_'
		}
		pattern.WriteRune(r)
	}
	if to < len(runes) {
		pattern.WriteByte('%')
	}
	return quote(pattern.String())
}

// literal is a value as SQL text.
func literal(v skomer.Value) string {
	switch v.Kind {
	case column.Bool, column.Int, column.Long, column.Decimal:
		return render.Text(v)
	case column.Float, column.Double:
		switch f := v.Float64(); {
		case math.IsNaN(f):
			return "'NaN'"
		case math.IsInf(f, 1):
			return "'Infinity'"
		case math.IsInf(f, -1):
			return "'-Infinity'"
		}
		return render.Text(v)
	case column.Fixed, column.Binary:
		return fmt.Sprintf("X'%x'", v.S)
	default:
		return quote(render.Text(v))
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
