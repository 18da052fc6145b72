package lakewrite

import (
	"context"
	"slices"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/meta"
)

// Change is what a commit does to the live files of its parent snapshot.
type Change struct {
	Add       []File   // data and delete files
	Remove    []string // paths of live files
	Operation string   // "": append, overwrite or delete, by what the change does
	Branch    string   // "": main
	ID        int64    // of the snapshot; 0: the next free one from 1001
}

// Append adds files to main and returns the new snapshot's id.
func (t *Table) Append(ctx context.Context, files ...File) (int64, error) {
	return t.Commit(ctx, Change{Add: files})
}

// Remove takes live files out of main and returns the new snapshot's id.
func (t *Table) Remove(ctx context.Context, paths ...string) (int64, error) {
	return t.Commit(ctx, Change{Remove: paths})
}

// Replace swaps files on main without changing rows, as a compaction does, and returns the new snapshot's id.
func (t *Table) Replace(ctx context.Context, remove []string, add ...File) (int64, error) {
	return t.Commit(ctx, Change{Add: add, Remove: remove, Operation: "replace"})
}

// Commit writes a new snapshot and returns its id.
func (t *Table) Commit(ctx context.Context, c Change) (int64, error) {
	if c.Branch == "" {
		c.Branch = "main"
	}
	s := &Snapshot{
		ID: c.ID, Parent: meta.None, TimestampMs: t.tick(), SchemaID: t.CurrentSchema, Operation: c.operation(),
		FirstRowID: facts.Unknown,
	}
	if s.ID == 0 {
		s.ID = 1001 + int64(len(t.Snapshots))
		for t.snapshot(s.ID) != nil {
			s.ID++
		}
	}
	if t.FormatVersion > 1 {
		t.LastSequence++
		s.Sequence = t.LastSequence
	}
	var carried []*Manifest
	if r, ok := t.Refs[c.Branch]; ok {
		s.Parent = r.SnapshotID
		if parent := t.snapshot(r.SnapshotID); parent != nil {
			carried = parent.Manifests
		}
	}
	if err := t.build(ctx, s, carried, c); err != nil {
		return 0, err
	}
	t.Snapshots = append(t.Snapshots, s)
	if c.Branch == "main" {
		t.setCurrent(s.ID, s.TimestampMs)
	} else {
		t.Refs[c.Branch] = meta.Ref{SnapshotID: s.ID}
	}
	return s.ID, t.Write(ctx)
}

func (c *Change) operation() string {
	switch {
	case c.Operation != "":
		return c.Operation
	case len(c.Remove) == 0:
		return "append"
	case len(c.Add) == 0:
		return "delete"
	}
	return "overwrite"
}

// build writes the manifests and the list of s: new files first, then what its parent carries over, rewritten where files
// of it are removed.
func (t *Table) build(ctx context.Context, s *Snapshot, carried []*Manifest, c Change) error {
	s.Manifests = t.groups(c.Add, s)
	removed := map[string]bool{}
	for _, m := range carried {
		if kept := t.without(m, s, c.Remove, removed); kept != nil {
			s.Manifests = append(s.Manifests, kept)
		}
	}
	for _, path := range c.Remove {
		if !removed[path] {
			return fault.New(fault.NotFound, path, "no live file of the table")
		}
	}
	t.assignRows(s)
	for _, m := range s.Manifests {
		if m.Path != "" {
			continue
		}
		if err := t.writeManifest(ctx, m); err != nil {
			return err
		}
	}
	if t.Embed && t.FormatVersion == 1 {
		return nil
	}
	return t.writeList(ctx, s)
}

// groups makes one manifest for every spec and content among the new files.
func (t *Table) groups(files []File, s *Snapshot) []*Manifest {
	var out []*Manifest
	for _, f := range files {
		spec := t.DefaultSpec
		if f.Spec != nil {
			spec = *f.Spec
		}
		deletes := f.Content != Data
		i := slices.IndexFunc(out, func(m *Manifest) bool { return m.SpecID == spec && m.Deletes == deletes })
		if i < 0 {
			i = len(out)
			out = append(out, &Manifest{
				SpecID: spec, Deletes: deletes, SnapshotID: s.ID, Sequence: s.Sequence, FormatVersion: t.FormatVersion,
				FirstRowID: facts.Unknown,
			})
		}
		sequence := s.Sequence
		if f.Sequence != nil {
			sequence = *f.Sequence
		}
		out[i].Entries = append(out[i].Entries, Entry{
			Status: Added, SnapshotID: s.ID, Sequence: sequence, Explicit: f.Sequence != nil, File: f,
		})
	}
	return out
}

// without is m with files removed: m itself if none is its, else a new manifest; nil if nothing in it is alive.
func (t *Table) without(m *Manifest, s *Snapshot, paths []string, removed map[string]bool) *Manifest {
	hit, live := false, false
	for _, e := range m.Entries {
		if e.Status != Deleted {
			live = true
			hit = hit || slices.Contains(paths, e.File.Path)
		}
	}
	if !hit {
		if !live {
			return nil
		}
		return m
	}
	n := &Manifest{
		SpecID: m.SpecID, Deletes: m.Deletes, SnapshotID: s.ID, Sequence: s.Sequence, FormatVersion: t.FormatVersion,
		FirstRowID: facts.Unknown,
	}
	for _, e := range m.Entries {
		if e.Status == Deleted {
			continue
		}
		e.Status, e.Explicit = Existing, true
		if slices.Contains(paths, e.File.Path) {
			e.Status, e.SnapshotID = Deleted, s.ID
			removed[e.File.Path] = true
		}
		n.Entries = append(n.Entries, e)
	}
	return n
}

// assignRows gives new data manifests of a v3 table their first row id and every live file its own.
func (t *Table) assignRows(s *Snapshot) {
	if t.FormatVersion < 3 {
		return
	}
	s.FirstRowID = t.NextRowID
	for _, m := range s.Manifests {
		if m.Deletes || m.FirstRowID != facts.Unknown {
			continue
		}
		m.FirstRowID = t.NextRowID
		for i := range m.Entries {
			e := &m.Entries[i]
			if e.Status == Deleted || e.File.FirstRowID != nil || e.assigned != nil {
				continue
			}
			row := t.NextRowID
			e.assigned = &row
			t.NextRowID += e.File.Records
		}
	}
	s.AddedRows = t.NextRowID - s.FirstRowID
}
