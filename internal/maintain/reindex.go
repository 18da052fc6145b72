package maintain

import (
	"context"
	"maps"
	"math"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// Reindex builds anew, for the files of s, the artifacts of one index (id "" all of them) whose lineage tells another format of the
// kind than is written now or other parameters than the index has; with all, every artifact. The old ones speak until theirs are
// published in their place. An artifact whose lineage cannot be read is repair's business.
//
// An index in quarantine that is named by its id is built anew as a whole. Once it is, everything that was made of it before goes, and it
// speaks again.
func (y *Syncer) Reindex(ctx context.Context, s *facts.Snapshot, id string, all bool) (*Report, error) {
	r, ctx, err := y.begin(ctx, s)
	if err != nil {
		return nil, err
	}
	err = r.reindex(ctx, id, all)
	return r.end(), err
}

func (r *run) reindex(ctx context.Context, id string, all bool) error {
	_, silent := r.report.Version.Quarantined(id)
	old := r.report.Version
	if err := r.renew(ctx, id, all || silent); err != nil || r.report.Stopped != "" {
		return err
	}
	if err := r.renewed(ctx, id); err != nil || !silent {
		return err
	}
	return r.release(ctx, id, old)
}

// renewed records of which indexes nothing of an earlier version of their kind is left.
func (r *run) renewed(ctx context.Context, id string) error {
	var changes []overlay.Change
	for _, d := range r.report.Version.Indexes() {
		x, ok := r.index(d)
		if !ok || id != "" && d.ID != id || d.KindVersion >= x.Kind.Version {
			continue
		}
		n, known, err := r.old(ctx, d.ID, math.MaxInt)
		if err != nil {
			return err
		}
		if n == 0 && known {
			changes = append(changes, overlay.Renewed(d.ID, x.Kind.Version))
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return r.record(ctx, changes...)
}

// old counts the outmoded among the first artifacts of an index, at most so many; known: all of it was looked at.
func (r *run) old(ctx context.Context, id string, most int) (n int, known bool, err error) {
	var infos []overlay.ArtifactInfo
	known = true
	r.report.Version.Each(func(a overlay.ArtifactInfo) bool {
		switch {
		case a.IndexID != id:
		case len(infos) == most:
			known = false
		default:
			infos = append(infos, a)
		}
		return known
	})
	records, errs := r.records(ctx, infos)
	for i := range infos {
		switch {
		case errs[i] != nil:
			known = false
		case r.outmoded(&infos[i], records[i]):
			n++
		}
	}
	return n, known, ctx.Err()
}

// Outmoded counts, by index, the artifacts that Reindex would build anew, among the first of each index, at most so many. Only indexes are looked
// at that were declared for an earlier version of their kind and not reindexed since: of others there are none.
func Outmoded(ctx context.Context, st store.Store, v *overlay.Version, s *facts.Snapshot, most int) (map[string]int, error) {
	r := &run{Syncer: &Syncer{Store: st}, snapshot: s, report: Report{Version: v}}
	out := map[string]int{}
	for _, d := range v.Indexes() {
		if x, ok := r.index(d); !ok || d.KindVersion >= x.Kind.Version {
			continue
		}
		n, _, err := r.old(ctx, d.ID, most)
		if err != nil {
			return nil, err
		}
		out[d.ID] = n
	}
	return out, nil
}

// release takes what an older version has of an index out of the newest, and ends the index's quarantine.
func (r *run) release(ctx context.Context, id string, old *overlay.Version) error {
	var keys []overlay.Key
	old.Each(func(a overlay.ArtifactInfo) bool {
		if a.IndexID == id {
			keys = append(keys, a.Key())
		}
		return true
	})
	changes := []overlay.Change{overlay.Retire(keys...), overlay.Release(id)}
	for _, e := range old.EveryDerived() {
		if e.Index == id {
			changes = append(changes, overlay.ReplaceDerived(nil, []overlay.Derived{e}))
		}
	}
	receipt, err := r.Overlay.Commit(ctx, r.report.Version, changes...)
	if err != nil {
		return err
	}
	r.report.Version, r.report.Released = receipt.Version, []string{id}
	return nil
}

// renew builds anew what is outmoded, or all.
func (r *run) renew(ctx context.Context, id string, all bool) error {
	var infos []overlay.ArtifactInfo
	r.report.Version.Each(func(a overlay.ArtifactInfo) bool {
		if id == "" || a.IndexID == id {
			infos = append(infos, a)
		}
		return true
	})
	records, errs := r.records(ctx, infos)
	if err := ctx.Err(); err != nil {
		return err
	}
	r.only, r.replaces = map[target]bool{}, map[target][]overlay.Key{}
	for i := range infos {
		switch {
		case errs[i] != nil && fault.Retryable(errs[i]):
			return errs[i]
		case errs[i] != nil || !all && !r.outmoded(&infos[i], records[i]):
			continue
		}
		for _, f := range records[i].Files {
			t := target{f.Path, infos[i].IndexID}
			r.only[t] = true
			r.replaces[t] = append(r.replaces[t], infos[i].Key())
		}
	}
	if len(r.only) == 0 {
		return nil
	}
	return r.builds(ctx)
}

// outmoded tells whether a build now would make another artifact of the same files.
func (r *run) outmoded(a *overlay.ArtifactInfo, rec *lineage.Record) bool {
	d, _ := r.report.Version.Index(a.IndexID)
	x, ok := r.index(d)
	if !ok {
		return false
	}
	return rec.Algorithm != x.Kind.Algorithm() || a.FormatVersion < lineage.FormatVersion || !maps.Equal(rec.Parameters, d.Params) && len(rec.Parameters)+len(d.Params) > 0
}
