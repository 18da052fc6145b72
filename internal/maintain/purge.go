package maintain

import (
	"context"
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// Purge drops indexes and deletes at once what only they need, from every retained version: these versions can still be read and
// rolled back to, without the indexes. Bundles that hold artifacts of other indexes, too, stay until they are consolidated. Of
// the vacuum only Overlay and Store count.
func (c *Vacuum) Purge(ctx context.Context, indexes ...string) (*VacuumReport, error) {
	w := c.begin()
	return &w.report, w.purge(ctx, indexes)
}

func (c *Vacuum) begin() *cleaning {
	return &cleaning{Vacuum: c, report: VacuumReport{
		DryRun: c.DryRun, Revoked: []string{}, Deleted: map[string]Tally{}, Kept: map[string]Tally{}, Warnings: []string{},
	}}
}

func (w *cleaning) purge(ctx context.Context, indexes []string) (err error) {
	if w.newest, err = w.Overlay.Latest(ctx); err != nil {
		return err
	}
	held := map[string]int64{} // bytes of the indexes, by bundle
	w.newest.Each(func(a overlay.ArtifactInfo) bool {
		if slices.Contains(indexes, a.IndexID) {
			held[a.Bundle] += a.Body.Len + a.Root.Len + a.Lineage.Len
		}
		return true
	})
	var changes []overlay.Change
	for _, id := range indexes {
		changes = append(changes, overlay.DropIndex(id))
	}
	receipt, err := w.Overlay.Commit(ctx, w.newest, append(changes, overlay.End(overlay.Ends{Purged: indexes}))...)
	if err != nil {
		return err
	}
	w.newest = receipt.Version
	w.report.Version, w.report.Oldest = w.newest.Number(), w.newest.Oldest()
	only, err := w.onlyOf(ctx, indexes)
	if err != nil {
		return err
	}
	for bundle, size := range held {
		if !slices.ContainsFunc(only, func(d doom) bool { return d.Key == bundle }) {
			count(w.report.Kept, reasonShared, size)
		}
	}
	return w.remove(ctx, only, nil)
}

// onlyOf is the objects that retained versions name for the sake of the purged indexes alone.
func (w *cleaning) onlyOf(ctx context.Context, indexes []string) ([]doom, error) {
	if err := unread(w.newest); err != nil {
		return nil, err
	}
	all, err := w.Overlay.Versions(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(v overlay.Object) bool { return v.Number < w.newest.Oldest() })
	without := w.newest.Purged()
	after, err := w.Overlay.Names(ctx, all, w.newest, without)
	if err != nil {
		return nil, err
	}
	for _, id := range indexes {
		delete(without, id)
	}
	before, err := w.Overlay.Names(ctx, all, w.newest, without)
	if err != nil {
		return nil, err
	}
	var keys []string
	for key := range before.Bundles {
		if !after.Bundles[key] && !after.Derived[key] {
			keys = append(keys, key)
		}
	}
	for key := range before.Derived {
		if !after.Bundles[key] && !after.Derived[key] {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var out []doom
	for page := range slices.Chunk(slices.Compact(keys), 500) {
		for _, in := range w.Store.Stat(ctx, page) {
			if in.Err == nil {
				out = append(out, doom{in, w.place(in.Key), reasonPurged})
			} else if !fault.Is(in.Err, fault.NotFound) {
				return nil, fault.About(in.Key, in.Err)
			}
		}
	}
	return out, nil
}

// PurgeAll ends the mount and deletes everything that Skomer wrote below the overlay's prefix but for the record of the newest version,
// a few hundred bytes: numbers of versions are never used again, so that neither a writer that slept through this nor a
// reader with a version in memory takes a later overlay for the one it knows. Of the vacuum only Overlay and Store count.
func (c *Vacuum) PurgeAll(ctx context.Context) (*VacuumReport, error) {
	w := c.begin()
	return &w.report, w.purgeAll(ctx)
}

func (w *cleaning) purgeAll(ctx context.Context) error {
	newest, err := w.Overlay.Latest(ctx)
	if err != nil && !fault.Is(err, fault.NotFound) { // not found: unmounted already
		return err
	}
	damaged := newest != nil && newest.Broken() != nil
	if !damaged {
		r, err := w.Overlay.Commit(ctx, nil, overlay.Clear())
		if err != nil {
			return err
		}
		w.report.Version, w.report.Oldest = r.Version.Number(), r.Version.Number()
	}
	w.Overlay.Close() // the head is written behind commits
	versions, err := w.Overlay.Versions(ctx)
	if err != nil {
		return err
	}
	if !damaged {
		if versions[0].Number != w.report.Version {
			return fault.New(fault.Conflict, w.Overlay.Prefix(), "somebody else mounted a table here meanwhile")
		}
		versions = versions[1:]
	}
	if w.objects, err = listAll(ctx, w.Store, w.Overlay.Prefix()+"/"); err != nil {
		return err
	}
	return w.remove(ctx, w.everything(ctx, versions), nil)
}

// everything is all objects of Skomer, payloads first, then lists, then marks of erasures, without which a version from before one could be gone
// back to, then the given versions from the oldest on.
func (w *cleaning) everything(ctx context.Context, versions []overlay.Object) []doom {
	folders := map[string]bool{"inflight": true}
	for _, f := range own {
		folders[f] = true
	}
	if names, err := w.Overlay.Names(ctx, versions[:min(len(versions), 1)], nil, nil); err == nil {
		for key := range names.Derived {
			folders[w.place(key)] = true
		}
	}
	var payloads, lists, marks []doom
	for _, in := range w.objects {
		d := doom{in, w.place(in.Key), reasonPurged}
		switch {
		case d.place == "chunks" || in.Key == w.Overlay.Prefix()+"/"+overlay.HeadName:
			lists = append(lists, d)
		case d.place == overlay.MarksFolder:
			marks = append(marks, d)
		case folders[d.place]:
			payloads = append(payloads, d)
		case d.place != "versions":
			count(w.report.Kept, reasonForeign, in.Size)
		}
	}
	lists = append(lists, marks...)
	for _, v := range slices.Backward(versions) {
		lists = append(lists, doom{store.Info{Key: v.Key, Size: v.Size}, "versions", reasonPurged})
	}
	return append(payloads, lists...)
}
