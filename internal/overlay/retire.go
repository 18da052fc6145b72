package overlay

import (
	"cmp"
	"context"
	"slices"

	"github.com/skomerdb/skomer/internal/store"
)

type retire struct{ keys []Key }

// Retire ends artifacts: from this version on they do not speak. Keys that no live artifact has are passed over.
func Retire(keys ...Key) Change { return retire{keys} }

func (c retire) apply(_ context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	for _, k := range c.keys {
		if at, ok := d.alive(k); ok {
			d.dead[at.Chunk] = d.dead[at.Chunk].with(int(at.Row))
			d.changed = true
		}
	}
	return nil
}

// Lookup is the place of a live artifact.
func (v *Version) Lookup(k Key) (Place, bool) { return v.lookup(k) }

// alive is the place in base of an artifact that speaks in the draft.
func (d *draft) alive(k Key) (Place, bool) {
	at, ok := d.base.lookup(k)
	return at, ok && !d.dead[at.Chunk].has(int(at.Row))
}

// Stamp says that a data file of an artifact has the entity tag New now, and the content that it had under Old.
type Stamp struct {
	Artifact Key
	Path     string
	Old, New store.Tag
}

type restamp struct{ stamps []Stamp }

// Restamp records new entity tags of unchanged files. Stamps of artifacts that are gone, or that say another tag than Old, are passed
// over. Where another artifact of the index covers a file under its new tag already, the stamped one ends.
func Restamp(stamps ...Stamp) Change {
	stamps = slices.Clone(stamps)
	slices.SortStableFunc(stamps, func(a, b Stamp) int {
		return cmp.Or(cmp.Compare(a.Artifact.Bundle, b.Artifact.Bundle), cmp.Compare(a.Artifact.Lineage, b.Artifact.Lineage))
	})
	return restamp{stamps}
}

func (c restamp) apply(ctx context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	for from := 0; from < len(c.stamps); {
		to := from + 1
		for to < len(c.stamps) && c.stamps[to].Artifact == c.stamps[from].Artifact {
			to++
		}
		if err := d.restamp(ctx, c.stamps[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// restamp gives one artifact the tags of its stamps.
func (d *draft) restamp(ctx context.Context, stamps []Stamp) error {
	at, ok := d.alive(stamps[0].Artifact)
	if !ok {
		return nil
	}
	if err := d.overlay.readWide(ctx, d.base, []int{int(at.Chunk)}); err != nil {
		return err
	}
	e, ok := d.base.entry(at)
	if !ok {
		return nil
	}
	hit := false
	for i := range e.files {
		for _, s := range stamps {
			if f := &e.files[i]; f.Path == s.Path && f.Tag == s.Old && s.Old != s.New {
				f.Tag, hit = s.New, true
				break
			}
		}
	}
	if !hit {
		return nil
	}
	d.dead[at.Chunk], d.changed = d.dead[at.Chunk].with(int(at.Row)), true
	for _, f := range e.files {
		if d.taken[claimed{e.index, f}] || d.covered(e.index, f, nil) {
			return nil
		}
	}
	for _, f := range e.files {
		d.taken[claimed{e.index, f}] = true
	}
	if d.inlined += len(e.inline); d.inlined > maxInlineTotal {
		e.inline = nil
	}
	d.fresh = append(d.fresh, e)
	return nil
}
