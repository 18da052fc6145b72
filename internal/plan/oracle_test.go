package plan

import (
	"bytes"
	"math"
	"math/big"
	"regexp"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/predicate"
)

// The oracle decides rows one by one, from the meaning of the operators and without any code of the package. Where engines
// may differ (NaN and the sign of zero under Iceberg's JSON) it answers for every reading: may the row pass, may it fail?

// cell is one value of a row. A list cell has elements instead.
type cell struct {
	v     column.Value
	null  bool
	list  bool
	elems []cell
}

type outcome struct{ pass, fail bool }

func sure(pass bool) outcome { return outcome{pass, !pass} }

func (o outcome) or(p outcome) outcome { return outcome{o.pass || p.pass, o.fail || p.fail} }

func oracle(l *predicate.Leaf, c cell) outcome {
	iceberg := l.Dialect == predicate.Iceberg
	switch {
	case l.Op == predicate.IsNull:
		return sure(c.null != l.Negated)
	case c.null:
		return sure(l.Negated && iceberg)
	case c.list:
		return oracleAny(l, c.elems)
	case l.Op == predicate.IsNaN:
		return sure(isNaN(c.v) != l.Negated)
	case isNaN(c.v) && iceberg:
		return outcome{true, true}
	case isNaN(c.v):
		return sure(l.Negated)
	}
	plain := outcome{}
	for _, signedZeros := range []bool{false, true} {
		if !signedZeros || iceberg {
			plain = plain.or(sure(plainTest(l, c.v, signedZeros) != l.Negated))
		}
	}
	return plain
}

// oracleAny is SQL's v = ANY(list), signed.
func oracleAny(l *predicate.Leaf, elems []cell) outcome {
	hasNull, hasNaN := false, false
	for _, e := range elems {
		switch {
		case e.null:
			hasNull = true
		case isNaN(e.v):
			hasNaN = true
		case order(e.v, l.Values[0], false) == 0:
			return sure(!l.Negated)
		}
	}
	if hasNaN && l.Dialect == predicate.Iceberg {
		return outcome{true, true}
	}
	if hasNull {
		return sure(false)
	}
	return sure(l.Negated)
}

func plainTest(l *predicate.Leaf, v column.Value, signedZeros bool) bool {
	switch l.Op {
	case predicate.StartsWith:
		return strings.HasPrefix(v.S, l.Values[0].S)
	case predicate.Like:
		return likeRegexp(l.Pattern.Text).MatchString(v.S)
	case predicate.In, predicate.Equal:
		for _, x := range l.Values {
			// The literal's zero has no sign of its own under the looser reading.
			if order(v, x, signedZeros) == 0 {
				return true
			}
		}
		return false
	}
	c := order(v, l.Values[0], signedZeros)
	switch l.Op {
	case predicate.Less:
		return c < 0
	case predicate.LessEqual:
		return c <= 0
	case predicate.Greater:
		return c > 0
	case predicate.GreaterEqual:
		return c >= 0
	}
	panic("no such operator")
}

func likeRegexp(pattern string) *regexp.Regexp {
	text := regexp.QuoteMeta(pattern)
	text = strings.ReplaceAll(strings.ReplaceAll(text, "%", "(?s:.*)"), "_", "(?s:.)")
	return regexp.MustCompile("^" + text + "$")
}

func order(a, b column.Value, signedZeros bool) int {
	switch a.Kind {
	case column.Float, column.Double:
		x, y := real64(a), real64(b)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		case signedZeros && math.Signbit(x) != math.Signbit(y):
			if math.Signbit(x) {
				return -1
			}
			return 1
		}
		return 0
	case column.String, column.UUID, column.Fixed, column.Binary:
		return bytes.Compare([]byte(a.S), []byte(b.S))
	default:
		return whole(a).Cmp(whole(b))
	}
}

func real64(v column.Value) float64 {
	if v.Kind == column.Float {
		return float64(math.Float32frombits(uint32(v.Lo)))
	}
	return math.Float64frombits(v.Lo)
}

func isNaN(v column.Value) bool {
	return (v.Kind == column.Float || v.Kind == column.Double) && math.IsNaN(real64(v))
}

// whole is an integer-like or decimal value as a number.
func whole(v column.Value) *big.Int {
	if v.Kind != column.Decimal {
		return big.NewInt(int64(v.Lo))
	}
	x := new(big.Int).Lsh(big.NewInt(v.Hi), 64)
	return x.Add(x, new(big.Int).SetUint64(v.Lo))
}

func decimalOf(x *big.Int, scale int) column.Value {
	m := new(big.Int).And(x, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1))) // two's complement
	hi := new(big.Int).Rsh(m, 64).Uint64()
	lo := new(big.Int).And(m, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	return column.DecimalValue(int64(hi), lo, scale)
}
