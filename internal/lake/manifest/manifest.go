package manifest

import (
	"math"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/avro"
)

// Content tells the files of a manifest apart (field 134).
type Content uint8

// The contents.
const (
	Data            Content = 0
	PositionDeletes Content = 1
	EqualityDeletes Content = 2
)

// Manifest is the live files of one manifest, before inheritance, in columns. Numbers that the manifest leaves to inheritance
// are facts.Unknown.
type Manifest struct {
	FormatVersion int // 1 if not stated
	SpecID        int // -1 if not stated
	SpecJSON      []byte
	Deletes       bool
	HasDeletes    bool // some entry is a delete file
	// Partition is the fields of the partition tuples, in the order of Tuples' values.
	Partition []avro.Field
	N         int // live files: entries of status existing or added

	Added, Content, Format, Encrypted             facts.Ints // 1: added, encrypted
	SnapshotID, Sequence, Records, Size, FirstRow facts.Ints
	Path                                          facts.Strings
	Tuple                                         facts.Ints // of Tuples
	Tuples                                        [][]Raw    // the distinct ones; nil: not stated
	// Of delete files: the equality ids, as one of EqualityIDs, the data file they are about, and a deletion vector's blob.
	Equality       facts.Ints
	EqualityIDs    [][]int
	Referenced     facts.Strings
	Offset, Length facts.Ints

	// Columns holds the metrics by schema field id: of every field with AllColumns, else of those that were asked for, nil
	// where nothing is stated.
	Columns map[int]*facts.Metrics
	Parts   Parts
	// Stored is the bytes of schema fields, summed up over the entries that state them; nil where none does or it was not read. It is an
	// estimate: nothing depends on it but what reading is expected to cost.
	Stored map[int]int64
}

// Parts tells which columns of a Manifest were read.
type Parts uint8

// The parts.
const (
	Tuples     Parts = 1 << iota // Tuple and Tuples
	Base                         // the other integers, and EqualityIDs
	Names                        // Path and Referenced
	AllColumns                   // every field's metrics, whole
)

// Has reports whether parts and the metrics of the fields were read; whole ones and not only keys if whole is set.
func (m *Manifest) Has(parts Parts, fields []int, whole bool) bool {
	if m.Parts&parts != parts {
		return false
	}
	if m.Parts&AllColumns != 0 {
		return true
	}
	for _, id := range fields {
		if c, known := m.Columns[id]; !known || c != nil && whole && !c.Whole {
			return false
		}
	}
	return true
}

// File is one live file.
type File struct {
	Added      bool
	SnapshotID int64
	Sequence   int64
	Content    Content
	Path       string
	Format     facts.Format
	Records    int64
	Size       int64
	FirstRowID int64
	Encrypted  bool
	Partition  []Raw
	EqualityID []int
	Referenced string
	Offset     int64 // of a deletion vector's blob
	Length     int64
}

// File is file i without its metrics.
func (m *Manifest) File(i int) File {
	return File{
		Added: m.Added.At(i) == 1, SnapshotID: m.SnapshotID.At(i), Sequence: m.Sequence.At(i), Content: Content(m.Content.At(i)),
		Path: m.Path.At(i), Format: facts.Format(m.Format.At(i)), Records: m.Records.At(i), Size: m.Size.At(i),
		FirstRowID: m.FirstRow.At(i), Encrypted: m.Encrypted.At(i) == 1, Partition: m.Tuples[m.Tuple.At(i)],
		EqualityID: m.EqualityIDs[m.Equality.At(i)], Referenced: m.Referenced.At(i), Offset: m.Offset.At(i), Length: m.Length.At(i),
	}
}

// tupleBytes is about the memory of a partition value.
const tupleBytes = 40

// Bytes is about the memory that the manifest holds.
func (m *Manifest) Bytes() int64 {
	n := len(m.SpecJSON) + m.Path.Bytes() + m.Referenced.Bytes() + 32*len(m.Stored) + 1024
	for _, x := range m.Ints() {
		n += len(x.Data)
	}
	for _, t := range m.Tuples {
		n += len(t) * tupleBytes
		for _, v := range t {
			n += len(v.Bytes)
		}
	}
	for _, ids := range m.EqualityIDs {
		n += 24 + 8*len(ids)
	}
	for _, c := range m.Columns {
		if c != nil {
			n += c.Bytes() + 256
		}
	}
	return int64(n)
}

