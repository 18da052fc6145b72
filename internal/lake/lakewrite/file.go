package lakewrite

import (
	"github.com/skomerdb/skomer/internal/facts"
)

// Content tells files apart (field 134 of the specification).
type Content int

// The contents.
const (
	Data            Content = 0
	PositionDeletes Content = 1 // with Format Puffin: a deletion vector
	EqualityDeletes Content = 2
)

// Status is the status of a manifest entry.
type Status int

// The statuses.
const (
	Existing Status = 0
	Added    Status = 1
	Deleted  Status = 2
)

// File is a data or delete file as a manifest states it. What is nil or empty is not stated.
type File struct {
	Path       string
	Format     facts.Format
	Content    Content
	Spec       *int                   // partition spec; nil: the table's default
	Partition  []facts.PartitionValue // in the order of the spec's fields
	Records    int64
	Size       int64 // bytes
	Metrics    map[int]Metric
	EqualityID []int
	Referenced string
	Offset     *int64 // of a deletion vector's blob
	Length     *int64
	Sequence   *int64 // nil: inherited from the commit
	FirstRowID *int64 // nil: inherited from the commit (v3)
	Key        []byte // key metadata
}

// Metric is what a manifest states about one column, by schema field id. Bounds are Iceberg single values, as they come.
type Metric struct {
	Size, Values, Nulls, NaNs *int64
	Lower, Upper              []byte // nil: not stated; empty: the empty value
}

// N is a count that is stated.
func N(n int64) *int64 { return &n }

// Manifest is one manifest of a snapshot.
type Manifest struct {
	Path          string
	Length        int64
	FormatVersion int // of the table when it was written
	SpecID        int
	Deletes       bool
	SnapshotID    int64
	Sequence      int64
	FirstRowID    int64
	Entries       []Entry
}

// Entry is one entry of a manifest.
type Entry struct {
	Status     Status
	SnapshotID int64
	Sequence   int64
	Explicit   bool // the sequence number is written, not left to inheritance
	File       File
	assigned   *int64 // first row id by inheritance
}

// Count is the entries of a status and their records.
func (m *Manifest) Count(s Status) (files, rows int64) {
	for _, e := range m.Entries {
		if e.Status == s {
			files++
			rows += e.File.Records
		}
	}
	return files, rows
}

func (m *Manifest) minSequence() int64 {
	least := m.Sequence
	for _, e := range m.Entries {
		if e.Status != Deleted {
			least = min(least, e.Sequence)
		}
	}
	return least
}
