package lake

import (
	"math"
	"math/big"
	"regexp"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/avro"
	"github.com/skomerdb/skomer/internal/lake/manifest"
	"github.com/skomerdb/skomer/internal/lake/meta"
)

// tuples is the partition tuples of one manifest as values of its spec's fields.
type tuples struct {
	spec   int
	fields []tupleField
	values [][]tupleValue // by number of the tuple, parallel to fields
}

// tupleField is one field of the spec. at is its place in the manifest's tuples, -1 if they lack it.
type tupleField struct {
	id     int
	at     int
	void   bool // always null, stated or not
	typ    column.Type
	schema *avro.Schema
}

// tupleValue is not known if the manifest does not state it in a form that the type allows.
type tupleValue struct {
	value       column.Value
	null, known bool
}

// tuplesOf converts the tuples of a manifest. They are the same for all snapshots of a version of the table.
func (a *assembly) tuplesOf(p *part, spec *facts.Spec) *tuples {
	if p.tuples != nil {
		return p.tuples
	}
	t := &tuples{spec: spec.ID, values: make([][]tupleValue, len(p.m.Tuples))}
	for _, pf := range spec.Fields {
		f := tupleField{id: pf.ID, at: -1, void: pf.Transform == "void"}
		for i, have := range p.m.Partition {
			if have.ID == pf.ID || (have.ID < 0 && have.Name == pf.Name) {
				f.at, f.schema = i, have.Schema.Value()
			}
		}
		f.typ = a.t.resultType(pf, f.schema)
		t.fields = append(t.fields, f)
	}
	for i, raw := range p.m.Tuples {
		t.values[i] = make([]tupleValue, len(t.fields))
		for k := range t.fields {
			t.values[i][k] = t.fields[k].value(raw)
		}
	}
	p.tuples = t
	return t
}

// value is the partition value of f in a tuple.
func (f *tupleField) value(tuple []manifest.Raw) (v tupleValue) {
	if f.void {
		return tupleValue{null: true, known: true}
	}
	if f.at < 0 || f.at >= len(tuple) {
		return v
	}
	raw := tuple[f.at]
	if raw.Null {
		return tupleValue{null: true, known: true}
	}
	v.value, v.known = partitionValue(raw, f.schema, f.typ)
	return v
}

// scope is the whole tuple of a delete file, whose scope it is: a value that is not known is an error, never a guess.
func (t *tuples) scope(p *part, i int) ([]facts.PartitionValue, error) {
	out := make([]facts.PartitionValue, len(t.fields))
	for k, v := range t.values[p.m.Tuple.At(i)] {
		if !v.known {
			return nil, fault.New(fault.Corrupt, p.path, "partition field %d of the delete file %s has no value of type %s",
				t.fields[k].id, p.m.Path.At(i), t.fields[k].typ)
		}
		out[k] = facts.PartitionValue{Null: v.null, Value: v.value}
	}
	return out, nil
}

// partition records the tuple of the last data file of out.
func (a *assembly) partition(t *tuples, number int) {
	row := a.out.Files.Len() - 1
	for i := range t.fields {
		f := &t.fields[i]
		col := a.out.Files.Partition[f.id]
		if col == nil {
			col = &facts.PartitionColumn{Type: f.typ}
			a.out.Files.Partition[f.id] = col
		}
		growPartition(col, row)
		v := &t.values[number][i]
		col.Known, col.Null, col.Value = append(col.Known, v.known), append(col.Null, v.null), append(col.Value, v.value)
	}
}

func growPartition(col *facts.PartitionColumn, n int) {
	for len(col.Known) < n {
		col.Known, col.Null, col.Value = append(col.Known, false), append(col.Null, false), append(col.Value, column.Value{})
	}
}

var widthTransform = regexp.MustCompile(`^(bucket|truncate)\[\d+\]$`)

// resultType is the type of a transform's results (specification, "Partition Transforms"). For an unknown transform it is
// the widest form of the type in which the manifest writes the values, so that tuples can still be compared.
func (t *Table) resultType(pf facts.PartitionField, written *avro.Schema) column.Type {
	if typ, ok := t.transformType(pf); ok {
		return typ
	}
	return naturalType(written)
}

func (t *Table) transformType(pf facts.PartitionField) (column.Type, bool) {
	switch name := pf.Transform; {
	case name == "year", name == "month", name == "hour":
		return column.Of(column.Int), true
	case name == "day":
		return column.Of(column.Date), true
	case name == "identity", name == "void":
		return t.sourceType(pf.SourceID)
	case widthTransform.MatchString(name):
		if name[0] == 'b' {
			return column.Of(column.Int), true
		}
		return t.sourceType(pf.SourceID)
	}
	return column.Type{}, false
}

