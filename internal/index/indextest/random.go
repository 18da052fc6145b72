// Package indextest answers, for tests only: does a kind keep the law of package index?
//
// It draws random columns and leaves of every primitive type, has an oracle written apart from the code under test, and runs
// builders and probes by their protocol. A kind gets its property tests by calling Law.
package indextest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
)

// Rand is a generator whose seed is logged; SKOMER_SEED replays it.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("SKOMER_SEED=%s: %v", s, err)
		}
		seed = n
	}
	t.Logf("replay: SKOMER_SEED=%d go test -run '^%s$'", seed, strings.Split(t.Name(), "/")[0])
	return rand.New(rand.NewPCG(seed, 0x5c09))
}

// Rounds is n, or n × SKOMER_LONG for long runs.
func Rounds(n int) int {
	if f, err := strconv.Atoi(os.Getenv("SKOMER_LONG")); err == nil && f > 0 {
		return n * f
	}
	return n
}

// Types is one type of every indexable kind, some with several parameters.
var Types = []column.Type{
	column.Of(column.Bool), column.Of(column.Int), column.Of(column.Long), column.Of(column.Float), column.Of(column.Double),
	column.DecimalOf(9, 2), column.DecimalOf(38, 10), column.Of(column.Date), column.Of(column.Time), column.Of(column.Timestamp),
	column.Of(column.TimestampTZ), column.Of(column.TimestampNS), column.Of(column.TimestampNZ), column.Of(column.String),
	column.Of(column.UUID), column.FixedOf(3), column.FixedOf(90), column.Of(column.Binary),
}

// Path is a column of one field with id 7.
func Path(t column.Type) column.Path { return column.Path{{ID: 7, Name: "x", Type: t}} }

// Value draws a value of type t: few distinct ones, extremes, special floats, strings around the lengths at which kinds cut.
func Value(r *rand.Rand, t column.Type) column.Value {
	switch t.Kind {
	case column.Bool:
		return column.BoolValue(r.IntN(2) == 1)
	case column.Int, column.Date:
		return column.IntValue(t.Kind, int64(int32(integer(r))))
	case column.Float:
		return column.FloatValue(float32(float(r)))
	case column.Double:
		return column.DoubleValue(float(r))
	case column.Decimal:
		v := integer(r)
		if r.IntN(4) == 0 && t.Width > 18 {
			return column.DecimalValue(int64(r.IntN(2000)-1000), r.Uint64(), t.Scale)
		}
		return column.DecimalValue(v>>63, uint64(v), t.Scale)
	case column.String:
		return column.StringValue(text(r))
	case column.Binary:
		return column.BytesValue(t.Kind, raw(r, text(r)))
	case column.UUID, column.Fixed:
		b := make([]byte, t.Size())
		for i := range b {
			b[i] = "\x00\x01\x7f\x80\xff"[r.IntN(5)]
		}
		if r.IntN(2) == 0 {
			clear(b[:len(b)-1])
		}
		return column.BytesValue(t.Kind, b)
	default:
		return column.IntValue(t.Kind, integer(r))
	}
}

func integer(r *rand.Rand) int64 {
	switch r.IntN(8) {
	case 0:
		return []int64{0, -1, 1, math.MaxInt64, math.MinInt64, math.MaxInt32, math.MinInt32, math.MaxInt32 + 1}[r.IntN(8)]
	case 1:
		return int64(r.Uint64())
	case 2:
		return int64(r.IntN(1000) * 1000)
	default:
		return int64(r.IntN(40) - 20)
	}
}

func float(r *rand.Rand) float64 {
	switch r.IntN(6) {
	case 0:
		return []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, math.Copysign(math.NaN(), -1)}[r.IntN(8)]
	case 1:
		return math.NaN()
	case 2:
		return r.NormFloat64() * 1e3
	default:
		return float64(r.IntN(20)-10) / 2
	}
}

