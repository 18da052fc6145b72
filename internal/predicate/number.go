package predicate

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
)

// maxNumber is the longest number in characters, and bounds the powers of ten that a number may cost.
const maxNumber = 1000

// point is a literal on the scale of an integer-like column: floor is its integral part, rounded down, and frac
// reports whether it lies above floor.
type point struct {
	floor *big.Int
	frac  bool
}

// parseDecimal reads [+-]digits[.digits][e[+-]digits] as unscaled × 10^exp.
func parseDecimal(text string) (unscaled *big.Int, exp int, ok bool) {
	if len(text) > maxNumber {
		return nil, 0, false
	}
	mantissa, exponent, hasExp := cutAny(text, "eE")
	if hasExp {
		e, err := strconv.ParseInt(exponent, 10, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, 0, false
		}
		exp = int(max(-1<<30, min(1<<30, e)))
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if unsigned := strings.TrimLeft(digits[:min(1, len(digits))], "+-") + digits[min(1, len(digits)):]; !allDigits(unsigned) {
		return nil, 0, false
	}
	unscaled, ok = new(big.Int).SetString(digits, 10)
	return unscaled, exp - len(fraction), ok
}

func cutAny(s, chars string) (before, after string, found bool) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// atScale is unscaled × 10^(exp+scale) as a point. Powers beyond 10^(2·maxNumber) are cut to it: they lie outside of every column.
func atScale(unscaled *big.Int, exp, scale int) point {
	exp += scale
	if exp >= 0 {
		factor := pow10(min(exp, 2*maxNumber))
		return point{floor: factor.Mul(factor, unscaled)}
	}
	// Euclidean division by a positive number rounds down.
	quotient, rest := new(big.Int).DivMod(unscaled, pow10(min(-exp, 2*maxNumber)), new(big.Int))
	return point{floor: quotient, frac: rest.Sign() != 0}
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// domain is the least and the greatest unscaled value of an integer-like column type.
func domain(t column.Type) (lo, hi *big.Int) {
	switch t.Kind {
	case column.Int, column.Date:
		return big.NewInt(math.MinInt32), big.NewInt(math.MaxInt32)
	case column.Time:
		return big.NewInt(0), big.NewInt(microsPerDay - 1)
	case column.Decimal:
		hi = pow10(t.Width)
		hi.Sub(hi, big.NewInt(1))
		return new(big.Int).Neg(hi), hi
	default:
		return big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64)
	}
}

// fit turns "x op p" into an equivalent test with a value of the column's own type. none means that no value passes.
func (p point) fit(t column.Type, op Op) (_ Op, v column.Value, none bool) {
	lo, hi := domain(t)
	below, above := p.floor.Cmp(lo) < 0, p.floor.Cmp(hi) > 0
	switch op {
	case Less, LessEqual:
		switch {
		case above:
			return LessEqual, integral(t, hi), false
		case below:
			return op, v, true
		case p.frac:
			op = LessEqual
		}
	case Greater, GreaterEqual:
		switch {
		case below:
			return GreaterEqual, integral(t, lo), false
		case above:
			return op, v, true
		case p.frac:
			op = Greater
		}
	default:
		if below || above || p.frac {
			return op, v, true
		}
	}
	return op, integral(t, p.floor), false
}

var mask64 = new(big.Int).SetUint64(math.MaxUint64)

// integral is the value of an integer-like type from its unscaled number, which must be in the type's domain.
func integral(t column.Type, n *big.Int) column.Value {
	if t.Kind != column.Decimal {
		return column.IntValue(t.Kind, n.Int64())
	}
	lo := new(big.Int).And(n, mask64).Uint64()
	return column.DecimalValue(new(big.Int).Rsh(n, 64).Int64(), lo, t.Scale)
}

// unscaledOf is the inverse of integral for decimals.
func unscaledOf(v column.Value) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(v.Hi), 64)
	return n.Or(n, new(big.Int).SetUint64(v.Lo))
}

// fitFloat turns "x op text" into a test with a float of the column's width, to which the literal is rounded (half to
// even). A finite literal beyond the width's range lies between the greatest finite number and infinity.
func fitFloat(t column.Type, op Op, text string) (_ Op, v column.Value, none, ok bool) {
	width := 64
	value, greatest := column.DoubleValue, math.MaxFloat64
	if t.Kind == column.Float {
		width, greatest = 32, math.MaxFloat32
		value = func(f float64) column.Value { return column.FloatValue(float32(f)) }
	}
	f, named := namedFloat(text)
	if named {
		return op, value(f), false, true
	}
	if _, _, ok := parseDecimal(text); !ok {
		return op, v, false, false
	}
	f, _ = strconv.ParseFloat(text, width)
	if !math.IsInf(f, 0) {
		return op, value(f), false, true
	}
	sign := math.Copysign(1, f)
	switch op {
	case Less, LessEqual:
		if sign > 0 {
			return LessEqual, value(greatest), false, true
		}
		return LessEqual, value(f), false, true
	case Greater, GreaterEqual:
		if sign < 0 {
			return GreaterEqual, value(-greatest), false, true
		}
		return GreaterEqual, value(f), false, true
	default:
		return op, v, true, true
	}
}

// namedFloat reads NaN and the infinities, in any case.
func namedFloat(text string) (float64, bool) {
	switch strings.ToLower(text) {
	case "nan":
		return math.NaN(), true
	case "inf", "infinity", "+inf", "+infinity":
		return math.Inf(1), true
	case "-inf", "-infinity":
		return math.Inf(-1), true
	}
	return 0, false
}
