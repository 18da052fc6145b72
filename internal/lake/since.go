package lake

import (
	"context"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake/manifest"
)

// Since is what a snapshot has that an earlier one of the table had not.
type Since struct {
	// Snapshot is the facts of the snapshot with those files alone that its new manifests list; what else they list is in Old.
	Snapshot *facts.Snapshot
	Old      map[string]bool // stated paths in Snapshot of which the earlier one had every file, as it is now
	Left     bool            // a file left the table, or is another one under its path now
	Deletes  bool            // the snapshot has delete files; then the rest is not filled in
}

// same is a file as far as it can be told from others under its path.
type same struct {
	path          string
	size, records int64
}

// Since compares the manifest lists of two snapshots, and reads the manifests that only one of them names: manifests are never written twice
// under one path. So it costs what changed, and the two lists.
func (v *View) Since(ctx context.Context, kept Kept, earlier *View) (*Since, error) {
	old, err := earlier.copies(ctx)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.list(ctx); err != nil {
		return nil, err
	}
	out := &Since{}
	fresh, gone := apart(v.parts, old), apart(old, v.parts)
	for _, p := range v.parts {
		out.Deletes = out.Deletes || p.listed.Deletes
	}
	for _, p := range old {
		out.Deletes = out.Deletes || p.listed.Deletes
	}
	if out.Deletes {
		return out, nil
	}
	if err := v.load(ctx, kept, append(fresh, gone...), everything, everything); err != nil {
		return nil, err
	}
	s := v.Shell()
	total := 0
	for _, p := range fresh {
		total += dataFiles(p.m)
		out.Deletes = out.Deletes || dataFiles(p.m) < p.m.N
	}
	if err := newAssembly(v.table, s, total).run(fresh); err != nil {
		return nil, err
	}
	s.Sources = v.sources()
	out.Snapshot = s
	out.compare(gone)
	return out, nil
}

// copies is the parts of the manifest list, as copies: what is read of them does not stay.
func (v *View) copies(ctx context.Context) ([]*part, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.list(ctx); err != nil {
		return nil, err
	}
	out := make([]*part, len(v.parts))
	for i, p := range v.parts {
		own := *p
		out[i] = &own
	}
	return out, nil
}

// apart is the parts whose manifests others do not have.
func apart(parts, others []*part) []*part {
	type object struct {
		path   string
		length int64
	}
	have := map[object]int{}
	for _, p := range others {
		have[object{p.listed.Path, p.listed.Length}]++
	}
	var out []*part
	for _, p := range parts {
		o := object{p.listed.Path, p.listed.Length}
		if have[o]--; have[o] < 0 {
			out = append(out, p)
		}
	}
	return out
}

// compare finds which of the files are in manifests that are gone, and whether all of those are among the files.
func (s *Since) compare(gone []*part) {
	had := map[same]int{}
	for _, p := range gone {
		for i := range p.m.N {
			if p.m.Content.At(i) == int64(manifest.Data) {
				had[same{p.m.Path.At(i), p.m.Size.At(i), p.m.Records.At(i)}]++
			}
		}
	}
	if len(had) == 0 {
		return
	}
	s.Old = map[string]bool{}
	f, came := &s.Snapshot.Files, map[string]bool{}
	for i, path := range f.Stated {
		if k := (same{path, f.Size[i], f.Records[i]}); had[k] > 0 {
			had[k]--
			s.Old[path] = true
		} else {
			came[path] = true
		}
	}
	for path := range came {
		delete(s.Old, path)
	}
	for _, n := range had {
		s.Left = s.Left || n > 0
	}
}
