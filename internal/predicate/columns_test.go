package predicate_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/column"
)

// testColumn is a column with the values and literals that random filters draw from.
type testColumn struct {
	path    column.Path
	sqlName string
	pool    []column.Value
	literal func(r *rand.Rand) literal
	// lists holds elements of pool; path then ends at the element.
	list bool
}

func (c testColumn) typ() column.Type { return c.path.Leaf().Type }

var numberTexts = []string{
	"-3", "-2.5", "-1", "0", "0.0", "-0", "1e0", "25e-1", "3.00", ".5", "2.", "2147483647", "2147483648", "2147483647.5", "-2147483648",
	"-2147483648.5", "-2147483649", "9223372036854775807", "9223372036854775807.5", "9223372036854775808", "-9223372036854775808",
	"-9223372036854775809", "1e30", "-1e30", "1e-400", "-1e-400", "1e400", "-1e400", "1.23", "1.235", "-1.235", "9999999.99", "9999999.995",
	"10000000", "-10000000", "0.1", "16777217", "3.4028235e38", "3.5e38", "-3.5e38", "1e300", "1e-46",
}

func unscaled(v column.Value) *big.Int {
	if v.Kind != column.Decimal {
		return big.NewInt(v.Int64())
	}
	n := new(big.Int).Lsh(big.NewInt(v.Hi), 64)
	return n.Add(n, new(big.Int).SetUint64(v.Lo))
}

func exactOrder(want *big.Rat, of func(column.Value) *big.Rat) func(column.Value) (int, bool) {
	return func(v column.Value) (int, bool) { return of(v).Cmp(want), true }
}

func ratOf(text string) *big.Rat {
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	return n
}

// jsonNumber spells a number as JSON does.
func jsonNumber(text string) string {
	switch {
	case strings.HasPrefix(text, "."):
		return "0" + text
	case strings.HasSuffix(text, "."):
		return text + "0"
	default:
		return text
	}
}

func numberLiteral(scale int) func(*rand.Rand) literal {
	unit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
	return func(r *rand.Rand) literal {
		text := pick(r, numberTexts)
		return literal{sql: text, json: jsonNumber(text), order: exactOrder(ratOf(text), func(v column.Value) *big.Rat {
			return new(big.Rat).Quo(new(big.Rat).SetInt(unscaled(v)), unit)
		})}
	}
}

func floatLiteral(width int) func(*rand.Rand) literal {
	return func(r *rand.Rand) literal {
		if r.IntN(4) == 0 {
			named := pick(r, []string{"NaN", "Infinity", "-Infinity"})
			want := map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}[named]
			return literal{sql: "'" + named + "'", json: `"` + named + `"`, order: func(v column.Value) (int, bool) { return floatOrder(v.Float64(), want) }}
		}
		text := pick(r, numberTexts)
		exact := ratOf(text)
		near, _ := exact.Float64()
		if width == 32 {
			f, _ := exact.Float32()
			near = float64(f)
		}
		return literal{sql: text, json: jsonNumber(text), order: func(v column.Value) (int, bool) {
			f := v.Float64()
			if math.IsInf(near, 0) && !math.IsNaN(f) && !math.IsInf(f, 0) {
				return new(big.Rat).SetFloat64(f).Cmp(exact), true
			}
			if math.IsInf(near, 0) && math.IsInf(f, 0) {
				return int(math.Copysign(1, f)), true
			}
			return floatOrder(f, near)
		}}
	}
}

func floatOrder(a, b float64) (int, bool) {
	switch {
	case a < b:
		return -1, true
	case a > b:
		return 1, true
	default:
		return 0, a == b
	}
}

var instants = []time.Time{
	time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
	time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2020, 2, 29, 12, 0, 0, 500_000_000, time.UTC),
	time.Date(2020, 2, 29, 12, 0, 0, 500_000_600, time.UTC), time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC),
	time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(1600, 3, 1, 0, 0, 0, 1, time.UTC),
	time.Date(1900, 2, 28, 23, 0, 0, 0, time.UTC),
}

