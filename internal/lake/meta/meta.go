// Package meta answers: what does a table's metadata JSON say?
//
// It reads format versions 1, 2 and 3, leniently where a reader does not depend on a field and strictly where a wrong guess
// could lose rows. It also writes schemas, specs and name mappings in the same JSON. It does no I/O. Source: Iceberg table
// specification, "Table Metadata" and appendix C, "JSON serialization".
package meta

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
)

// None is the id of no snapshot and of no schema.
const None = -1

// Metadata is one version of a table's metadata.
type Metadata struct {
	FormatVersion int
	UUID          string // lower case, "" if absent (v1)
	Location      string
	LastSequence  int64
	LastUpdatedMs int64
	Schemas       map[int]*column.Schema
	CurrentSchema int
	Specs         map[int]*facts.Spec
	DefaultSpec   int
	Properties    map[string]string
	Snapshots     []Snapshot
	Current       int64 // None: the table is empty
	Refs          map[string]Ref
	Log           []LogEntry
	NameMapping   []facts.MappedField
	NextRowID     int64
}

// Snapshot is one snapshot. Either ManifestList or, in v1 tables that embed the list, Manifests is set.
type Snapshot struct {
	ID           int64
	Parent       int64 // None: no parent
	Sequence     int64 // 0 in v1
	TimestampMs  int64
	ManifestList string
	Manifests    []string
	SchemaID     int // None if not stated
	Summary      map[string]string
	FirstRowID   int64 // facts.Unknown if not stated
	Encrypted    bool  // its manifest list is
}

// Ref is a branch or a tag.
type Ref struct {
	SnapshotID int64
	Tag        bool
}

// LogEntry says that a snapshot became the table's current one.
type LogEntry struct {
	TimestampMs int64
	SnapshotID  int64
}

// Schema is the table's current schema.
func (m *Metadata) Schema() *column.Schema { return m.Schemas[m.CurrentSchema] }

// Snapshot finds a snapshot by id; nil if the metadata has none.
func (m *Metadata) Snapshot(id int64) *Snapshot {
	for i := range m.Snapshots {
		if m.Snapshots[i].ID == id {
			return &m.Snapshots[i]
		}
	}
	return nil
}

type wireMetadata struct {
	FormatVersion   *int              `json:"format-version"`
	UUID            string            `json:"table-uuid"`
	Location        string            `json:"location"`
	LastSequence    int64             `json:"last-sequence-number"`
	LastUpdatedMs   int64             `json:"last-updated-ms"`
	ViewUUID        json.RawMessage   `json:"view-uuid"`
	Schema          json.RawMessage   `json:"schema"`
	Schemas         []json.RawMessage `json:"schemas"`
	CurrentSchemaID *int              `json:"current-schema-id"`
	PartitionSpec   []wireSpecField   `json:"partition-spec"`
	PartitionSpecs  []wireSpec        `json:"partition-specs"`
	DefaultSpecID   *int              `json:"default-spec-id"`
	Properties      map[string]any    `json:"properties"`
	CurrentSnapshot *snapshotID       `json:"current-snapshot-id"`
	Snapshots       []wireSnapshot    `json:"snapshots"`
	SnapshotLog     []wireLog         `json:"snapshot-log"`
	Refs            map[string]struct {
		SnapshotID snapshotID `json:"snapshot-id"`
		Type       string     `json:"type"`
	} `json:"refs"`
	NextRowID int64 `json:"next-row-id"`
}

type wireSnapshot struct {
	ID           *snapshotID    `json:"snapshot-id"`
	Parent       *snapshotID    `json:"parent-snapshot-id"`
	Sequence     int64          `json:"sequence-number"`
	TimestampMs  int64          `json:"timestamp-ms"`
	ManifestList string         `json:"manifest-list"`
	Manifests    []string       `json:"manifests"`
	SchemaID     *int           `json:"schema-id"`
	Summary      map[string]any `json:"summary"`
	FirstRowID   *int64         `json:"first-row-id"`
	KeyID        *string        `json:"key-id"`
}

type wireLog struct {
	TimestampMs int64      `json:"timestamp-ms"`
	SnapshotID  snapshotID `json:"snapshot-id"`
}

// snapshotID is 64 bits. Some writers print them unsigned; the bits are what counts.
type snapshotID int64

// UnmarshalJSON accepts signed and unsigned numbers.
func (id *snapshotID) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		u, uerr := strconv.ParseUint(string(b), 10, 64)
		if uerr != nil {
			return fmt.Errorf("snapshot id %.40s: %w", b, errors.Unwrap(err))
		}
		n = int64(u)
	}
	*id = snapshotID(n)
	return nil
}

// Parse reads metadata JSON; what names the file in faults.
func Parse(what string, b []byte) (m *Metadata, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fault.New(fault.Corrupt, what, "metadata parser failed: %v", p)
		}
	}()
	var w wireMetadata
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, jsonFault(what, b, err)
	}
	p := parser{what: what}
	return p.metadata(&w)
}

