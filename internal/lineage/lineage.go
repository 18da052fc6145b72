// Package lineage answers: of which bytes, read how, is this artifact derived, and may it still speak for a data file?
//
// It holds the lineage record (stored whole in a bundle's skomer.lineage.v1 blob), the identity of a data file, and the check
// that returns a reason for every rejection. It opens nothing.
package lineage

// FormatVersion is the version of records written now. Version 1 is the loose sidecar without lineage: it never counts as matching.
const FormatVersion = 2

// File identifies one data file as an index build read it: one incarnation.
type File struct {
	Path    string `json:"path"` // as the manifest states it
	Size    int64  `json:"size"`
	Records int64  `json:"records"` // by the Parquet footer
	// Tag is the store's entity tag at build time (ETag, generation, or inode+size+mtime+ctime of a local file).
	Tag string `json:"tag,omitempty"`
	// Hashes are SHA-256 in lower-case hex; empty where that part was not read.
	FooterSHA256  string `json:"footer_sha256,omitempty"`
	ColumnsSHA256 string `json:"columns_sha256,omitempty"` // over the column chunks that were read, in file order
	FileSHA256    string `json:"file_sha256,omitempty"`
}

// Column says how an indexed column was found in the files and in what encoding its values were taken.
type Column struct {
	FieldID  int    `json:"field_id"`
	Name     string `json:"name"`      // a hint for people
	LeafPath string `json:"leaf_path"` // dotted Parquet path; "" where every file lacks the column
	Resolved string `json:"resolved"`  // id, mapping, name, position, absent
	// Mapping identifies the table's name mapping when any file has no field ids, so that a changed mapping is noticed.
	Mapping  string `json:"mapping,omitempty"`
	Type     string `json:"type"`     // Iceberg type when built
	Encoding string `json:"encoding"` // value encoding, e.g. key-v1:int64
	Physical string `json:"physical"` // Parquet physical type and width
	// Expr is the expression that the values were made by, with the version of everything that they depend on; "" for the column's own.
	Expr string `json:"expr,omitempty"`
	// Absent is what rows of files without the column hold: "null" or the initial default as text.
	Absent string `json:"absent,omitempty"`
}

// Record is the lineage of one artifact.
type Record struct {
	FormatVersion  int               `json:"format_version"`
	IndexID        string            `json:"index_id"`
	IndexCategory  string            `json:"index_category"` // scalar, bloom, lexical, vector, …
	Algorithm      string            `json:"algorithm"`      // kind and version, e.g. bloom.v1
	TableUUID      string            `json:"table_uuid"`
	Columns        []Column          `json:"columns"`
	Parameters     map[string]string `json:"parameters,omitempty"`
	SnapshotID     int64             `json:"source_snapshot_id"`
	SequenceNumber int64             `json:"source_sequence_number"`
	Files          []File            `json:"files"`
	// ReadFieldIDs is the columns whose chunks the build read, in the order in which ColumnsSHA256 takes them: those of every index
	// that was built together with this one.
	ReadFieldIDs []int `json:"read_field_ids,omitempty"`
	// BlockHashes has, per indexed column, one SHA-256 cut to 128 bits (hex) for every 65,536 rows of the segment, over the
	// key-v1 encoding of the values.
	BlockHashes [][]string `json:"block_hashes,omitempty"`
	// BlockRows is the rows of each block where they are other than 65,536: a merged segment has the blocks of its sources. A block
	// that lost rows has no hash, "".
	BlockRows     []uint32 `json:"block_rows,omitempty"`
	IndexChecksum string   `json:"index_checksum"` // SHA-256 of the body blob
	FilePath      string   `json:"file_path"`      // bundle
	BlobType      string   `json:"blob_type"`
	BlobOffset    int64    `json:"blob_offset"`
	BlobLength    int64    `json:"blob_length"`
	Compression   string   `json:"compression,omitempty"`
}
