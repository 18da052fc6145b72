package lake

import (
	"context"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/meta"
)

// Table is one version of a table's metadata. It is immutable and safe for concurrent use.
type Table struct {
	lake *Lake
	name string
	path string // of the metadata.json, after mapping
	meta *meta.Metadata
}

// Name is what the table was opened by.
func (t *Table) Name() string { return t.name }

// MetadataPath is the metadata.json that was read, after location mapping.
func (t *Table) MetadataPath() string { return t.path }

// UUID is the table's UUID in lower case; "" for v1 tables without one.
func (t *Table) UUID() string { return t.meta.UUID }

// Location is the table's location as the metadata states it.
func (t *Table) Location() string { return t.meta.Location }

// FormatVersion is 1, 2 or 3.
func (t *Table) FormatVersion() int { return t.meta.FormatVersion }

// DefaultSpecID is the partition spec that new data is written with.
func (t *Table) DefaultSpecID() int { return t.meta.DefaultSpec }

// Schema is the table's current schema.
func (t *Table) Schema() *column.Schema { return t.meta.Schema() }

// Properties are the table's properties. The map must not be changed.
func (t *Table) Properties() map[string]string { return t.meta.Properties }

// SnapshotInfo describes a snapshot of the table without its files.
type SnapshotInfo struct {
	ID          int64
	Parent      int64 // -1: none
	Sequence    int64 // 0 in v1
	TimestampMs int64
	Operation   string // append, replace, overwrite, delete; "" if not stated
	Summary     map[string]string
	Refs        []string // branches and tags that point at it, sorted
	Current     bool
}

// Snapshots lists the table's snapshots in the order of the metadata.
func (t *Table) Snapshots() []SnapshotInfo {
	refs := map[int64][]string{}
	for name, r := range t.meta.Refs {
		refs[r.SnapshotID] = append(refs[r.SnapshotID], name)
	}
	out := make([]SnapshotInfo, 0, len(t.meta.Snapshots))
	for _, s := range t.meta.Snapshots {
		names := refs[s.ID]
		sort.Strings(names)
		out = append(out, SnapshotInfo{
			ID: s.ID, Parent: s.Parent, Sequence: s.Sequence, TimestampMs: s.TimestampMs, Operation: s.Summary["operation"],
			Summary: s.Summary, Refs: names, Current: s.ID == t.meta.Current,
		})
	}
	return out
}

// Selector chooses a snapshot. The zero value is the current one; at most one of the fields is set.
type Selector struct {
	ID   int64     // a snapshot id
	AsOf time.Time // the snapshot that was current then
	Ref  string    // a branch or tag
}

// Current selects the table's current snapshot.
func Current() Selector { return Selector{} }

// ParseSelector reads a snapshot id, a time (RFC 3339, a date, or a date and time; UTC without a zone) or a ref.
func ParseSelector(text string) Selector {
	if id, err := strconv.ParseInt(text, 10, 64); err == nil && id != 0 {
		return Selector{ID: id}
	}
	if id, err := strconv.ParseUint(text, 10, 64); err == nil && id != 0 {
		return Selector{ID: int64(id)}
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", time.DateTime, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return Selector{AsOf: at}
		}
	}
	return Selector{Ref: text}
}

// choice is a selected snapshot, nil for an empty table, and the schema that queries on it bind to.
type choice struct {
	snapshot *meta.Snapshot
	ref      string
	own      bool // bind to the snapshot's own schema: time travel and tags
}

func (t *Table) choose(sel Selector) (choice, error) {
	switch {
	case sel.ID != 0:
		s := t.meta.Snapshot(sel.ID)
		if s == nil {
			return choice{}, t.missing("snapshot %d does not exist or has expired", sel.ID)
		}
		return choice{snapshot: s, own: true}, nil
	case !sel.AsOf.IsZero():
		s, err := t.asOf(sel.AsOf)
		return choice{snapshot: s, own: true}, err
	case sel.Ref != "":
		return t.byRef(sel.Ref)
	case t.meta.Current == meta.None:
		return choice{}, nil
	}
	return choice{snapshot: t.meta.Snapshot(t.meta.Current), ref: "main"}, nil
}

func (t *Table) byRef(name string) (choice, error) {
	r, ok := t.meta.Refs[name]
	if !ok && name == "main" {
		return choice{ref: name}, nil // an empty table
	}
	if !ok {
		return choice{}, t.missing("it has no branch or tag %q", name).WithFix("its refs: %s", strings.Join(t.refs(), ", "))
	}
	s := t.meta.Snapshot(r.SnapshotID)
	if s == nil {
		return choice{}, fault.New(fault.Corrupt, t.path, "ref %q points at snapshot %d, which it does not have", name, r.SnapshotID)
	}
	return choice{snapshot: s, ref: name, own: r.Tag}, nil
}

// asOf follows the snapshot log, so that a snapshot that was rolled back is found only for the time it was current. Without
// a log the newest snapshot by time stands in.
func (t *Table) asOf(at time.Time) (*meta.Snapshot, error) {
	ms := at.UnixMilli()
	id, found, latest := int64(0), false, int64(0)
	if len(t.meta.Log) > 0 {
		for _, e := range t.meta.Log {
			if e.TimestampMs <= ms && (!found || e.TimestampMs >= latest) {
				id, found, latest = e.SnapshotID, true, e.TimestampMs
			}
		}
	} else {
		for _, s := range t.meta.Snapshots {
			if s.TimestampMs <= ms && (!found || s.TimestampMs >= latest) {
				id, found, latest = s.ID, true, s.TimestampMs
			}
		}
	}
	if !found {
		return nil, t.missing("it has no snapshot as old as %s", at.UTC().Format(time.RFC3339))
	}
	s := t.meta.Snapshot(id)
	if s == nil {
		return nil, t.missing("the snapshot of %s, %d, has expired", at.UTC().Format(time.RFC3339), id)
	}
	return s, nil
}

func (t *Table) refs() []string {
	names := make([]string, 0, len(t.meta.Refs))
	for name := range t.meta.Refs {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (t *Table) missing(reason string, args ...any) *fault.Error {
	return fault.New(fault.NotFound, t.name, reason, args...)
}

// Snapshot reads the facts of one snapshot: its manifest list in one wave, its manifests in as few as their size allows.
func (t *Table) Snapshot(ctx context.Context, sel Selector) (*facts.Snapshot, error) {
	v, err := t.View(sel)
	if err != nil {
		return nil, err
	}
	return v.Snapshot(ctx, nil)
}