// jsonFault says where in the file the JSON breaks.
func jsonFault(what string, b []byte, err error) error {
	offset := int64(-1)
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &mistyped):
		offset = mistyped.Offset
	}
	if offset < 0 || offset > int64(len(b)) {
		return fault.New(fault.Corrupt, what, "bad metadata JSON").WithCause(err)
	}
	head := b[:offset]
	line := 1 + bytes.Count(head, []byte("\n"))
	col := int(offset) - (bytes.LastIndexByte(head, '\n') + 1)
	return fault.New(fault.Corrupt, what, "bad metadata JSON at line %d, column %d", line, col).WithCause(err)
}

type parser struct{ what string }

func (p parser) bad(reason string, args ...any) *fault.Error {
	return fault.New(fault.Corrupt, p.what, reason, args...)
}

func (p parser) metadata(w *wireMetadata) (*Metadata, error) {
	if w.FormatVersion == nil || *w.FormatVersion < 1 {
		return nil, p.bad("not Iceberg table metadata: it has no format-version")
	}
	if *w.FormatVersion > 3 {
		return nil, fault.New(fault.Unsupported, p.what, "Iceberg format version %d; 1 to 3 are read", *w.FormatVersion)
	}
	if w.ViewUUID != nil {
		return nil, fault.New(fault.Unsupported, p.what, "it is a view, not a table")
	}
	if w.Location == "" {
		return nil, p.bad("it has no location")
	}
	m := &Metadata{
		FormatVersion: *w.FormatVersion, UUID: strings.ToLower(w.UUID), Location: w.Location, LastSequence: w.LastSequence,
		LastUpdatedMs: w.LastUpdatedMs, Properties: texts(w.Properties), NextRowID: w.NextRowID, Current: None,
	}
	for _, step := range []func(*wireMetadata, *Metadata) error{p.schemas, p.specs, p.snapshots, p.nameMapping} {
		if err := step(w, m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (p parser) schemas(w *wireMetadata, m *Metadata) error {
	m.Schemas = map[int]*column.Schema{}
	for _, raw := range w.Schemas {
		s, err := p.schema(raw)
		if err != nil {
			return err
		}
		m.Schemas[s.ID] = s
	}
	if len(w.Schemas) == 0 || w.CurrentSchemaID == nil {
		return p.onlySchema(w, m)
	}
	m.CurrentSchema = *w.CurrentSchemaID
	if m.Schema() == nil {
		return p.bad("current schema %d is not among its schemas", m.CurrentSchema)
	}
	return nil
}

// onlySchema takes the current schema from the field that v1 tables had before schemas had ids.
func (p parser) onlySchema(w *wireMetadata, m *Metadata) error {
	if m.FormatVersion > 1 || len(w.Schema) == 0 {
		return p.bad("it has no schemas or no current-schema-id")
	}
	s, err := p.schema(w.Schema)
	if err != nil {
		return err
	}
	m.Schemas[s.ID], m.CurrentSchema = s, s.ID
	return nil
}

func (p parser) snapshots(w *wireMetadata, m *Metadata) error {
	if w.CurrentSnapshot != nil && *w.CurrentSnapshot != None {
		m.Current = int64(*w.CurrentSnapshot)
	}
	for i, s := range w.Snapshots {
		if s.ID == nil {
			return p.bad("snapshot %d of the list has no id", i)
		}
		if s.ManifestList == "" && s.Manifests == nil {
			return p.bad("snapshot %d names neither a manifest list nor manifests", *s.ID)
		}
		m.Snapshots = append(m.Snapshots, Snapshot{
			ID: int64(*s.ID), Parent: int64(orNone(s.Parent)), Sequence: s.Sequence, TimestampMs: s.TimestampMs, ManifestList: s.ManifestList,
			Manifests: s.Manifests, SchemaID: orNone(s.SchemaID), Summary: texts(s.Summary), FirstRowID: orNone(s.FirstRowID),
			Encrypted: s.KeyID != nil,
		})
	}
	for _, e := range w.SnapshotLog {
		m.Log = append(m.Log, LogEntry{TimestampMs: e.TimestampMs, SnapshotID: int64(e.SnapshotID)})
	}
	m.Refs = make(map[string]Ref, len(w.Refs)+1)
	for name, r := range w.Refs {
		m.Refs[name] = Ref{SnapshotID: int64(r.SnapshotID), Tag: strings.EqualFold(r.Type, "tag")}
	}
	return p.current(m)
}

// current brings the current snapshot and the main branch together: either may be left out, but they must not differ.
func (p parser) current(m *Metadata) error {
	main, ok := m.Refs["main"]
	switch {
	case !ok && m.Current != None:
		m.Refs["main"] = Ref{SnapshotID: m.Current}
	case ok && m.Current == None:
		m.Current = main.SnapshotID
	case ok && main.SnapshotID != m.Current:
		return p.bad("its current snapshot is %d, but branch main is at %d", m.Current, main.SnapshotID)
	}
	if m.Current != None && m.Snapshot(m.Current) == nil {
		return p.bad("current snapshot %d is not among its snapshots", m.Current)
	}
	return nil
}

func orNone[T int | int64 | snapshotID](v *T) T {
	if v == nil {
		return None
	}
	return *v
}

// texts keeps string values as they are and others, which some writers leave in, as JSON.
func texts(in map[string]any) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		if s, ok := v.(string); ok {
			out[k] = s
			continue
		}
		b, err := json.Marshal(v)
		if err == nil && v != nil {
			out[k] = string(b)
		}
	}
	return out
}
