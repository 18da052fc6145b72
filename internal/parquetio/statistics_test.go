package parquetio

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/skomerdb/skomer/internal/column"
)

// stated is a file of one row group of ten rows with one column and the statistics that a writer left.
type stated struct {
	element
	typ       column.Type
	createdBy string
	min, max  []byte // min_value and max_value
	oldMin    []byte
	oldMax    []byte
	nulls     int64
	nans      int64
	order     columnOrder
	under     bool // the column lies in an optional struct
}

func (s stated) bounds(t *testing.T) Bounds {
	t.Helper()
	f := &File{name: "case", size: 1 << 20, writer: parseWriter(s.createdBy)}
	put := func(b []byte) view {
		if b == nil {
			return no
		}
		f.footer = append(f.footer, b...)
		return view{uint32(len(f.footer) - len(b)), uint32(len(b))}
	}
	s.element.name = "x"
	k := chunk{
		numValues: 10, compressed: 10, dataOffset: 4, hasMeta: true, phys: s.phys, nulls: s.nulls, nans: s.nans,
		minValue: put(s.min), maxValue: put(s.max), min: put(s.oldMin), max: put(s.oldMax),
	}
	f.meta = &metadata{rows: 10, orders: []columnOrder{s.order}, groups: []rowGroup{{rows: 10, chunks: []chunk{k}}}}
	path := column.Path{{ID: 1, Name: "x", Type: s.typ}}
	f.meta.elements = []element{{name: "root", phys: noType, kids: 1}, s.element}
	if s.under {
		f.meta.elements = []element{{name: "root", phys: noType, kids: 1}, {name: "s", phys: noType, rep: optional, kids: 1}, s.element}
		parent := column.Field{ID: 1, Name: "s", Type: column.Type{Kind: column.Struct, Fields: []column.Field{{ID: 2, Name: "x", Type: s.typ}}}}
		path = column.Path{parent, parent.Type.Fields[0]}
	}
	for _, step := range []func() error{f.buildSchema, f.checkRows, func() error { return f.checkGroup(&f.meta.groups[0], 0) }} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	f.index.init(1, 1)
	b, err := f.Bind([]column.Path{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b.Statistics(0).Groups[0]
}

func f64(v float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)) }
func i64(v int64) []byte   { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
func i32(v uint32) []byte  { return binary.LittleEndian.AppendUint32(nil, v) }

func (b Bounds) known() bool { return b.Min != nil || b.Max != nil }

var (
	doubleLeaf = element{phys: doubles}
	stringLeaf = element{phys: byteArray, logical: stringType}
)

func TestO01NaNsAreUnknownWithoutCount(t *testing.T) {
	s := stated{element: doubleLeaf, typ: column.Of(column.Double), min: f64(3), max: f64(3), order: orderType, nans: -1}
	if b := s.bounds(t); b.NaNs != UnknownCount || b.Min.Float64() != 3 {
		t.Errorf("%+v", b)
	}
	s.nans = 1
	if b := s.bounds(t); b.NaNs != 1 {
		t.Errorf("a stated NaN count is lost: %+v", b)
	}
}

func TestO02NaNBounds(t *testing.T) {
	for _, pair := range [][2]float64{{1, math.NaN()}, {math.NaN(), 1}, {math.NaN(), math.NaN()}} {
		for _, order := range []columnOrder{orderType, orderIEEE} {
			if b := (stated{element: doubleLeaf, typ: column.Of(column.Double), min: f64(pair[0]), max: f64(pair[1]), order: order}).bounds(t); b.known() {
				t.Errorf("NaN bound believed: %+v", b)
			}
		}
	}
}

func TestO03ZeroBounds(t *testing.T) {
	b := stated{element: doubleLeaf, typ: column.Of(column.Double), min: f64(0), max: f64(math.Copysign(0, -1)), order: orderType}.bounds(t)
	if !math.Signbit(b.Min.Float64()) || math.Signbit(b.Max.Float64()) || b.MinExact || b.MaxExact {
		t.Errorf("zeros are not widened: %+v %+v", b.Min, b.Max)
	}
}

func TestO04UnsignedBounds(t *testing.T) {
	s := stated{element: element{phys: int32s, logical: unsignedInt, bits: 32}, typ: column.Of(column.Long), min: i32(0), max: i32(4000000000), order: orderType}
	if b := s.bounds(t); b.Min.Int64() != 0 || b.Max.Int64() != 4000000000 {
		t.Errorf("%+v", b)
	}
	s.min, s.max = i32(4000000000), i32(7) // signed order
	if b := s.bounds(t); b.known() {
		t.Errorf("min above max believed: %+v", b)
	}
	s.oldMin, s.oldMax, s.min, s.max = i32(0), i32(7), nil, nil
	if b := s.bounds(t); b.known() {
		t.Errorf("signed bounds of unsigned values believed: %+v", b)
	}
}

func TestO05ByteArrayDecimals(t *testing.T) {
	s := stated{element: element{phys: byteArray, logical: decimalType, precision: 8}, typ: column.DecimalOf(8, 0), order: orderType}
	s.min, s.max = []byte{0x00, 0x80}, []byte{0xfe}
	if b := s.bounds(t); b.known() {
		t.Errorf("byte order of decimals believed: %+v", b)
	}
	s.min, s.max = []byte{0x00, 0x80}, []byte{0x01, 0x2c} // 128 and 300, of values among which is 1
	if b := s.bounds(t); b.known() {
		t.Errorf("byte order of decimals of different lengths believed: %+v", b)
	}
	s.min, s.max = []byte{0xfe}, []byte{0xfe}
	if b := s.bounds(t); !b.known() || int64(b.Min.Lo) != -2 {
		t.Errorf("equal bounds hold in any order: %+v", b)
	}
	s.element = element{phys: fixedLen, length: 4, logical: decimalType, precision: 8}
	s.min, s.max = []byte{0, 0, 0, 1}, []byte{0xff, 0xff, 0xff, 0xfe} // unsigned order: 1 .. -2
	if b := s.bounds(t); b.known() {
		t.Errorf("unsigned order of signed decimals believed: %+v", b)
	}
	s.min, s.max = s.max, s.min
	if b := s.bounds(t); !b.known() || int64(b.Min.Lo) != -2 || b.Max.Lo != 1 {
		t.Errorf("signed order of signed decimals not believed: %+v", b)
	}
}

func TestO06INT96Bounds(t *testing.T) {
	early, late := make([]byte, 12), make([]byte, 12)
	binary.LittleEndian.PutUint32(early[8:], julianEpoch)
	binary.LittleEndian.PutUint32(late[8:], julianEpoch+1)
	s := stated{element: element{phys: int96s}, typ: column.Of(column.Timestamp), min: early, max: late, order: orderType}
	if b := s.bounds(t); b.known() {
		t.Errorf("%+v", b)
	}
	s.max = early
	if b := s.bounds(t); !b.known() || b.Min.Int64() != 0 {
		t.Errorf("equal bounds hold in any order: %+v", b)
	}
}

func TestO07DeprecatedStringBounds(t *testing.T) {
	s := stated{element: stringLeaf, typ: column.Of(column.String), oldMin: []byte("aé"), oldMax: []byte("b"), createdBy: "impala version 2.8.0"}
	if b := s.bounds(t); b.known() {
		t.Errorf("%+v", b)
	}
	s.oldMax = s.oldMin
	if b := s.bounds(t); !b.known() {
		t.Error("equal bounds hold in any order")
	}
	s.createdBy = "parquet-mr version 1.7.0 (build abc)" // PARQUET-251
	if b := s.bounds(t); b.known() {
		t.Errorf("bounds of a known bad writer believed: %+v", b)
	}
	s.oldMin, s.oldMax, s.createdBy = nil, nil, "impala version 2.8.0"
	s.min, s.max = []byte("a"), []byte("b")
	if b := s.bounds(t); b.known() {
		t.Error("bounds without a column order mean nothing")
	}
	s.order = orderType
	if b := s.bounds(t); !b.known() {
		t.Error("good bounds are lost")
	}
}

func TestO09MissingStatistics(t *testing.T) {
	b := stated{element: element{phys: int64s, rep: optional}, typ: column.Of(column.Long), nulls: -1}.bounds(t)
	if b.known() || b.Nulls != UnknownCount {
		t.Errorf("%+v", b)
	}
}

func TestO11MillisecondBounds(t *testing.T) {
	b := stated{element: element{phys: int64s, logical: timestampMillis}, typ: column.Of(column.Timestamp), min: i64(1577836800000), max: i64(1577836800000)}.bounds(t)
	if b.Min.Int64() != 1577836800000000 {
		t.Errorf("%+v", b.Min)
	}
}

func TestO12UUIDBounds(t *testing.T) {
	lo, hi := make([]byte, 16), make([]byte, 16)
	lo[1], hi[0] = 0x11, 0x80
	b := stated{element: element{phys: fixedLen, length: 16, logical: uuidType}, typ: column.Of(column.UUID), min: lo, max: hi, order: orderType}.bounds(t)
	if b.Min.S != string(lo) || b.Max.S != string(hi) {
		t.Errorf("%+v", b)
	}
}

func TestO13NullsUnderOptionalStruct(t *testing.T) {
	s := stated{element: element{phys: doubles}, typ: column.Of(column.Double), under: true, nulls: 0}
	if b := s.bounds(t); b.Nulls != UnknownCount {
		t.Errorf("zero nulls of a required child of an optional struct believed: %+v", b)
	}
	s.nulls = 10
	if b := s.bounds(t); !b.AllNull() {
		t.Errorf("%+v", b)
	}
}

func TestO14PromotedBounds(t *testing.T) {
	s := stated{element: element{phys: int32s}, typ: column.Of(column.Long), min: i32(5), max: i32(9)}
	if b := s.bounds(t); b.Min.Kind != column.Long || b.Min.Int64() != 5 || b.Max.Int64() != 9 {
		t.Errorf("%+v", b)
	}
	s.min, s.max = i64(5), i64(9)
	if b := s.bounds(t); b.known() {
		t.Errorf("bounds of another width believed: %+v", b)
	}
}

func TestCutBounds(t *testing.T) {
	s := stated{element: stringLeaf, typ: column.Of(column.String), order: orderType, min: []byte("🚀")[:2], max: []byte("世")[:2]}
	b := s.bounds(t)
	if b.Max != nil {
		t.Errorf("a maximum cut inside a character may lie below the values: %+v", b.Max)
	}
	if b.Min != nil && b.Min.S != "\xf0\x9f" || b.MinExact {
		t.Errorf("%+v", b.Min)
	}
}

func TestSignedOrderOnlyWriters(t *testing.T) {
	for _, w := range []string{"parquet-mr version 1.9.0 (build x)", "parquet-cpp version 1.2.9"} {
		b := stated{element: stringLeaf, typ: column.Of(column.String), createdBy: w, order: orderType, min: []byte("a"), max: []byte("b")}.bounds(t)
		if b.known() {
			t.Errorf("%s: %+v", w, b)
		}
	}
}

func TestWriterVersions(t *testing.T) {
	for created, bad := range map[string]bool{
		"parquet-mr version 1.7.0 (build abc)":        true,
		"parquet-mr version 1.8.0 (build abc)":        false,
		"parquet-mr version 1.5.0-cdh5.4.999 (build)": true,
		"parquet-mr version 1.5.0-cdh5.5.0 (build)":   false,
		"parquet-mr":                true,
		"":                          true,
		"parquet-mr version 1.10.1": false,
		"impala version 2.0.0":      false,
		"parquet-mr version banana": true,
	} {
		if got := parseWriter(created).badBinaryStatistics(); got != bad {
			t.Errorf("%q: %v, want %v", created, got, bad)
		}
	}
}
