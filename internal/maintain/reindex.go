package maintain

import (
	"context"
	"maps"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
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
	if err := r.renew(ctx, id, all || silent); err != nil || !silent || r.report.Stopped != "" {
		return err
	}
	return r.release(ctx, id, old)
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
