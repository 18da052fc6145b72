package lakewrite

import (
	"encoding/json"
	"strconv"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/meta"
)

type object = map[string]any

// metadata is the metadata JSON of the table's present state.
func (t *Table) metadata() object {
	m := object{
		"format-version": t.FormatVersion, "location": t.location, "last-updated-ms": t.next.UnixMilli(),
		"last-column-id": t.lastColumnID(), "schemas": t.schemasJSON(), "current-schema-id": t.CurrentSchema,
		"partition-specs": t.specsJSON(), "default-spec-id": t.DefaultSpec, "last-partition-id": t.lastPartitionID(),
		"sort-orders": []any{object{"order-id": 0, "fields": []any{}}}, "default-sort-order-id": 0,
		"properties": t.Properties, "snapshots": t.snapshotsJSON(), "snapshot-log": t.logJSON(), "metadata-log": []any{},
		"refs": t.refsJSON(), "current-snapshot-id": t.Current,
	}
	if t.UUID != "-" {
		m["table-uuid"] = t.UUID
	}
	switch t.FormatVersion {
	case 1:
		for _, s := range t.Schemas {
			if s.ID == t.CurrentSchema {
				m["schema"] = json.RawMessage(meta.SchemaJSON(s))
			}
		}
		for _, s := range t.Specs {
			if s.ID == t.DefaultSpec {
				m["partition-spec"] = json.RawMessage(meta.SpecFieldsJSON(s))
			}
		}
	case 3:
		m["next-row-id"] = t.NextRowID
		fallthrough
	default:
		m["last-sequence-number"] = t.LastSequence
	}
	return m
}

func (t *Table) schemasJSON() []any {
	out := []any{}
	for _, s := range t.Schemas {
		out = append(out, json.RawMessage(meta.SchemaJSON(s)))
	}
	return out
}

func (t *Table) specsJSON() []any {
	out := []any{}
	for _, s := range t.Specs {
		out = append(out, object{"spec-id": s.ID, "fields": json.RawMessage(meta.SpecFieldsJSON(s))})
	}
	return out
}

func (t *Table) snapshotsJSON() []any {
	out := []any{}
	for _, s := range t.Snapshots {
		o := object{
			"snapshot-id": s.ID, "timestamp-ms": s.TimestampMs, "schema-id": s.SchemaID, "summary": s.summary(),
		}
		if s.Parent != meta.None {
			o["parent-snapshot-id"] = s.Parent
		}
		if s.List != "" {
			o["manifest-list"] = s.List
		} else {
			paths := []string{}
			for _, m := range s.Manifests {
				paths = append(paths, m.Path)
			}
			o["manifests"] = paths
		}
		if t.FormatVersion > 1 {
			o["sequence-number"] = s.Sequence
		}
		if t.FormatVersion > 2 && s.FirstRowID != facts.Unknown {
			o["first-row-id"], o["added-rows"] = s.FirstRowID, s.AddedRows
		}
		out = append(out, o)
	}
	return out
}

func (s *Snapshot) summary() object {
	files, records, deletes := 0, int64(0), 0
	for _, m := range s.Manifests {
		for _, e := range m.Entries {
			switch {
			case e.Status == Deleted:
			case m.Deletes:
				deletes++
			default:
				files++
				records += e.File.Records
			}
		}
	}
	return object{
		"operation": s.Operation, "total-data-files": strconv.Itoa(files), "total-delete-files": strconv.Itoa(deletes),
		"total-records": strconv.FormatInt(records, 10),
	}
}

func (t *Table) logJSON() []any {
	out := []any{}
	for _, e := range t.Log {
		out = append(out, object{"timestamp-ms": e.TimestampMs, "snapshot-id": e.SnapshotID})
	}
	return out
}

func (t *Table) refsJSON() object {
	out := object{}
	for name, r := range t.Refs {
		kind := "branch"
		if r.Tag {
			kind = "tag"
		}
		out[name] = object{"snapshot-id": r.SnapshotID, "type": kind}
	}
	return out
}

func (t *Table) lastColumnID() int {
	last := 0
	for _, s := range t.Schemas {
		s.Walk(func(p column.Path) bool {
			last = max(last, p.Leaf().ID)
			return true
		})
	}
	return last
}

func (t *Table) lastPartitionID() int {
	last := 999
	for _, s := range t.Specs {
		for _, f := range s.Fields {
			last = max(last, f.ID)
		}
	}
	return last
}