var stems = []string{
	"", "a", "ab", "abc", "b", "zebra", "é", "\U0001F427", "a\uD7FF", "%", "a_b", "foo\\bar",
	strings.Repeat("a", 15), strings.Repeat("q", 63), strings.Repeat("q", 64), strings.Repeat("q", 65), strings.Repeat("q", 70),
	strings.Repeat("\U0010FFFF", 17), strings.Repeat("w", 1023), strings.Repeat("w", 1024), strings.Repeat("w", 1025), strings.Repeat("w", 1100),
}

func text(r *rand.Rand) string {
	s := ""
	switch r.IntN(6) {
	case 0:
		s = stems[r.IntN(len(stems))]
	case 1:
		s = fmt.Sprintf("user-%06d", r.IntN(100000))
	default:
		s = stems[r.IntN(12)]
	}
	for r.IntN(3) == 0 {
		s += string([]rune("abcqwz_%\\é\U0001F427")[r.IntN(11)])
	}
	return s
}

func raw(r *rand.Rand, s string) []byte {
	b := []byte(s)
	switch r.IntN(4) {
	case 0:
		b = append(b, 0xff)
	case 1:
		b = append(b, 0)
	case 2:
		for i := range b {
			b[i] = 0xff
		}
	}
	return b
}

// Column is values of one type; nil is null.
type Column struct {
	Type   column.Type
	Values []*column.Value
}

// DrawColumn draws n values, with many, few or only nulls, clustered or not.
func DrawColumn(r *rand.Rand, t column.Type, n int) Column {
	c := Column{Type: t, Values: make([]*column.Value, n)}
	pool := make([]column.Value, 1+r.IntN(60))
	for i := range pool {
		pool[i] = Value(r, t)
	}
	nulls := []float64{0, 0, 0.05, 0.5, 1}[r.IntN(5)]
	clustered := r.IntN(3) == 0
	for i := range c.Values {
		v := Value(r, t)
		switch {
		case clustered:
			v = pool[i*len(pool)/n]
		case r.IntN(2) == 0:
			v = pool[r.IntN(len(pool))]
		}
		if !(r.Float64() < nulls) && !(clustered && nulls > 0 && i*7/n == 3) {
			c.Values[i] = &v
		}
	}
	return c
}

// Vector is values i to j as a vector: plain or with a dictionary, nulls in either.
func (c *Column) Vector(r *rand.Rand, i, j int) *column.Vector {
	if r.IntN(2) == 0 {
		b := column.NewBuilder(c.Type)
		for _, v := range c.Values[i:j] {
			if v == nil {
				b.AppendNull()
			} else {
				b.Append(*v)
			}
		}
		return b.Finish()
	}
	dict, slot := column.NewBuilder(c.Type), map[column.Value]uint32{}
	dict.AppendNull()
	out := &column.Vector{Type: c.Type, Len: j - i, Valid: make([]uint64, (j-i+63)/64), Idx: make([]uint32, j-i)}
	nullInDict := r.IntN(2) == 0
	for k, v := range c.Values[i:j] {
		if v != nil {
			at, ok := slot[*v]
			if !ok {
				at = uint32(len(slot) + 1)
				slot[*v] = at
				dict.Append(*v)
			}
			out.Idx[k] = at
		}
		if v != nil || nullInDict {
			out.Valid[k>>6] |= 1 << (k & 63)
		}
	}
	out.Dict = dict.Finish()
	return out
}

// Cuts draws the starts of granules over n rows: groups, and pages that contain them.
func Cuts(r *rand.Rand, n int) (groups, pages []uint32) {
	for i := range n {
		switch {
		case i == 0 || r.IntN(n/3+1) == 0:
			groups, pages = append(groups, uint32(i)), append(pages, uint32(i))
		case r.IntN(n/12+1) == 0:
			pages = append(pages, uint32(i))
		}
	}
	return groups, pages
}