func nanosOf(t time.Time) *big.Int {
	n := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1_000_000_000))
	return n.Add(n, big.NewInt(int64(t.Nanosecond())))
}

var unitNanos = map[column.Kind]int64{
	column.Date: 86_400_000_000_000, column.Time: 1000, column.Timestamp: 1000, column.TimestampTZ: 1000, column.TimestampNS: 1, column.TimestampNZ: 1,
}

func temporalOrder(kind column.Kind, nanos *big.Rat) func(column.Value) (int, bool) {
	return exactOrder(nanos, func(v column.Value) *big.Rat {
		return new(big.Rat).SetInt(new(big.Int).Mul(big.NewInt(v.Int64()), big.NewInt(unitNanos[kind])))
	})
}

func timestampLiteral(kind column.Kind) func(*rand.Rand) literal {
	zoned := kind == column.TimestampTZ || kind == column.TimestampNZ
	return func(r *rand.Rand) literal {
		at := pick(r, instants)
		if r.IntN(5) == 0 && kind != column.Date {
			micros := new(big.Int).Div(nanosOf(at), big.NewInt(1000))
			text := at.Add(-time.Duration(at.Nanosecond() % 1000)).Format("2006-01-02T15:04:05.999999999")
			nanos := new(big.Rat).SetInt(micros.Mul(micros, big.NewInt(1000)))
			return literal{sql: "TIMESTAMP '" + text + "'", json: new(big.Int).Div(micros, big.NewInt(1000)).String(), order: temporalOrder(kind, nanos)}
		}
		nanos := new(big.Rat).SetInt(nanosOf(at))
		layouts := []string{"2006-01-02 15:04:05.000000000", "2006-01-02T15:04:05.999999999"}
		zone := ""
		if zoned {
			zone = pick(r, []string{"", "Z", "+02:00", "-0330", "+14"})
			offset := map[string]int{"": 0, "Z": 0, "+02:00": 7200, "-0330": -12600, "+14": 50400}[zone]
			nanos.Sub(nanos, new(big.Rat).SetInt64(int64(offset)*1_000_000_000))
		}
		text := at.Format(pick(r, layouts))
		if strings.Contains(text, ".") && len(text) == 29 && r.IntN(2) == 0 {
			text += "05"
			nanos.Add(nanos, big.NewRat(1, 20))
		}
		text += zone
		if r.IntN(4) == 0 {
			text = at.Format("2006-01-02")
			nanos = new(big.Rat).SetInt(nanosOf(at.Truncate(24 * time.Hour)))
		}
		typed := ""
		if r.IntN(2) == 0 {
			typed = "TIMESTAMP "
		}
		return literal{sql: typed + "'" + text + "'", json: `"` + text + `"`, order: temporalOrder(kind, nanos)}
	}
}

func timeLiteral(r *rand.Rand) literal {
	nanos := pick(r, []int64{0, 1, 999, 1000, 43_200_000_000_000, 43_200_000_000_500, 86_399_999_999_999})
	text := time.Unix(0, nanos).UTC().Format("15:04:05.999999999")
	return literal{sql: pick(r, []string{"", "TIME "}) + "'" + text + "'", json: `"` + text + `"`, order: temporalOrder(column.Time, new(big.Rat).SetInt64(nanos))}
}

func textLiteral(pool []string) func(*rand.Rand) literal {
	return func(r *rand.Rand) literal {
		s := pick(r, pool)
		return literal{sql: "'" + strings.ReplaceAll(s, "'", "''") + "'", json: fmt.Sprintf("%q", s), text: s, order: func(v column.Value) (int, bool) {
			return strings.Compare(v.S, s), true
		}}
	}
}

func bytesLiteral(pool []column.Value, uuid bool) func(*rand.Rand) literal {
	return func(r *rand.Rand) literal {
		want := pick(r, pool).S
		h := hex.EncodeToString([]byte(want))
		sql, json := "X'"+h+"'", `"`+h+`"`
		if uuid {
			h = h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
			sql, json = "'"+strings.ToUpper(h)+"'", `"`+h+`"`
		}
		return literal{sql: sql, json: json, order: func(v column.Value) (int, bool) { return strings.Compare(v.S, want), true }}
	}
}

