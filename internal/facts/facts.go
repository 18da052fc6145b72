// Package facts answers: what does a table's metadata say about one snapshot?
//
// Everything is plain and columnar: file i is described by element i of each slice. Nothing here is an Iceberg library
// type, an open file or a credential. Facts are immutable once made and shared by queries.
package facts

import "github.com/skomerdb/skomer/internal/column"

// Format is the file format that a manifest states.
type Format uint8

// The formats of data and delete files.
const (
	Parquet Format = iota
	Avro
	ORC
	Puffin // deletion vectors only
)

// Unknown is the value of a count that the metadata does not state.
const Unknown int64 = -1

// Snapshot is one snapshot of a table and what is needed to read it.
type Snapshot struct {
	TableUUID     string // lower case; "" for v1 tables without one
	Location      string // table location as the metadata states it
	MetadataPath  string // the metadata.json that was read, after location mapping
	FormatVersion int
	ID            int64 // -1: the table has no snapshot
	Sequence      int64 // of the snapshot; 0 in v1
	LastSequence  int64 // of the table
	TimestampMs   int64
	Ref           string // branch or tag it was reached by; "" otherwise
	// Schema is the schema that the query binds to: the table's current one for its current snapshot and for branches, the
	// snapshot's own for time travel and tags.
	Schema      *column.Schema
	Schemas     map[int]*column.Schema
	Specs       map[int]*Spec
	NameMapping []MappedField // schema.name-mapping.default; nil if the table has none
	Properties  map[string]string
	// Sources is what the facts stand in, as the metadata states it: the manifest list and the manifests; empty where these are many.
	Sources []string
	Files   Files
	Deletes Deletes
}

// Spec is a partition spec.
type Spec struct {
	ID     int
	Fields []PartitionField
}

// PartitionField is one field of a spec.
type PartitionField struct {
	ID        int // partition field id, 1000 and up
	SourceID  int // schema field id; of a multi-argument transform the first
	Name      string
	Transform string // as the spec writes it: identity, bucket[16], truncate[4], year, month, day, hour, void; unknown ones stay verbatim
}

// MappedField is one entry of a name mapping.
type MappedField struct {
	ID     int // 0: names without an id
	Names  []string
	Fields []MappedField
}

// Files describes the data files of a snapshot that are alive in it, in manifest order. A file listed twice appears twice.
type Files struct {
	Path     []string // after location mapping: what the store is asked for
	Stated   []string // as the manifest writes it; shares Path's strings when no mapping applied
	Format   []Format
	Size     []int64 // bytes
	Records  []int64
	SpecID   []int32
	Sequence []int64 // data sequence number, 0 in v1
	// FirstRowID is the v3 first_row_id, Unknown if not assigned.
	FirstRowID []int64
	// Snapshot is the snapshot that added the file, Unknown if not stated.
	Snapshot []int64
	// Encrypted marks files that carry key metadata.
	Encrypted []bool
	Manifest  []int32 // index into Manifests
	Manifests []string
	// Partition holds, per partition field id, the file's partition value. A file whose spec lacks the field has Known false.
	Partition map[int]*PartitionColumn
	// Columns holds what manifests state per schema field id. A missing id or entry means unknown.
	Columns map[int]*ColumnFacts
	// Stored is the bytes of schema fields in the files of manifests that state them: what shares of the data columns are. nil: not known, as
	// where facts were kept.
	Stored map[int]float64
}

// Len is the number of files.
func (f *Files) Len() int { return len(f.Path) }

// PartitionColumn is the values of one partition field over all files.
type PartitionColumn struct {
	Type  column.Type // result type of the transform
	Known []bool      // the file's spec has the field
	Null  []bool
	Value []column.Value
}

// ColumnFacts is the metrics of one schema field over all files.
type ColumnFacts struct {
	// Lower and Upper are the bounds as the manifest holds them (Iceberg single-value serialisation, maybe truncated,
	// maybe in the width of an earlier type); nil: none.
	Lower, Upper [][]byte
	// Counts of values (nulls and NaNs included; list elements counted each), nulls and NaNs; Unknown if not stated.
	Values, Nulls, NaNs []int64
}

// DeleteKind tells delete files apart.
type DeleteKind uint8

// The three forms of deletes.
const (
	PositionDeletes DeleteKind = iota
	EqualityDeletes
	DeletionVector
)

// Deletes describes the delete files of a snapshot that are alive in it.
type Deletes struct {
	Kind      []DeleteKind
	Path      []string
	Stated    []string
	Format    []Format
	Size      []int64
	Records   []int64
	SpecID    []int32
	Partition [][]PartitionValue // in the order of the spec's fields
	Sequence  []int64
	FieldIDs  [][]int // EqualityDeletes
	Encrypted []bool  // carries key metadata
	// Referenced is the one data file of a deletion vector or single-target position file, as stated; "" if none.
	Referenced []string
	Offset     []int64 // DeletionVector: the blob in its Puffin file
	Length     []int64
}

// PartitionValue is one value of a partition tuple.
type PartitionValue struct {
	Null  bool
	Value column.Value
}

// Len is the number of delete files.
func (d *Deletes) Len() int { return len(d.Path) }
