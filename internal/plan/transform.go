package plan

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/column"
)

// transformKind is a partition transform (Iceberg spec, "Partition Transforms").
type transformKind uint8

const (
	opaque transformKind = iota // void, unknown, or not defined on the column's type: says nothing
	identity
	bucket
	truncate
	year
	month
	day
	hour
)

// transform maps the values of a column to partition values.
type transform struct {
	kind  transformKind
	param int64       // bucket: number of buckets. truncate: width
	of    column.Type // the column's current type
}

var calendarKinds = map[string]transformKind{"year": year, "month": month, "day": day, "hour": hour}

// parseTransform reads a transform as specs write it and checks that it is defined on the column's type.
func parseTransform(text string, of column.Type) transform {
	t := transform{of: of}
	name, rest, _ := strings.Cut(strings.ToLower(text), "[")
	switch name {
	case "identity":
		t.kind = identity
	case "bucket", "truncate":
		n, err := strconv.ParseInt(strings.TrimSuffix(rest, "]"), 10, 32)
		if err != nil || n <= 0 || !strings.HasSuffix(rest, "]") {
			return t
		}
		t.param = n
		t.kind = bucket
		if name == "truncate" {
			t.kind = truncate
		}
	default:
		t.kind = calendarKinds[name]
	}
	if (rest != "") != (t.param != 0) || !t.defined() {
		t.kind = opaque
	}
	return t
}

// defined reports whether the specification defines the transform on the type.
func (t transform) defined() bool {
	switch t.kind {
	case identity:
		return t.of.Kind >= column.Bool && t.of.Kind <= column.Binary
	case bucket:
		switch t.of.Kind {
		case column.Int, column.Long, column.Decimal, column.Date, column.Time, column.Timestamp, column.TimestampTZ,
			column.TimestampNS, column.TimestampNZ, column.String, column.UUID, column.Fixed, column.Binary:
			return true
		}
	case truncate:
		switch t.of.Kind {
		case column.Int, column.Long, column.Decimal, column.String, column.Binary:
			return true
		}
	case year, month, day:
		return t.of.Kind == column.Date || t.unit() != 0
	case hour:
		return t.unit() != 0
	}
	return false
}

// unit is how many of the column's ticks make a second; 0 for kinds that are no timestamps.
func (t transform) unit() int64 {
	switch t.of.Kind {
	case column.Timestamp, column.TimestampTZ:
		return 1e6
	case column.TimestampNS, column.TimestampNZ:
		return 1e9
	default:
		return 0
	}
}

// values is the interval of the column's values that map to partition value p; ok is false when p cannot be a result of
// the transform. Buckets have no interval: see partTest.lookBucket.
func (t transform) values(p *column.Value) (r interval, ok bool) {
	if integerLike(t.of.Kind) {
		in, ok := t.integers(p)
		return in.interval(t.of.Kind), ok
	}
	switch {
	case t.kind == identity:
		v, ok := promoted(p, t.of)
		return only(v), ok
	case t.kind == truncate && t.of.Kind == column.Decimal:
		return t.decimalStep(p)
	case t.kind == truncate:
		return t.prefixed(p)
	default:
		return r, false
	}
}

// integers is values for columns of integer-like kinds.
func (t transform) integers(p *column.Value) (in span, ok bool) {
	switch t.kind {
	case identity:
		x, ok := promotedInteger(p, t.of.Kind)
		return span{lo: x, hi: x, hasLo: true, hasHi: true}, ok
	case truncate:
		x, ok := promotedInteger(p, t.of.Kind)
		if !ok || x%t.param != 0 {
			return in, false
		}
		return span{lo: x, hi: x + t.param - 1, hasLo: true, hasHi: x <= math.MaxInt64-(t.param-1)}, true
	case year, month, day, hour:
		counted := p.Kind == column.Int || t.kind == day && p.Kind == column.Date
		if !counted || p.Int64() != int64(int32(p.Int64())) {
			return in, false
		}
		return t.period(p.Int64()), true
	default:
		return in, false
	}
}

// promotedInteger is an integer-like value in the kind that the query sees: the column's latest, or under time travel one
// before a promotion that the partition values already went through.
func promotedInteger(v *column.Value, now column.Kind) (x int64, ok bool) {
	switch {
	case v.Kind == now, isInteger(v.Kind) && isInteger(now):
		return v.Int64(), true
	case v.Kind == column.Date:
		return daysTo(now, v.Int64())
	default:
		return 0, false
	}
}

// promoted is promotedInteger for all other kinds.
func promoted(v *column.Value, now column.Type) (column.Value, bool) {
	switch {
	case v.Kind == column.Float && now.Kind == column.Double:
		return column.DoubleValue(v.Float64()), true
	case v.Kind == column.Double && now.Kind == column.Float:
		narrow := column.FloatValue(float32(v.Float64()))
		return narrow, narrow.Float64() == v.Float64() || v.IsNaN()
	case v.Kind != now.Kind:
		return *v, false
	case now.Kind == column.Decimal:
		return *v, int(v.Scale) == now.Scale
	case now.Kind == column.UUID || now.Kind == column.Fixed:
		return *v, len(v.S) == now.Size()
	default:
		return *v, true
	}
}

// prefixed is the strings (in code points) or binaries (in bytes) that truncate to p. A p of fewer bytes than the width was
// not cut by any reading of "width"; otherwise the values may go on after it.
func (t transform) prefixed(p *column.Value) (r interval, ok bool) {
	n := len(p.S)
	if p.Kind == column.String {
		n = utf8.RuneCountInString(p.S)
	}
	if p.Kind != t.of.Kind || int64(n) > t.param {
		return r, false
	}
	r = only(*p)
	r.prefix = int64(len(p.S)) >= t.param
	return r, true
}