func boolLiteral(r *rand.Rand) literal {
	want := r.IntN(2) == 1
	return literal{sql: strings.ToUpper(fmt.Sprint(want)), json: fmt.Sprint(want), order: func(v column.Value) (int, bool) {
		return int(v.Lo) - map[bool]int{false: 0, true: 1}[want], true
	}}
}

func ints(k column.Kind, of ...int64) (out []column.Value) {
	for _, n := range of {
		out = append(out, column.IntValue(k, n))
	}
	return out
}

func decimals(scale int, of ...string) (out []column.Value) {
	for _, s := range of {
		n, _ := new(big.Int).SetString(s, 10)
		lo := new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
		out = append(out, column.DecimalValue(new(big.Int).Rsh(n, 64).Int64(), lo, scale))
	}
	return out
}

func temporals(kind column.Kind) (out []column.Value) {
	for _, t := range instants {
		n := new(big.Int).Div(nanosOf(t), big.NewInt(unitNanos[kind]))
		if n.IsInt64() {
			out = append(out, column.IntValue(kind, n.Int64()), column.IntValue(kind, n.Int64()-1))
		}
	}
	return out
}

var textPool = []string{"", "a", "ab", "abc", "abd", "foo_bar", "fooxbar", "100%", "é", "éa", "日本", "it's", `foo a\b bar`, "A", "a\nb"}

// pairs is a way to give all byte kinds a pool.
func bytesPool(k column.Kind, of ...string) (out []column.Value) {
	for _, s := range of {
		out = append(out, column.BytesValue(k, []byte(s)))
	}
	return out
}

func doubles(of ...float64) (out []column.Value) {
	for _, f := range of {
		out = append(out, column.DoubleValue(f))
	}
	return out
}

func floats(of ...float64) (out []column.Value) {
	for _, f := range of {
		out = append(out, column.FloatValue(float32(f)))
	}
	return out
}