// Ints is the columns of integers, in the order in which builder.rows holds them.
func (m *Manifest) Ints() []*facts.Ints {
	return []*facts.Ints{
		&m.Added, &m.Content, &m.Format, &m.Encrypted, &m.SnapshotID, &m.Sequence, &m.Records, &m.Size, &m.FirstRow,
		&m.Tuple, &m.Equality, &m.Offset, &m.Length,
	}
}

// Raw is a partition value as Avro holds it.
type Raw struct {
	Null  bool
	Num   int64  // Bool, Int, Long, and the bits of Float (as float32) and Double
	Bytes string // Bytes, String, Fixed
}

const statusDeleted = 2

var entryNames = map[string]int{"status": 0, "snapshot_id": 1, "data_file": 2, "sequence_number": 3}

var fileNames = map[string]int{
	"content": 134, "file_path": 100, "file_format": 101, "partition": 102, "record_count": 103, "file_size_in_bytes": 104,
	"column_sizes": 108, "value_counts": 109, "null_value_counts": 110, "nan_value_counts": 137, "lower_bounds": 125, "upper_bounds": 128,
	"key_metadata": 131, "equality_ids": 135, "first_row_id": 142, "referenced_data_file": 143, "content_offset": 144,
	"content_size_in_bytes": 145,
}

// Read decodes a manifest; what names it in faults. It keeps the metrics of the schema fields that want asks for; nil wants all.
func Read(what string, b []byte, want func(id int) bool) (m *Manifest, err error) {
	defer recovered(what, &err)
	f, err := avro.Open(what, b)
	if err != nil {
		return nil, err
	}
	d, err := newDecoder(what, f)
	if err != nil {
		return nil, err
	}
	f.Reuse()
	d.want = want
	d.cells = min(minCells+cellsPerByte*len(b), maxCells)
	if err := f.Each(d.entry); err != nil {
		return nil, err
	}
	return d.finish(), nil
}

type decoder struct {
	m         *Manifest
	entryF    []field
	fileF     []field
	partition *avro.Schema
	want      func(id int) bool
	rows      builder
	columns   map[int]*columnBuilder
	near      [direct]*columnBuilder // of columns
	unwanted  [direct]bool
	stored    [direct]int64 // column sizes by field id
	cells     int           // how many more cells of metrics may be filled
}

func newDecoder(what string, f *avro.File) (*decoder, error) {
	bad := func(reason string) error { return fault.New(fault.Corrupt, what, reason) }
	if f.Schema.Kind != avro.Record {
		return nil, bad("a manifest holds records")
	}
	d := &decoder{columns: map[int]*columnBuilder{}, rows: builder{ints: integers.Get().(*[columns][]int64)}, m: &Manifest{
		FormatVersion: number(f.Meta, "format-version", 1), SpecID: number(f.Meta, "partition-spec-id", -1),
		SpecJSON: slices.Clone(f.Meta["partition-spec"]), Deletes: string(f.Meta["content"]) == "deletes",
	}}
	d.entryF = identify(f.Schema, entryNames)
	for _, e := range d.entryF {
		if e.id == 2 && e.schema.Value().Kind == avro.Record {
			d.fileF = identify(e.schema.Value(), fileNames)
		}
	}
	for _, fd := range d.fileF {
		if fd.id == 102 && fd.schema.Value().Kind == avro.Record {
			d.partition = fd.schema.Value()
			d.m.Partition = d.partition.Fields
		}
	}
	if d.fileF == nil {
		return nil, bad("its schema has no data_file record")
	}
	return d, nil
}

func (d *decoder) entry(c *avro.Cursor) error {
	e := emptyRow
	status := int64(-1)
	for _, f := range d.entryF {
		switch f.id {
		case 0:
			status = long(c, f.schema, -1)
			e.ints[added] = b2i(status == 1)
		case 1:
			e.ints[snapshotID] = long(c, f.schema, facts.Unknown)
		case 3:
			e.ints[sequence] = long(c, f.schema, facts.Unknown)
		case 2:
			if status == statusDeleted {
				c.Skip(f.schema)
				continue
			}
			if c.Branch(f.schema) != nil {
				d.file(c, &e)
			}
		default:
			c.Skip(f.schema)
		}
	}
	switch {
	case status == statusDeleted:
		d.forget()
	case status != 0 && status != 1:
		c.Fail("entry %d has status %d", d.rows.n, status)
	case len(e.path) == 0 || e.ints[records] < 0 || e.ints[size] < 0:
		c.Fail("entry %d (%q) lacks a path, a record count or a size", d.rows.n, e.path)
	default:
		d.rows.add(&e)
	}
	return nil
}

