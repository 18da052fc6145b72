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
// the transform. Buckets have no interval: see bucketOf.
func (t transform) values(p column.Value) (r interval, ok bool) {
	switch t.kind {
	case identity:
		v, ok := promoted(p, t.of)
		return only(v), ok
	case truncate:
		if p.Kind == column.String || p.Kind == column.Binary {
			return t.prefixed(p)
		}
		v, ok := promoted(p, t.of)
		if !ok {
			return r, false
		}
		if v.Kind == column.Decimal {
			return t.decimalStep(v)
		}
		return t.step(v)
	case year, month, day, hour:
		counted := p.Kind == column.Int || t.kind == day && p.Kind == column.Date
		if !counted || p.Int64() != int64(int32(p.Int64())) {
			return r, false
		}
		return t.period(p.Int64()), true
	default:
		return r, false
	}
}

// promoted is a value in the type that its column has now; ok is false when no promotion leads there.
func promoted(v column.Value, t column.Type) (column.Value, bool) {
	switch {
	case v.Kind == t.Kind:
		switch t.Kind {
		case column.Decimal:
			return v, int(v.Scale) == t.Scale
		case column.UUID, column.Fixed:
			return v, len(v.S) == t.Size()
		}
		return v, true
	case v.Kind == column.Int && t.Kind == column.Long:
		v.Kind = column.Long
		return v, true
	case v.Kind == column.Float && t.Kind == column.Double:
		return column.DoubleValue(v.Float64()), true
	case v.Kind == column.Date:
		return daysTo(t.Kind, v.Int64())
	default:
		return v, false
	}
}

// step is the integers that truncate to v: W of them from v upwards, for the transform floors.
func (t transform) step(v column.Value) (r interval, ok bool) {
	if v.Int64()%t.param != 0 {
		return r, false
	}
	r = interval{lo: v, hasLo: true}
	if v.Int64() <= math.MaxInt64-(t.param-1) {
		r.hi, r.hasHi = column.IntValue(v.Kind, v.Int64()+t.param-1), true
	}
	return r, true
}

// prefixed is the strings (in code points) or binaries (in bytes) that truncate to p. A p of fewer bytes than the width was
// not cut by any reading of "width"; otherwise the values may go on after it.
func (t transform) prefixed(p column.Value) (r interval, ok bool) {
	n := len(p.S)
	if p.Kind == column.String {
		n = utf8.RuneCountInString(p.S)
	}
	if p.Kind != t.of.Kind || int64(n) > t.param {
		return r, false
	}
	r = only(p)
	r.prefix = int64(len(p.S)) >= t.param
	return r, true
}
