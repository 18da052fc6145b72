package parquetio

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/fault"
)

// promote converts plain values of a leaf to a table type.
func promote(t *testing.T, e element, typ column.Type, plain []byte, n int) (*column.Vector, error) {
	t.Helper()
	leaf := &node{element: &e}
	c, err := convert(leaf, typ)
	if err != nil {
		t.Fatalf("%s to %s: %v", leaf.typeName(), typ, err)
	}
	var v values
	if err := v.open(leaf, encPlain, plain, n); err != nil {
		t.Fatal(err)
	}
	a := accumulator{conv: c}
	a.reset()
	if err := a.rows(&v, n, n, nil); err != nil {
		return nil, err
	}
	return a.vector(n), nil
}

func TestPromotions(t *testing.T) {
	day := int64(86_400_000_000)
	i, j := func(v int32) []byte { return i32(uint32(v)) }, i64
	ints := func(k column.Kind, v ...int64) (out []column.Value) {
		for _, x := range v {
			out = append(out, column.IntValue(k, x))
		}
		return out
	}
	cat := func(b ...[]byte) (out []byte) {
		for _, x := range b {
			out = append(out, x...)
		}
		return out
	}
	for _, c := range []struct {
		element
		typ   column.Kind
		plain []byte
		want  []column.Value
	}{
		{element{phys: int32s}, column.Long, cat(i(-1), i(math.MinInt32)), ints(column.Long, -1, math.MinInt32)},
		{element{phys: int32s, logical: signedInt, bits: 8}, column.Int, i(-2), ints(column.Int, -2)},
		{element{phys: int32s, logical: unsignedInt, bits: 16}, column.Int, i(65535), ints(column.Int, 65535)},
		{element{phys: int32s, logical: unsignedInt, bits: 32}, column.Long, i(-1), ints(column.Long, math.MaxUint32)},
		{element{phys: int32s, logical: dateType}, column.Date, i(-1), ints(column.Date, -1)},
		{element{phys: int32s, logical: dateType}, column.Timestamp, i(-1), ints(column.Timestamp, -day)},
		{element{phys: int32s, logical: dateType}, column.TimestampNS, i(2), ints(column.TimestampNS, 2*day*1000)},
		{element{phys: int64s, logical: timestampMillis}, column.Timestamp, j(-1), ints(column.Timestamp, -1000)},
		{element{phys: int64s, logical: timestampMillis}, column.TimestampNS, j(-1), ints(column.TimestampNS, -1_000_000)},
		{element{phys: int64s, logical: timestampMicros}, column.TimestampNZ, j(-1), ints(column.TimestampNZ, -1000)},
		{element{phys: int64s, logical: timestampNanos}, column.TimestampTZ, j(-1), ints(column.TimestampTZ, -1)},
		{element{phys: int64s, logical: timestampNanos}, column.TimestampNS, j(-1), ints(column.TimestampNS, -1)},
		{element{phys: int32s, logical: timeMillis}, column.Time, i(5), ints(column.Time, 5000)},
		{element{phys: int64s, logical: timeNanos}, column.Time, j(5999), ints(column.Time, 5)},
		{element{phys: floats}, column.Double, i32(math.Float32bits(1.5)), []column.Value{column.DoubleValue(1.5)}},
		{element{phys: fixedLen, length: 2, logical: float16Type}, column.Float, []byte{0x00, 0x3c, 0x01, 0x00, 0x00, 0xfc, 0x00, 0x80}, []column.Value{
			column.FloatValue(1), column.FloatValue(1.0 / (1 << 24)), column.FloatValue(float32(math.Inf(-1))), column.FloatValue(float32(math.Copysign(0, -1))),
		}},
	} {
		v, err := promote(t, c.element, column.Of(c.typ), c.plain, len(c.want))
		if err != nil {
			t.Errorf("to %s: %v", c.typ, err)
			continue
		}
		for n, want := range c.want {
			if got, ok := v.Value(n); !ok || got != want {
				t.Errorf("%v of %s to %s: %+v, want %+v", n, (&node{element: &c.element}).typeName(), c.typ, got, want)
			}
		}
	}
}

func TestPromotionOverflow(t *testing.T) {
	for name, c := range map[string]struct {
		element
		typ   column.Kind
		plain []byte
	}{
		"millis to nanos": {element{phys: int64s, logical: timestampMillis}, column.TimestampNS, i64(math.MaxInt64 / 1000)},
		"micros to nanos": {element{phys: int64s, logical: timestampMicros}, column.TimestampNS, i64(math.MinInt64)},
		"date to nanos":   {element{phys: int32s, logical: dateType}, column.TimestampNS, i32(200_000)},
		"INT96 to nanos":  {element{phys: int96s}, column.TimestampNS, binary.LittleEndian.AppendUint32(make([]byte, 8), 5_000_000)},
	} {
		if _, err := promote(t, c.element, column.Of(c.typ), c.plain, 1); !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecimalForms(t *testing.T) {
	want := big.NewInt(-300)
	length := func(b []byte) []byte { return append(i32(uint32(len(b))), b...) }
	padded := append(make([]byte, 0, 20), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xd4)
	for name, c := range map[string]struct {
		element
		plain []byte
	}{
		"INT32":       {element{phys: int32s}, i32(0xfffffed4)},
		"INT64":       {element{phys: int64s}, i64(-300)},
		"FLBA":        {element{phys: fixedLen, length: 3}, []byte{0xff, 0xfe, 0xd4}},
		"FLBA padded": {element{phys: fixedLen, length: 20}, padded},
		"BYTE_ARRAY":  {element{phys: byteArray}, length([]byte{0xfe, 0xd4})},
	} {
		c.element.logical, c.element.precision, c.element.scale = decimalType, 5, 2
		v, err := promote(t, c.element, column.DecimalOf(9, 2), c.plain, 1)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, _ := v.Value(0)
		n := new(big.Int).Lsh(big.NewInt(got.Hi), 64)
		if n.Add(n, new(big.Int).SetUint64(got.Lo)).Cmp(want) != 0 || got.Scale != 2 {
			t.Errorf("%s: %v scale %d", name, n, got.Scale)
		}
	}
	wide := append([]byte{1}, make([]byte, 16)...)
	e := element{phys: byteArray, logical: decimalType, precision: 38}
	if _, err := promote(t, e, column.DecimalOf(38, 0), length(wide), 1); !fault.Is(err, fault.Corrupt) {
		t.Errorf("a decimal of more than 128 bits: %v", err)
	}
}
