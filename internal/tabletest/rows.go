// Package tabletest makes random Iceberg tables for tests, together with the rows they hold, so that an oracle can answer
// without reading a byte of them.
//
// Every choice comes from the caller's generator: the same seed makes the same table.
package tabletest

import (
	"math"
	"math/rand/v2"

	"github.com/skomerdb/skomer/internal/column"
)

// Cell is one value of a row: of a primitive column, of a primitive inside a struct, or of a list of primitives.
type Cell struct {
	Null bool
	// Outer marks a null that comes from the struct around the value.
	Outer bool
	Val   column.Value
	List  []Cell
}

// Row holds one cell per Leaf.
type Row []Cell

// Leaf is a column as a row holds it: a primitive, maybe inside structs, or a list of primitives.
type Leaf struct {
	Path column.Path
	List bool
}

// Element is the type of the values in the cells.
func (l Leaf) Element() column.Type {
	if t := l.Path.Leaf().Type; l.List {
		return t.Fields[0].Type
	} else {
		return t
	}
}

// Leaves lists the leaves of a schema in field order. Maps and deeper lists are not made here.
func Leaves(s *column.Schema) []Leaf {
	var out []Leaf
	s.Walk(func(p column.Path) bool {
		if p.Repeated() {
			return true
		}
		switch p.Leaf().Type.Kind {
		case column.Struct:
		case column.List:
			out = append(out, Leaf{append(column.Path(nil), p...), true})
		default:
			out = append(out, Leaf{append(column.Path(nil), p...), false})
		}
		return true
	})
	return out
}

// Types is every primitive type that tables are made of.
func Types() []column.Type {
	return []column.Type{
		column.Of(column.Bool), column.Of(column.Int), column.Of(column.Long), column.Of(column.Float), column.Of(column.Double),
		column.DecimalOf(9, 2), column.DecimalOf(18, 3), column.DecimalOf(38, 10), column.Of(column.Date), column.Of(column.Time),
		column.Of(column.Timestamp), column.Of(column.TimestampTZ), column.Of(column.TimestampNS), column.Of(column.TimestampNZ),
		column.Of(column.String), column.Of(column.UUID), column.FixedOf(5), column.Of(column.Binary),
	}
}

// Domain draws values of one column of one file: a few centres and a spread, so that files differ, ranges overlap, and
// values repeat.
type Domain struct {
	Type     column.Type
	Low, N   int64 // integer-like draws come from [Low, Low+N)
	NullRate float64
	NaNRate  float64
}

// NewDomain picks a domain for a column of a file.
func NewDomain(rng *rand.Rand, t column.Type, optional bool) Domain {
	d := Domain{Type: t, Low: rng.Int64N(2000) - 1000, N: []int64{1, 3, 20, 500, 100000}[rng.IntN(5)]}
	if optional {
		d.NullRate = []float64{0, 0, 0.1, 0.5, 1}[rng.IntN(5)]
	}
	if t.Kind.Floating() {
		d.NaNRate = []float64{0, 0, 0.1, 0.9}[rng.IntN(4)]
	}
	return d
}

// Draw makes one value.
func (d Domain) Draw(rng *rand.Rand) column.Value { return d.at(rng, d.Low+rng.Int64N(d.N)) }

func (d Domain) at(rng *rand.Rand, n int64) column.Value {
	switch t := d.Type; t.Kind {
	case column.Bool:
		return column.BoolValue(n&1 == 1)
	case column.Float:
		return column.FloatValue(float32(d.float(rng, n)))
	case column.Double:
		return column.DoubleValue(d.float(rng, n))
	case column.Decimal:
		hi := int64(0)
		if n < 0 {
			hi = -1
		}
		return column.DecimalValue(hi, uint64(n), t.Scale)
	case column.Date, column.Int:
		return column.IntValue(t.Kind, n)
	case column.Time:
		return column.IntValue(t.Kind, (n+200000)*1000)
	case column.Timestamp, column.TimestampTZ:
		return column.IntValue(t.Kind, n*3600*1000000)
	case column.TimestampNS, column.TimestampNZ:
		return column.IntValue(t.Kind, n*3600*1000000000+n%7)
	case column.String:
		return column.StringValue(word(n))
	case column.UUID:
		return column.BytesValue(t.Kind, spread(n, 16))
	case column.Fixed:
		return column.BytesValue(t.Kind, spread(n, t.Width))
	case column.Binary:
		return column.BytesValue(t.Kind, spread(n, int(uint64(n)%9)))
	default:
		return column.IntValue(t.Kind, n)
	}
}

func (d Domain) float(rng *rand.Rand, n int64) float64 {
	switch {
	case rng.Float64() < d.NaNRate:
		return math.NaN()
	case n == 0 && rng.IntN(2) == 0:
		return math.Copysign(0, -1)
	case rng.IntN(200) == 0:
		return math.Inf(1 - 2*rng.IntN(2))
	default:
		return float64(n) / 4
	}
}

var stems = []string{"", "a", "ab", "abc", "é", "機器", "zz%", "a_b", "\U0001F680", "Zebra", "x y"}

// word is a string that sorts near its neighbours' for some n and far for others; some share long prefixes.
func word(n int64) string {
	u := uint64(n + 1<<40)
	s := stems[u%uint64(len(stems))]
	if u%17 == 0 {
		s += "a long common prefix that runs past every truncation bound in use, sixty-four bytes and more: "
	}
	for range u % 3 {
		s += string(rune('a' + u/11%26))
	}
	return s
}

func spread(n int64, size int) []byte {
	b := make([]byte, size)
	u := uint64(n)
	for i := range b {
		b[i] = byte(u >> (8 * (i % 8)))
	}
	return b
}
