package parquetio

import (
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/rowset"
)

// judge decides which stored bounds of a leaf may be believed.
type judge struct {
	writer writer
	leaf   *node
	conv   *conversion
	order  columnOrder
}

// bounds converts stored bounds into the table's type; nil: not believed. current tells min_value and max_value (and page
// indexes) from the deprecated pair.
func (j judge) bounds(lo, hi []byte, current bool) (low, high *column.Value) {
	if j.writer.distrusted(j.leaf, current) || !j.ordered(lo, hi, current) || j.conv.target.Kind.Floating() && j.writer.lostNaNBounds() {
		return nil, nil
	}
	low, high = j.value(lo), j.value(hi)
	if low != nil && low.IsNaN() || high != nil && high.IsNaN() {
		return nil, nil
	}
	if low != nil && high != nil && column.Compare(*low, *high) > 0 {
		return nil, nil
	}
	// A maximum cut inside a character was cut, and maybe not rounded up: it may lie below the values. A minimum so cut
	// is still below them.
	if high != nil && j.conv.target.Kind == column.String && !utf8.ValidString(high.S) {
		high = nil
	}
	return low, high
}

// ordered reports whether the writer's order of the leaf's values is the order of the table's type.
func (j judge) ordered(lo, hi []byte, current bool) bool {
	if j.leaf.logical == float16Type || j.leaf.logical == intervalType {
		return false // writers compare half floats in orders that even equal bounds do not survive; intervals have none
	}
	if sameBytes(lo, hi) {
		return true
	}
	switch j.leaf.phys {
	case int96s:
		return false // compared as bytes, or as anything else, by different writers
	case byteArray:
		if j.leaf.logical == decimalType {
			return false // bytes of different lengths were compared as they are
		}
	case fixedLen:
		if j.leaf.logical == decimalType {
			// Signed and unsigned order agree unless the signs differ; then a pair in unsigned order has min above max.
			return current && j.order == orderType && !j.writer.signedOrderOnly() && len(lo) > 0 && len(hi) > 0
		}
	}
	switch j.leaf.phys {
	case byteArray, fixedLen:
		return current && j.order == orderType && !j.writer.signedOrderOnly()
	case floats, doubles:
		return true // NaN and zeros are dealt with; both orders agree on the rest
	default:
		if j.conv.unsigned {
			return current && j.order == orderType && !j.writer.signedOrderOnly()
		}
		return j.order != orderIEEE
	}
}

// value converts one stored bound; nil if it is absent or has another width than its type.
func (j judge) value(b []byte) *column.Value {
	w := j.leaf.valueWidth()
	switch {
	case b == nil:
		return nil
	case j.leaf.phys == boolean:
		if len(b) != 1 || b[0] > 1 {
			return nil
		}
		v := column.BoolValue(b[0] == 1)
		return &v
	case w > 0 && len(b) != w && !(j.conv.target.Kind == column.Binary && len(b) < w): // bytes may be cut
		return nil
	}
	return j.convert(b)
}

func (j judge) convert(b []byte) *column.Value {
	a := accumulator{conv: j.conv}
	a.reset()
	v := values{form: formFixed, width: len(b), buf: b}
	if j.leaf.phys == byteArray {
		v.form, v.off = formVar, []uint32{0, uint32(len(b))}
	}
	if err := a.take(&v, 1, nil); err != nil {
		return nil
	}
	x, ok := a.vector(1).Value(0)
	if !ok {
		return nil
	}
	return &x
}

// nans believes a NaN count of a float column.
func (j judge) nans(stated int64, rows rowset.Range) int64 {
	if !j.conv.target.Kind.Floating() {
		return 0
	}
	if stated < 0 || stated > int64(rows.Len()) {
		return UnknownCount
	}
	return stated
}