// testColumns is every primitive kind, a struct's field, lists and a map.
func testColumns() ([]testColumn, *column.Schema) {
	negZero := math.Copysign(0, -1)
	special := []float64{0, negZero, 1, -1, 0.1, 3, 3.5, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat32, -math.MaxFloat32, 16777216}
	strs := append(bytesPool(column.String, textPool...), bytesPool(column.String, "\xff", "a\xffb", "\xe2\x82", "é\xa9")...)
	uuids := bytesPool(column.UUID, "0123456789abcdef", "\xff123456789abcdef", strings.Repeat("\x00", 16))
	fixed := bytesPool(column.Fixed, "abcde", "abcdf", "\x00\x00\x00\x00\x00", "\xff\xff\xff\xff\xff")
	binary := bytesPool(column.Binary, "", "a", "\x00", "\xff", "ab")
	longs := ints(column.Long, -3, -2, 0, 1, 2, 3, 1<<31, math.MaxInt64, math.MinInt64)
	var cols []testColumn
	s := &column.Schema{}
	add := func(t column.Type, pool []column.Value, lit func(*rand.Rand) literal) {
		name := strings.ReplaceAll(strings.ReplaceAll(t.String(), " ", ""), ",", "_")
		f := column.Field{ID: len(s.Fields)*10 + 1, Name: "c " + name, Type: t}
		s.Fields = append(s.Fields, f)
		cols = append(cols, testColumn{path: column.Path{f}, sqlName: `"` + f.Name + `"`, pool: pool, literal: lit})
	}
	add(column.Of(column.Bool), []column.Value{column.BoolValue(false), column.BoolValue(true)}, boolLiteral)
	add(column.Of(column.Int), ints(column.Int, -3, -2, 0, 1, 2, 3, math.MaxInt32, math.MinInt32), numberLiteral(0))
	add(column.Of(column.Long), longs, numberLiteral(0))
	add(column.Of(column.Float), floats(special...), floatLiteral(32))
	add(column.Of(column.Double), append(doubles(special...), doubles(1e300, math.MaxFloat64, -math.MaxFloat64)...), floatLiteral(64))
	add(column.DecimalOf(9, 2), decimals(2, "0", "123", "124", "-123", "-124", "999999999", "-999999999", "250", "300"), numberLiteral(2))
	add(column.DecimalOf(38, 10), decimals(10, "0", "12300000000", "12350000000", "-12350000000", "25000000000", "99999999999999999999999999999999999999",
		"-99999999999999999999999999999999999999", "92233720368547758070000000000", "21474836470000000000", "-1"), numberLiteral(10))
	for _, k := range []column.Kind{column.Date, column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ} {
		add(column.Of(k), temporals(k), timestampLiteral(k))
	}
	add(column.Of(column.Time), ints(column.Time, 0, 1, 43_200_000_000, 43_200_000_001, 86_399_999_999), timeLiteral)
	add(column.Of(column.String), strs, textLiteral(textPool))
	add(column.Of(column.UUID), uuids, bytesLiteral(uuids, true))
	add(column.FixedOf(5), fixed, bytesLiteral(fixed, false))
	add(column.Of(column.Binary), binary, bytesLiteral(binary, false))
	add(column.Of(column.Unknown), nil, numberLiteral(0))
	field := column.Field{ID: 1002, Name: "a.b", Type: column.Of(column.Long)}
	st := column.Field{ID: 1001, Name: "st", Type: column.Type{Kind: column.Struct, Fields: []column.Field{field}}}
	long := column.Field{ID: 1004, Name: "element", Type: column.Of(column.Long)}
	str := column.Field{ID: 1006, Name: "element", Type: column.Of(column.String)}
	dbl := column.Field{ID: 1011, Name: "element", Type: column.Of(column.Double)}
	l1 := column.Field{ID: 1003, Name: "longs", Type: column.Type{Kind: column.List, Fields: []column.Field{long}}}
	l2 := column.Field{ID: 1005, Name: "strs", Type: column.Type{Kind: column.List, Fields: []column.Field{str}}}
	l3 := column.Field{ID: 1010, Name: "dbls", Type: column.Type{Kind: column.List, Fields: []column.Field{dbl}}}
	key := column.Field{ID: 1008, Name: "key", Type: column.Of(column.String)}
	value := column.Field{ID: 1009, Name: "value", Type: column.Of(column.Long)}
	m := column.Field{ID: 1007, Name: "m", Type: column.Type{Kind: column.Map, Fields: []column.Field{key, value}}}
	s.Fields = append(s.Fields, st, l1, l2, m, l3)
	element := func(r *rand.Rand) literal {
		n := pick(r, longs)
		text := fmt.Sprint(n.Int64())
		return literal{sql: text, json: text, order: exactOrder(ratOf(text), func(v column.Value) *big.Rat { return new(big.Rat).SetInt(unscaled(v)) })}
	}
	exactFloat := func(r *rand.Rand) literal {
		for {
			if x := floatLiteral(64)(r); !strings.HasSuffix(x.sql, "e400") {
				return x
			}
		}
	}
	cols = append(cols,
		testColumn{path: column.Path{st, field}, sqlName: `st."a.b"`, pool: longs, literal: numberLiteral(0)},
		testColumn{path: column.Path{l1, long}, sqlName: "longs", pool: longs, literal: element, list: true},
		testColumn{path: column.Path{l2, str}, sqlName: "STRS", pool: strs, literal: textLiteral(textPool), list: true},
		testColumn{path: column.Path{m, key}, sqlName: "m.key", pool: strs, literal: textLiteral(textPool), list: true},
		testColumn{path: column.Path{m, value}, sqlName: "m.value", pool: longs, literal: element, list: true},
		testColumn{path: column.Path{l3, dbl}, sqlName: "dbls", pool: doubles(special...), literal: exactFloat, list: true},
	)
	return cols, s
}
