// Package manifest answers: which files does a manifest list or a manifest name, and what does it say about them?
//
// It decodes bytes, does no I/O and applies no inheritance: that needs both the list's entry and the manifest and is the
// work of package lake. Fields are found by Iceberg field id, by name where a writer left the ids out; unknown fields are
// skipped. Source: Iceberg table specification, "Manifests" and "Manifest Lists".
package manifest

import (
	"strconv"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/avro"
)

// ListEntry is one manifest as a manifest list describes it. Counts that are not stated are facts.Unknown.
type ListEntry struct {
	Path       string
	Length     int64
	SpecID     int32
	Deletes    bool
	Sequence   int64 // 0 in v1 lists
	SnapshotID int64 // that added the manifest; facts.Unknown if not stated
	Added      int64 // live files of status added
	Existing   int64 // live files of status existing
	FirstRowID int64 // facts.Unknown if not assigned
	Encrypted  bool  // carries key metadata
	// Partitions is what the list says of the partition fields, in the order of the spec's; nil if it says nothing.
	Partitions []facts.Summary
}

// Empty reports whether the list states that no file of the manifest is alive.
func (e *ListEntry) Empty() bool { return e.Added == 0 && e.Existing == 0 }

// names are the standard field names by id, for writers that leave "field-id" out. Lists before format 2 had both
// added_data_files_count and added_files_count.
var listNames = map[string]int{
	"manifest_path": 500, "manifest_length": 501, "partition_spec_id": 502, "added_snapshot_id": 503,
	"added_files_count": 504, "added_data_files_count": 504, "existing_files_count": 505, "existing_data_files_count": 505,
	"partitions": 507, "sequence_number": 515, "content": 517, "key_metadata": 519, "first_row_id": 520,
}

// ReadList decodes a manifest list; what names it in faults.
func ReadList(what string, b []byte) (entries []ListEntry, err error) {
	defer recovered(what, &err)
	f, err := avro.Open(what, b)
	if err != nil {
		return nil, err
	}
	if f.Schema.Kind != avro.Record {
		return nil, fault.New(fault.Corrupt, what, "a manifest list holds records")
	}
	fields := identify(f.Schema, listNames)
	err = f.Each(func(c *avro.Cursor) error {
		e := ListEntry{SnapshotID: facts.Unknown, Added: facts.Unknown, Existing: facts.Unknown, FirstRowID: facts.Unknown}
		for _, fd := range fields {
			e.field(c, fd)
		}
		if e.Path == "" {
			c.Fail("manifest %d has no path", len(entries))
		}
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

func (e *ListEntry) field(c *avro.Cursor, f field) {
	switch f.id {
	case 500:
		e.Path = text(c, f.schema)
	case 501:
		e.Length = long(c, f.schema, 0)
	case 502:
		e.SpecID = int32(long(c, f.schema, 0))
	case 503:
		e.SnapshotID = long(c, f.schema, facts.Unknown)
	case 504:
		e.Added = long(c, f.schema, facts.Unknown)
	case 505:
		e.Existing = long(c, f.schema, facts.Unknown)
	case 507:
		e.Partitions = summaries(c, f.schema)
	case 515:
		e.Sequence = long(c, f.schema, 0)
	case 517:
		e.Deletes = content(c, long(c, f.schema, 0), 1) != 0
	case 519:
		e.Encrypted = len(blob(c, f.schema)) > 0
	case 520:
		e.FirstRowID = long(c, f.schema, facts.Unknown)
	default:
		c.Skip(f.schema)
	}
}

var summaryNames = map[string]int{"contains_null": 509, "contains_nan": 518, "lower_bound": 510, "upper_bound": 511}

// summaries reads what the list says of partition fields. Whether a field holds NaNs is not known unless it is stated.
func summaries(c *avro.Cursor, s *avro.Schema) (out []facts.Summary) {
	v := c.Branch(s)
	if v == nil {
		return nil
	}
	if v.Kind != avro.Array || v.Items.Value().Kind != avro.Record {
		c.Skip(v)
		return nil
	}
	fields := identify(v.Items.Value(), summaryNames)
	c.Blocks(func() {
		sum := facts.Summary{Null: true, NaN: true}
		if c.Branch(v.Items) != nil {
			for _, f := range fields {
				summary(c, f, &sum)
			}
		}
		out = append(out, sum)
	})
	return out
}

func summary(c *avro.Cursor, f field, sum *facts.Summary) {
	switch v := f.schema.Value(); {
	case (f.id == 509 || f.id == 518) && v.Kind == avro.Bool:
		b := c.Branch(f.schema) == nil || c.Bool()
		if f.id == 509 {
			sum.Null = b
		} else {
			sum.NaN = b
		}
	case f.id == 510:
		sum.Lower = blob(c, f.schema)
	case f.id == 511:
		sum.Upper = blob(c, f.schema)
	default:
		c.Skip(f.schema)
	}
}

func content(c *avro.Cursor, v, most int64) int64 {
	if v < 0 || v > most {
		c.Fail("content %d is none of the %d kinds", v, most+1)
		return 0
	}
	return v
}

// field is a field of a record with the id that decides what it means; -1: unknown.
type field struct {
	id     int
	schema *avro.Schema
}

func identify(s *avro.Schema, names map[string]int) []field {
	fields := make([]field, len(s.Fields))
	for i, f := range s.Fields {
		id := f.ID
		if id < 0 {
			if known, ok := names[f.Name]; ok {
				id = known
			}
		}
		fields[i] = field{id, f.Schema}
	}
	return fields
}

func long(c *avro.Cursor, s *avro.Schema, null int64) int64 {
	switch v := c.Branch(s); {
	case v == nil:
		return null
	case v.Kind == avro.Int || v.Kind == avro.Long:
		return c.Long()
	default:
		c.Fail("expected a number in the schema")
		return null
	}
}

func text(c *avro.Cursor, s *avro.Schema) string { return string(blob(c, s)) }

// blob reads bytes, a string or a fixed; nil for null.
func blob(c *avro.Cursor, s *avro.Schema) []byte {
	switch v := c.Branch(s); {
	case v == nil:
		return nil
	case v.Kind == avro.Bytes || v.Kind == avro.String:
		return c.Bytes()
	case v.Kind == avro.Fixed:
		return c.Fixed(v.Size)
	default:
		c.Fail("expected text or bytes in the schema")
		return nil
	}
}

func number(meta map[string][]byte, key string, otherwise int) int {
	n, err := strconv.Atoi(string(meta[key]))
	if err != nil {
		return otherwise
	}
	return n
}

// recovered turns a panic of a decoder into a corrupt fault.
func recovered(what string, err *error) {
	if p := recover(); p != nil {
		*err = fault.New(fault.Corrupt, what, "decoder failed: %v", p)
	}
}
