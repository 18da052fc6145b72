package lake

import (
	"context"
	"sync"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/factsblob"
	"github.com/skomerdb/skomer/internal/lake/manifest"
	"github.com/skomerdb/skomer/internal/lake/meta"
)

// View is one snapshot of a table, of which as much is read as was asked for: the manifest list, and of each manifest the
// columns that some filter needed. What was read stays in memory, in compact form. It is safe for concurrent use.
type View struct {
	table    *Table
	shell    facts.Snapshot
	snapshot *meta.Snapshot // nil: an empty table

	mu     sync.Mutex // held while something is read
	parts  []*part    // nil: the list was not read
	listed bool
	whole  *facts.Snapshot // nil: not asked for yet
}

// View chooses a snapshot. Nothing is read.
func (t *Table) View(sel Selector) (*View, error) {
	c, err := t.choose(sel)
	if err != nil {
		return nil, err
	}
	v := &View{table: t, snapshot: c.snapshot, shell: facts.Snapshot{
		TableUUID: t.meta.UUID, Location: t.meta.Location, MetadataPath: t.path, FormatVersion: t.meta.FormatVersion,
		ID: meta.None, LastSequence: t.meta.LastSequence, Ref: c.ref, Schema: t.meta.Schema(), Schemas: t.meta.Schemas,
		Specs: t.meta.Specs, NameMapping: t.meta.NameMapping, Properties: t.meta.Properties,
	}}
	s := c.snapshot
	if s == nil {
		return v, nil
	}
	v.shell.ID, v.shell.Sequence, v.shell.TimestampMs = s.ID, s.Sequence, s.TimestampMs
	if c.own && s.SchemaID != meta.None {
		if v.shell.Schema = t.meta.Schemas[s.SchemaID]; v.shell.Schema == nil {
			return nil, fault.New(fault.Corrupt, t.path, "snapshot %d has schema %d, which the table does not have", s.ID, s.SchemaID)
		}
	}
	return v, nil
}

// Shell is everything about the snapshot but its files and deletes.
func (v *View) Shell() *facts.Snapshot {
	s := v.shell
	return &s
}

// list reads the manifest list, once.
func (v *View) list(ctx context.Context) error {
	if v.listed || v.snapshot == nil {
		return nil
	}
	entries, err := v.table.listed(ctx, v.snapshot)
	if err != nil {
		return err
	}
	parts := make([]*part, 0, len(entries))
	for _, e := range entries {
		if !e.Empty() {
			p := &part{listed: e, path: v.table.lake.mapping.Apply(e.Path)}
			p.m = v.table.lake.cache.get(p.path)
			parts = append(parts, p)
		}
	}
	v.parts, v.listed = parts, true
	return nil
}

// Manifest is a manifest of a snapshot.
type Manifest struct {
	Path   string // as the list states it
	Length int64
}

// Manifests lists the manifests that can have live files.
func (v *View) Manifests(ctx context.Context) ([]Manifest, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.list(ctx); err != nil {
		return nil, err
	}
	out := make([]Manifest, len(v.parts))
	for i, p := range v.parts {
		out[i] = Manifest{p.listed.Path, p.listed.Length}
	}
	return out, nil
}

// everything is all that a manifest says.
var everything = factsblob.Want{Parts: manifest.Tuples | manifest.Base | manifest.Names | manifest.AllColumns}

// Snapshot is the facts of the whole snapshot: its manifest list in one wave, its manifests in as few as their size allows, or
// what kept holds of them. It is read once.
func (v *View) Snapshot(ctx context.Context, kept Kept) (*facts.Snapshot, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.whole != nil {
		return v.whole, nil
	}
	if err := v.list(ctx); err != nil {
		return nil, err
	}
	if err := v.load(ctx, kept, v.parts, everything, everything); err != nil {
		return nil, err
	}
	out, total := v.Shell(), 0
	for _, p := range v.parts {
		total += dataFiles(p.m)
	}
	if err := newAssembly(v.table, out, total).run(v.parts); err != nil {
		return nil, err
	}
	out.Sources = v.sources()
	v.whole = out
	return out, nil
}

// A snapshot tells the sources of its facts where so many manifests, of so many bytes together, state them.
const (
	maxSources     = 8
	maxSourceBytes = 1 << 20
)

// sources is the manifest list and the manifests, if they are few; nil otherwise.
func (v *View) sources() []string {
	if v.snapshot == nil || v.snapshot.ManifestList == "" || len(v.parts) > maxSources {
		return nil
	}
	out, bytes := []string{v.snapshot.ManifestList}, int64(0)
	for _, p := range v.parts {
		out = append(out, p.listed.Path)
		bytes += p.listed.Length
	}
	if bytes > maxSourceBytes {
		return nil
	}
	return out
}

// Pack reads manifests whole and packs them.
func (v *View) Pack(ctx context.Context, kept Kept, paths []string) (object []byte, heads []factsblob.Head, err error) {
	want := map[string]bool{}
	for _, p := range paths {
		want[p] = true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.list(ctx); err != nil {
		return nil, nil, err
	}
	byPath := map[string]*part{}
	var parts []*part // copies: what is read for a pack does not stay
	for _, p := range v.parts {
		if want[p.listed.Path] && byPath[p.listed.Path] == nil {
			own := *p
			byPath[p.listed.Path] = &own
			parts = append(parts, &own)
		}
	}
	if err := v.load(ctx, kept, parts, everything, everything); err != nil {
		return nil, nil, err
	}
	items := make([]factsblob.Item, len(paths))
	for i, path := range paths {
		p := byPath[path]
		if p == nil {
			return nil, nil, fault.New(fault.NotFound, path, "snapshot %d has no such manifest", v.shell.ID)
		}
		items[i] = factsblob.Item{Origin: factsblob.Origin{Path: path, Length: p.listed.Length, Tag: string(p.tag)}, Manifest: p.m}
	}
	object, heads = factsblob.Pack(items)
	return object, heads, nil
}