// forget drops the metrics of an entry whose status, against the specification's order of fields, came behind them.
func (d *decoder) forget() {
	for _, col := range d.columns {
		col.cut(d.rows.n)
	}
}

func (d *decoder) file(c *avro.Cursor, e *row) {
	for _, f := range d.fileF {
		switch f.id {
		case 134:
			e.ints[contentOf] = content(c, long(c, f.schema, 0), 2)
		case 100:
			e.path = blob(c, f.schema)
		case 101:
			e.ints[formatOf] = d.rows.format(c, blob(c, f.schema))
		case 102:
			e.ints[tuple] = d.tuple(c, f.schema)
		case 103:
			e.ints[records] = long(c, f.schema, facts.Unknown)
		case 104:
			e.ints[size] = long(c, f.schema, facts.Unknown)
		case 109, 110, 137:
			d.counts(c, f)
		case 125, 128:
			d.bounds(c, f)
		case 108:
			d.sizes(c, f)
		case 131:
			e.ints[encrypted] = b2i(len(blob(c, f.schema)) > 0)
		case 135:
			e.ints[equality] = d.ids(c, f.schema)
		case 142:
			e.ints[firstRow] = long(c, f.schema, facts.Unknown)
		case 143:
			e.referenced = blob(c, f.schema)
		case 144:
			e.ints[offset] = long(c, f.schema, facts.Unknown)
		case 145:
			e.ints[length] = long(c, f.schema, facts.Unknown)
		default:
			c.Skip(f.schema)
		}
	}
}

func format(c *avro.Cursor, name string) facts.Format {
	switch strings.ToLower(name) {
	case "parquet":
		return facts.Parquet
	case "avro":
		return facts.Avro
	case "orc":
		return facts.ORC
	case "puffin":
		return facts.Puffin
	}
	c.Fail("file format %q", name)
	return facts.Parquet
}

// tuple is the number of the entry's partition tuple. Equal bytes are equal tuples, so that only new ones are decoded.
func (d *decoder) tuple(c *avro.Cursor, s *avro.Schema) int64 {
	v := c.Branch(s)
	if v == nil || d.partition == nil {
		if v != nil {
			c.Skip(v)
		}
		return d.rows.tuples.none()
	}
	mark := c.Mark()
	c.Skip(v)
	return d.rows.tuples.number(c.Since(mark), func() []Raw {
		c.Rewind(mark)
		out := make([]Raw, len(v.Fields))
		for i, f := range v.Fields {
			out[i] = rawValue(c, f.Schema)
		}
		return out
	})
}

func rawValue(c *avro.Cursor, s *avro.Schema) Raw {
	v := c.Branch(s)
	if v == nil {
		return Raw{Null: true}
	}
	switch v.Kind {
	case avro.Bool:
		if c.Bool() {
			return Raw{Num: 1}
		}
		return Raw{}
	case avro.Int, avro.Long:
		return Raw{Num: c.Long()}
	case avro.Float:
		return Raw{Num: int64(math.Float32bits(c.Float()))}
	case avro.Double:
		return Raw{Num: int64(math.Float64bits(c.Double()))}
	case avro.Bytes, avro.String:
		return Raw{Bytes: c.String()}
	case avro.Fixed:
		return Raw{Bytes: string(c.Fixed(v.Size))}
	default:
		c.Fail("partition value of an Avro type that has no place there")
		return Raw{Null: true}
	}
}

// ids is the number of the entry's equality ids.
func (d *decoder) ids(c *avro.Cursor, s *avro.Schema) int64 {
	v := c.Branch(s)
	if v == nil {
		return d.rows.equality.none()
	}
	if v.Kind != avro.Array {
		c.Fail("equality_ids is no list")
		return 0
	}
	mark := c.Mark()
	c.Skip(v)
	return d.rows.equality.number(c.Since(mark), func() (out []int) {
		c.Rewind(mark)
		c.Blocks(func() { out = append(out, int(long(c, v.Items, 0))) })
		return out
	})
}