// sourceType is the type of a column by id: in the current schema, else in the newest one that has it.
func (t *Table) sourceType(id int) (column.Type, bool) {
	if p := t.meta.Schema().ByID(id); p != nil {
		return p.Leaf().Type, true
	}
	newest, found := -1, column.Type{}
	for sid, s := range t.meta.Schemas {
		if p := s.ByID(id); p != nil && sid > newest {
			newest, found = sid, p.Leaf().Type
		}
	}
	return found, newest >= 0
}

func naturalType(s *avro.Schema) column.Type {
	if s == nil {
		return column.Of(column.Unknown)
	}
	switch s.Kind {
	case avro.Bool:
		return column.Of(column.Bool)
	case avro.Int, avro.Long:
		return column.Of(column.Long)
	case avro.Float, avro.Double:
		return column.Of(column.Double)
	case avro.String:
		return column.Of(column.String)
	default:
		return column.Of(column.Binary)
	}
}

// partitionValue converts a value that Avro wrote as s to the type t. int widens to long, float to double, and writers
// that use milliseconds where the specification says microseconds are understood by their logical type.
func partitionValue(raw manifest.Raw, s *avro.Schema, t column.Type) (column.Value, bool) {
	switch t.Kind {
	case column.Bool:
		return column.BoolValue(raw.Num != 0), s.Kind == avro.Bool
	case column.Int, column.Date, column.Long:
		return column.IntValue(t.Kind, raw.Num), integer(s)
	case column.Timestamp, column.TimestampTZ, column.TimestampNS, column.TimestampNZ:
		if s.Kind == avro.Int {
			return daysTo(t.Kind, raw.Num)
		}
		return column.IntValue(t.Kind, inUnit(raw.Num, s.Logical, t.Kind)), integer(s)
	case column.Time:
		return column.IntValue(t.Kind, inUnit(raw.Num, s.Logical, t.Kind)), integer(s)
	case column.Float:
		return column.Value{Kind: t.Kind, Lo: uint64(raw.Num)}, s.Kind == avro.Float
	case column.Double:
		if s.Kind == avro.Float {
			return column.DoubleValue(column.Value{Kind: column.Float, Lo: uint64(raw.Num)}.Float64()), true
		}
		return column.Value{Kind: t.Kind, Lo: uint64(raw.Num)}, s.Kind == avro.Double
	case column.Decimal:
		return decimal(raw, s, t)
	case column.UUID:
		if s.Kind == avro.String {
			u, err := uuid.Parse(raw.Bytes)
			return column.BytesValue(t.Kind, u[:]), err == nil
		}
		return column.BytesValue(t.Kind, []byte(raw.Bytes)), bytesLike(s) && len(raw.Bytes) == 16
	case column.Fixed:
		return column.BytesValue(t.Kind, []byte(raw.Bytes)), bytesLike(s) && len(raw.Bytes) == t.Width
	case column.String, column.Binary:
		return column.Value{Kind: t.Kind, S: raw.Bytes}, bytesLike(s)
	}
	return column.Value{}, false
}

// daysTo is the start of a day in a type that a date can be promoted to (specification, "Schema Evolution"): Avro's int under such a
// type is a date that was written before.
func daysTo(k column.Kind, days int64) (column.Value, bool) {
	unit := int64(86_400_000_000)
	switch k {
	case column.Timestamp:
	case column.TimestampNS:
		unit *= 1000
	default:
		return column.Value{}, false
	}
	if days > math.MaxInt64/unit || days < -(math.MaxInt64/unit) {
		return column.Value{}, false
	}
	return column.IntValue(k, days*unit), true
}

func integer(s *avro.Schema) bool { return s.Kind == avro.Int || s.Kind == avro.Long }

func bytesLike(s *avro.Schema) bool {
	return s.Kind == avro.Bytes || s.Kind == avro.Fixed || s.Kind == avro.String
}

// inUnit converts to the unit of kind where the logical type says that another was written.
func inUnit(n int64, logical string, kind column.Kind) int64 {
	nanos := kind == column.TimestampNS || kind == column.TimestampNZ
	switch logical {
	case "time-millis", "timestamp-millis", "local-timestamp-millis":
		n *= 1000
		if nanos {
			n *= 1000
		}
	case "timestamp-micros", "local-timestamp-micros":
		if nanos {
			n *= 1000
		}
	case "timestamp-nanos", "local-timestamp-nanos":
		if !nanos {
			n = floorDiv(n, 1000)
		}
	}
	return n
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// decimal reads a big-endian two's complement unscaled value.
func decimal(raw manifest.Raw, s *avro.Schema, t column.Type) (column.Value, bool) {
	if !bytesLike(s) || s.Kind == avro.String || len(raw.Bytes) == 0 || (s.Logical == "decimal" && s.Scale != t.Scale) {
		return column.Value{}, false
	}
	b := []byte(raw.Bytes)
	n := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	if n.BitLen() > 127 {
		return column.Value{}, false
	}
	return meta.DecimalFromBig(n, t.Scale), true
}
