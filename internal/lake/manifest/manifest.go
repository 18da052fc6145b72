package manifest

import (
	"math"
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

// Manifest is the live files of one manifest, before inheritance.
type Manifest struct {
	FormatVersion int // 1 if not stated
	SpecID        int // -1 if not stated
	SpecJSON      []byte
	Deletes       bool
	// Partition is the fields of the partition tuples, in the order of File.Partition.
	Partition []avro.Field
	Files     []File
	// Columns holds the metrics of each schema field id, each slice as long as Files.
	Columns map[int]*facts.ColumnFacts
	// Bytes is about the memory that the manifest holds.
	Bytes int64
}

// File is a live entry: status existing or added. Numbers that the manifest leaves to inheritance are facts.Unknown.
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
	"value_counts": 109, "null_value_counts": 110, "nan_value_counts": 137, "lower_bounds": 125, "upper_bounds": 128,
	"key_metadata": 131, "equality_ids": 135, "first_row_id": 142, "referenced_data_file": 143, "content_offset": 144,
	"content_size_in_bytes": 145,
}

// Read decodes a manifest; what names it in faults.
func Read(what string, b []byte) (m *Manifest, err error) {
	defer recovered(what, &err)
	f, err := avro.Open(what, b)
	if err != nil {
		return nil, err
	}
	d, err := newDecoder(what, f)
	if err != nil {
		return nil, err
	}
	d.cells = min(minCells+cellsPerByte*len(b), maxCells)
	if err := f.Each(d.entry); err != nil {
		return nil, err
	}
	return d.finish(f.Decoded()), nil
}

type decoder struct {
	m         *Manifest
	entryF    []field
	fileF     []field
	partition *avro.Schema
	last      *facts.ColumnFacts // of the id lastID: metrics come in the same order for every file
	lastID    int
	cells     int // how many more cells of metrics may be filled
}

func newDecoder(what string, f *avro.File) (*decoder, error) {
	bad := func(reason string) error { return fault.New(fault.Corrupt, what, reason) }
	if f.Schema.Kind != avro.Record {
		return nil, bad("a manifest holds records")
	}
	d := &decoder{m: &Manifest{
		FormatVersion: number(f.Meta, "format-version", 1), SpecID: number(f.Meta, "partition-spec-id", -1),
		SpecJSON: f.Meta["partition-spec"], Deletes: string(f.Meta["content"]) == "deletes",
		Columns: map[int]*facts.ColumnFacts{},
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
	e := File{
		SnapshotID: facts.Unknown, Sequence: facts.Unknown, FirstRowID: facts.Unknown,
		Records: facts.Unknown, Size: facts.Unknown, Offset: facts.Unknown, Length: facts.Unknown,
	}
	status := int64(-1)
	for _, f := range d.entryF {
		switch f.id {
		case 0:
			status = long(c, f.schema, -1)
			e.Added = status == 1
		case 1:
			e.SnapshotID = long(c, f.schema, facts.Unknown)
		case 3:
			e.Sequence = long(c, f.schema, facts.Unknown)
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
		c.Fail("entry %d has status %d", len(d.m.Files), status)
	case e.Path == "" || e.Records < 0 || e.Size < 0:
		c.Fail("entry %d (%q) lacks a path, a record count or a size", len(d.m.Files), e.Path)
	default:
		d.m.Files = append(d.m.Files, e)
	}
	return nil
}

// forget drops the metrics of an entry whose status, against the specification's order of fields, came behind them.
func (d *decoder) forget() {
	n := len(d.m.Files)
	for _, col := range d.m.Columns {
		if len(col.Values) > n {
			col.Lower[n], col.Upper[n] = nil, nil
			col.Values[n], col.Nulls[n], col.NaNs[n] = facts.Unknown, facts.Unknown, facts.Unknown
		}
	}
}

func (d *decoder) file(c *avro.Cursor, e *File) {
	for _, f := range d.fileF {
		switch f.id {
		case 134:
			e.Content = Content(content(c, long(c, f.schema, 0), 2))
		case 100:
			e.Path = text(c, f.schema)
		case 101:
			e.Format = format(c, text(c, f.schema))
		case 102:
			d.tuple(c, f.schema, e)
		case 103:
			e.Records = long(c, f.schema, facts.Unknown)
		case 104:
			e.Size = long(c, f.schema, facts.Unknown)
		case 109, 110, 137:
			d.counts(c, f)
		case 125, 128:
			d.bounds(c, f)
		case 131:
			e.Encrypted = len(blob(c, f.schema)) > 0
		case 135:
			ids(c, f.schema, e)
		case 142:
			e.FirstRowID = long(c, f.schema, facts.Unknown)
		case 143:
			e.Referenced = text(c, f.schema)
		case 144:
			e.Offset = long(c, f.schema, facts.Unknown)
		case 145:
			e.Length = long(c, f.schema, facts.Unknown)
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

func (d *decoder) tuple(c *avro.Cursor, s *avro.Schema, e *File) {
	v := c.Branch(s)
	if v == nil || d.partition == nil {
		if v != nil {
			c.Skip(v)
		}
		return
	}
	e.Partition = make([]Raw, len(v.Fields))
	for i, f := range v.Fields {
		e.Partition[i] = rawValue(c, f.Schema)
	}
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

func ids(c *avro.Cursor, s *avro.Schema, e *File) {
	v := c.Branch(s)
	if v == nil {
		return
	}
	if v.Kind != avro.Array {
		c.Fail("equality_ids is no list")
		return
	}
	c.Blocks(func() { e.EqualityID = append(e.EqualityID, int(long(c, v.Items, 0))) })
}
