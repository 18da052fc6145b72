package maintain

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/scan"
	"github.com/skomerdb/skomer/internal/store"
)

// publish uploads the bundle of a unit that began then and commits its artifacts, and what was not worth one; nothing where no file was left.
func (r *run) publish(ctx context.Context, res *build.Result, began time.Time) error {
	var changes []overlay.Change
	if res.Path != "" && len(res.Build.Artifacts) > 0 {
		if err := upload(ctx, r.Store, res.Path, res.Build.Bundle); err != nil {
			return err
		}
		changes = append(changes, overlay.Publish(r.confirm, res.Build))
	}
	if len(res.Refusals) > 0 {
		change, err := r.refused.put(ctx, r.Store, r.Overlay, res.Build.ID, res.Refusals)
		if err != nil {
			return err
		}
		changes = append(changes, change)
	}
	maps, mapped, err := putMaps(ctx, r.state(), res)
	if err != nil {
		return err
	}
	if len(maps) > 0 {
		changes = append(changes, overlay.Derive(maps, nil))
	}
	if len(changes) == 0 {
		return nil
	}
	if pace, ok := r.pace(res, r.now().Sub(began)); ok {
		changes = append(changes, overlay.Built(pace))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replace(&res.Build)
	receipt, err := r.Overlay.Commit(ctx, r.base, changes...)
	if err != nil {
		return err
	}
	r.report.Version = receipt.Version
	r.report.BytesWritten += mapped
	r.tellPublished(ctx, res, receipt, r.now().Sub(began))
	if r.short != nil {
		r.short.built(&res.Build, receipt)
	}
	if published := len(res.Build.Artifacts) - len(receipt.Discarded); published > 0 {
		r.report.Bundles++
		r.report.Artifacts += published
		r.report.Carried += min(res.Carried, published)
		r.report.Files += res.Files
		r.report.BytesWritten += res.Size
	}
	return nil
}

// upload puts a local file under a key that is new.
func upload(ctx context.Context, st store.Store, path, key string) error {
	file, err := os.Open(path)
	if err != nil {
		return fault.Wrap(fault.NotFound, path, err)
	}
	defer file.Close()
	_, err = st.PutNew(ctx, key, file)
	return fault.About(key, err)
}

// replace names the artifacts of the newest version that the build's take the place of: those whose columns are found elsewhere
// now, and those that the run was told of. One that another unit of this sync replaced is gone already.
func (r *run) replace(b *overlay.Build) {
	v := r.report.Version
	var found []overlay.Placement
	for i := range b.Artifacts {
		a := &b.Artifacts[i]
		seen := map[overlay.Key]bool{}
		for _, f := range a.Files {
			found = v.AppendCovering(found[:0], f.Path)
			for _, p := range found {
				info, ok := v.Artifact(p.At)
				if !ok || p.IndexID != a.IndexID || seen[info.Key()] {
					continue
				}
				told := slices.Contains(r.replaces[target{f.Path, a.IndexID}], info.Key())
				if told || !scan.Outdated(&info, r.snapshot).OK() {
					seen[info.Key()] = true
					a.Replaces = append(a.Replaces, info.Key())
				}
			}
		}
	}
}

// confirm tells which files the table still has, after another sync brought the overlay to another snapshot. Called by a commit, under mu.
func (r *run) confirm(ctx context.Context, _ overlay.Upstream, files []overlay.Identity) ([]bool, error) {
	out := make([]bool, len(files))
	if err := r.overtaken(ctx); err != nil {
		return nil, err
	}
	s := r.snapshot
	if r.moved != nil {
		s = r.moved
	}
	have := map[string]int{}
	for i, path := range s.Files.Stated {
		have[path] = i
	}
	for k, f := range files {
		i, ok := have[f.Path]
		out[k] = ok && s.Files.Size[i] == f.Size && s.Files.Records[i] == f.Records
	}
	return out, nil
}

// overtaken finds out whether the table has moved on since the sync's snapshot; mu is held. A table that cannot be read now has not.
func (r *run) overtaken(ctx context.Context) error {
	if r.Refresh == nil || r.moved != nil {
		return nil
	}
	s, err := r.Refresh(ctx)
	if err != nil {
		return err
	}
	if s.MetadataPath != r.snapshot.MetadataPath || s.ID != r.snapshot.ID {
		r.moved = s
	}
	return nil
}

// idleRecord is how old the record of a sync or scrub may become while those that follow find nothing to do: each record is a version of
// the overlay.
const idleRecord = 15 * time.Minute

// idle tells that the sync changed nothing, and that what is recorded of the last one says what it would record.
func (r *run) idle(now overlay.Upstream) bool {
	was := r.report.Version.Upstream()
	recent := r.recent(was.LastSyncMs)
	was.LastSyncMs = now.LastSyncMs
	return recent && was.Equal(now) && r.report.Version.Number() == r.began
}

// recent tells that a record is not older than records of an idle overlay may be.
func (y *Syncer) recent(recordedMs int64) bool {
	age := y.now().Sub(time.UnixMilli(recordedMs))
	return age >= 0 && age < idleRecord
}

func (y *Syncer) now() time.Time {
	if y.Clock != nil {
		return y.Clock()
	}
	return time.Now()
}

// finish records the snapshot that the overlay was brought to.
func (r *run) finish(ctx context.Context) error {
	now := Upstream(r.snapshot, r.now())
	if r.idle(now) {
		return nil
	}
	claim, roll, err := r.claim(ctx)
	if err != nil {
		return err
	}
	changes := []overlay.Change{overlay.Synced(now), overlay.Completed(claim)}
	lists := crowded(r.report.Version)
	if lists == nil && roll == nil {
		return r.record(ctx, changes...)
	}
	keep := r.stillThere()
	if r.short != nil {
		if r.short.notes.Stale && lists != nil {
			return &whole{"lists of refusals with files that left the table are to be merged"}
		}
		keep = func(string, refusedFile) bool { return true }
	}
	return shielded(ctx, r.Overlay, nil, func(id string) error {
		if roll != nil {
			put, err := r.putRoll(ctx, id, roll)
			if err != nil {
				return err
			}
			changes = append(changes, put)
		}
		if lists == nil {
			return r.record(ctx, changes...)
		}
		merge, err := r.refused.merged(ctx, r.Store, r.Overlay, id, lists, keep)
		if err != nil {
			return err
		}
		if merge == nil {
			return r.record(ctx, changes...)
		}
		return r.record(ctx, append(changes, merge)...)
	})
}

func (r *run) record(ctx context.Context, changes ...overlay.Change) error {
	receipt, err := r.Overlay.Commit(ctx, r.report.Version, changes...)
	if err != nil {
		return err
	}
	r.report.Version = receipt.Version
	return nil
}

// stillThere tells of a refusal whether its file is in the snapshot as it was.
func (r *run) stillThere() func(string, refusedFile) bool {
	var have map[string]int
	return func(_ string, f refusedFile) bool {
		if have == nil {
			have = map[string]int{}
			for i, path := range r.snapshot.Files.Stated {
				have[path] = i
			}
		}
		i, ok := have[f.Path]
		return ok && r.snapshot.Files.Size[i] == f.Size && r.snapshot.Files.Records[i] == f.Records
	}
}

// Upstream is what the overlay records of the table's state; a zero synced means that it was not synced yet.
func Upstream(s *facts.Snapshot, synced time.Time) overlay.Upstream {
	u := overlay.Upstream{
		MetadataLocation: s.MetadataPath, SnapshotID: s.ID, SequenceNumber: s.Sequence, SchemaID: s.Schema.ID, LastUpdatedMs: s.TimestampMs,
		Sources: s.Sources,
	}
	if !synced.IsZero() {
		u.LastSyncMs = synced.UnixMilli()
	}
	return u
}

// leaves is the number of primitive fields of a schema.
func leaves(s *column.Schema) (n int) {
	s.Walk(func(p column.Path) bool {
		if len(p.Leaf().Type.Fields) == 0 {
			n++
		}
		return true
	})
	return n
}
