// Package lakewrite answers: how does a small Iceberg table come to be on disk?
//
// It serves the demo and tests. It writes metadata JSON, manifest lists and manifests of format versions 1, 2 and 3 around
// data files that the caller made, states about them exactly what the caller says, odd or wrong, and commits by version
// hint. It is no engine: it does not read data, resolve conflicts or retry. Other readers of Iceberg open its tables.
package lakewrite

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/meta"
	"github.com/skomerdb/skomer/internal/store"
)

// Spec describes a new table.
type Spec struct {
	Schema        *column.Schema
	Partition     *facts.Spec // nil: unpartitioned
	FormatVersion int         // 0: 2
	Properties    map[string]string
	NameMapping   []facts.MappedField
	UUID          string // "": random; "-": none (v1)
	// Embed makes v1 snapshots name their manifests in the metadata instead of in a manifest list.
	Embed bool
	// Start is the time of the first commit; each later one comes a second after. Zero: now.
	Start time.Time
}

// Table is a table being written. It is not safe for concurrent use. Its exported fields may be changed between commits to
// make tables that no writer should make.
type Table struct {
	store    store.Store
	location string
	hint     store.Tag
	version  int // of the newest metadata file
	next     time.Time
	files    int // manifests and lists written

	UUID          string
	FormatVersion int
	Embed         bool
	Schemas       []*column.Schema
	CurrentSchema int
	Specs         []*facts.Spec
	DefaultSpec   int
	Properties    map[string]string
	Snapshots     []*Snapshot
	Current       int64 // meta.None: empty
	Refs          map[string]meta.Ref
	Log           []meta.LogEntry
	LastSequence  int64
	NextRowID     int64
}

// Snapshot is one commit. List names its manifest list; Manifests are what the list holds.
type Snapshot struct {
	ID, Parent  int64
	Sequence    int64
	TimestampMs int64
	SchemaID    int
	List        string
	Manifests   []*Manifest
	Operation   string
	FirstRowID  int64
	AddedRows   int64
}

// Create writes an empty table below location, which is also the prefix of its keys in s: for local files an absolute path.
func Create(ctx context.Context, s store.Store, location string, spec Spec) (*Table, error) {
	t := &Table{
		store: s, location: location, UUID: spec.UUID, FormatVersion: spec.FormatVersion, Embed: spec.Embed,
		Schemas: []*column.Schema{spec.Schema}, CurrentSchema: spec.Schema.ID, Properties: maps.Clone(spec.Properties),
		Current: meta.None, Refs: map[string]meta.Ref{}, next: spec.Start,
	}
	if t.FormatVersion == 0 {
		t.FormatVersion = 2
	}
	if t.UUID == "" {
		t.UUID = uuid.NewString()
	}
	if t.next.IsZero() {
		t.next = time.Now()
	}
	if t.Properties == nil {
		t.Properties = map[string]string{}
	}
	if spec.NameMapping != nil {
		t.Properties[meta.NameMappingProperty] = meta.NameMappingJSON(spec.NameMapping)
	}
	if spec.Partition == nil {
		spec.Partition = &facts.Spec{}
	}
	t.Specs, t.DefaultSpec = []*facts.Spec{spec.Partition}, spec.Partition.ID
	return t, t.Write(ctx)
}

// Location is the table's folder.
func (t *Table) Location() string { return t.location }

// MetadataPath is the newest metadata.json.
func (t *Table) MetadataPath() string {
	return fmt.Sprintf("%s/metadata/v%d.metadata.json", t.location, t.version)
}

// SetSchema adds a schema (its ID must be new, or an old one to return to) and makes it current.
func (t *Table) SetSchema(ctx context.Context, s *column.Schema) error {
	if !slices.ContainsFunc(t.Schemas, func(have *column.Schema) bool { return have.ID == s.ID }) {
		t.Schemas = append(t.Schemas, s)
	}
	t.CurrentSchema = s.ID
	return t.Write(ctx)
}

// SetSpec adds a partition spec and makes it the default of later commits.
func (t *Table) SetSpec(ctx context.Context, s *facts.Spec) error {
	t.Specs, t.DefaultSpec = append(t.Specs, s), s.ID
	return t.Write(ctx)
}

// Tag names a snapshot.
func (t *Table) Tag(ctx context.Context, name string, snapshot int64) error {
	t.Refs[name] = meta.Ref{SnapshotID: snapshot, Tag: true}
	return t.Write(ctx)
}

// Branch points a branch at a snapshot.
func (t *Table) Branch(ctx context.Context, name string, snapshot int64) error {
	t.Refs[name] = meta.Ref{SnapshotID: snapshot}
	return t.Write(ctx)
}

// SetCurrent makes an older snapshot current again, as a rollback does.
func (t *Table) SetCurrent(ctx context.Context, snapshot int64) error {
	t.setCurrent(snapshot, t.tick())
	return t.Write(ctx)
}

func (t *Table) setCurrent(snapshot, timestampMs int64) {
	t.Current = snapshot
	t.Refs["main"] = meta.Ref{SnapshotID: snapshot}
	t.Log = append(t.Log, meta.LogEntry{TimestampMs: timestampMs, SnapshotID: snapshot})
}

// Expire forgets snapshots. Their files stay.
func (t *Table) Expire(ctx context.Context, ids ...int64) error {
	t.Snapshots = slices.DeleteFunc(t.Snapshots, func(s *Snapshot) bool { return slices.Contains(ids, s.ID) })
	t.Log = slices.DeleteFunc(t.Log, func(e meta.LogEntry) bool { return slices.Contains(ids, e.SnapshotID) })
	return t.Write(ctx)
}

// Upgrade raises the format version of later commits; older manifests stay as they are.
func (t *Table) Upgrade(ctx context.Context, version int) error {
	t.FormatVersion = version
	return t.Write(ctx)
}

// snapshot finds a snapshot; nil if there is none.
func (t *Table) snapshot(id int64) *Snapshot {
	for _, s := range t.Snapshots {
		if s.ID == id {
			return s
		}
	}
	return nil
}

func (t *Table) tick() int64 {
	now := t.next
	t.next = t.next.Add(time.Second)
	return now.UnixMilli()
}

// Write writes the next metadata.json from the exported fields and moves the version hint.
func (t *Table) Write(ctx context.Context) error {
	b, err := json.MarshalIndent(t.metadata(), "", "  ")
	if err != nil {
		return fault.Wrap(fault.Invalid, t.location, err)
	}
	t.version++
	if err := t.put(ctx, t.MetadataPath(), b); err != nil {
		return err
	}
	t.hint, err = t.store.PutIf(ctx, t.location+"/metadata/version-hint.text", t.hint, []byte(strconv.Itoa(t.version)))
	return err
}

func (t *Table) put(ctx context.Context, key string, b []byte) error {
	_, err := t.store.PutNew(ctx, key, bytes.NewReader(b))
	return err
}
