package maintain

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/skomerdb/skomer/internal/bundle"
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/scan"
	"github.com/skomerdb/skomer/internal/store"
)

// Finding is an artifact, or another object that the overlay names, that must not speak, and why.
type Finding struct {
	IndexID string   // "" where it belongs to none
	Kind    string   // of a derived object, or "list" for the lists of a version; "" for an artifact
	Bundle  string   // key of the object that is damaged
	Files   []string // of an artifact's segment
	Reason  string   // one of few words: a lineage.Reason, or unreadable, corrupt, source_corrupt
	Detail  string
	key     overlay.Key // of the artifact
	derived *overlay.Derived
}

// The reasons of findings beside those of the lineage check.
const (
	reasonUnreadable = "unreadable"     // its entry, bundle, root or lineage record cannot be read
	reasonCorrupt    = "corrupt"        // its bytes do not have their checksum
	reasonSource     = "source_corrupt" // the data file does not have the content that was indexed, under the same entity tag
)

// Repaired is the outcome of a repair.
type Repaired struct {
	Found  []Finding
	Report *Report // of the builds; with a dry run nothing was built or withdrawn
	// Unchecked is the data files whose entity tag could not be looked up, and why.
	Unchecked map[string]string
}

// Repair withdraws the artifacts of s that the lineage check or their own checksums reject, and builds exactly these anew. Derived
// objects that do not have the checksums that the version holds go, and the phases make them anew; so do damaged lists of the version. What
// a root or a head vouches for in turn is not read: that is Scrub's. With dry it only tells.
func (y *Syncer) Repair(ctx context.Context, s *facts.Snapshot, dry bool) (*Repaired, error) {
	r, ctx, err := y.begin(ctx, s)
	if err != nil {
		return nil, err
	}
	lists, err := y.Overlay.Verify(ctx, r.report.Version.Number())
	if err != nil {
		return nil, err
	}
	lost := listsDamaged(lists)
	if len(lost) > 0 && !dry {
		if r.report.Version, err = y.Overlay.Recover(ctx); err != nil {
			return nil, err
		}
	}
	f, err := r.diagnose(ctx)
	if err != nil {
		return nil, err
	}
	out := &Repaired{Found: append(lost, f.rejected...), Unchecked: maps.Clone(r.report.Skipped)}
	if dry {
		out.Report = r.end()
		return out, nil
	}
	if err := r.settle(ctx, f); err != nil {
		return nil, err
	}
	if err = r.rebuild(ctx, f.rejected); err == nil && len(out.Found)+len(f.stamps) > 0 {
		err = r.phases(ctx)
	}
	out.Report = r.end()
	return out, err
}

// rebuild builds the indexes of what was found for every file of it, and nothing else.
func (r *run) rebuild(ctx context.Context, found []Finding) error {
	r.only = map[target]bool{}
	for _, x := range found {
		for _, path := range x.Files {
			r.only[target{path, x.IndexID}] = true
		}
	}
	if len(r.only) == 0 {
		return nil
	}
	return r.builds(ctx)
}

// diagnose finds the artifacts of the snapshot's files that must not speak, each once, and the files that got another tag only.
func (r *run) diagnose(ctx context.Context) (out findings, err error) {
	var found []Finding
	bad := map[overlay.Place]bool{}
	reject := func(at overlay.Place, f Finding) {
		if !bad[at] {
			bad[at] = true
			found = append(found, f)
		}
	}
	live := r.check(reject)
	if err := r.readable(ctx, live, reject); err != nil {
		return out, err
	}
	derived, err := r.everyDerived(ctx)
	if err != nil {
		return out, err
	}
	found = append(found, derived...)
	suspects, err := r.suspects(ctx)
	if err != nil {
		return out, err
	}
	for i := range suspects {
		suspects[i].places = slices.DeleteFunc(suspects[i].places, func(p overlay.Placement) bool { return bad[p.At] })
	}
	out.stale = map[staleFile]bool{}
	for batch := range slices.Chunk(suspects, sweepBatch) {
		f, err := r.examine(ctx, batch)
		if err != nil {
			return out, err
		}
		out.stamps = append(out.stamps, f.stamps...)
		maps.Copy(out.stale, f.stale)
		for _, x := range f.rejected {
			if !slices.ContainsFunc(found, func(have Finding) bool { return have.key == x.key }) {
				found = append(found, x)
			}
		}
	}
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Bundle, b.Bundle), cmp.Compare(a.key.Lineage, b.key.Lineage))
	})
	for i := range found {
		if err := r.name(ctx, &found[i]); err != nil {
			return out, err
		}
	}
	out.rejected = found
	return out, nil
}

// check runs the lineage check of every artifact for every file of the snapshot and returns those that passed.
func (r *run) check(reject func(overlay.Place, Finding)) []overlay.ArtifactInfo {
	v, f, o := r.report.Version, &r.snapshot.Files, r.lineage()
	var live []overlay.ArtifactInfo
	var found []overlay.Placement
	seen := map[overlay.Place]bool{}
	for i := range f.Len() {
		found = v.AppendCovering(found[:0], f.Stated[i])
		for k := range found {
			p := &found[k]
			info, ok := v.Artifact(p.At)
			if !ok {
				reject(p.At, Finding{IndexID: p.IndexID, Reason: reasonUnreadable, Detail: "its entry in the overlay makes no sense", key: info.Key()})
				continue
			}
			verdict := p.Check(&info, f.Size[i], f.Records[i], "", o)
			if verdict.OK() {
				verdict = scan.Outdated(&info, r.snapshot)
			}
			if !verdict.OK() {
				reject(p.At, r.finding(info, verdict.Reason.String(), verdict.Message))
			}
			if verdict.OK() && !seen[p.At] {
				seen[p.At] = true
				live = append(live, info)
			}
		}
	}
	return live
}

// readable reads the root, where the overlay does not hold it, and the lineage record of every artifact.
func (r *run) readable(ctx context.Context, live []overlay.ArtifactInfo, reject func(overlay.Place, Finding)) error {
	for wave := range slices.Chunk(live, recordWave) {
		reads := make([]store.Read, len(wave))
		for i := range wave {
			a := &wave[i]
			reads[i] = store.Read{Key: a.Bundle, Spans: []store.Span{
				{Off: a.Lineage.Off, Len: min(a.Lineage.Len, lineage.MaxRecord+1)}, {Off: a.Root.Off, Len: a.Root.Len},
			}}
		}
		results := r.Store.Fetch(ctx, reads)
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, res := range results {
			err := res.Err
			if err == nil {
				_, err = bundle.ParseLineage(wave[i].Bundle, wave[i].Lineage, res.Data[0])
			}
			if err == nil {
				err = bytescan.CheckCRC("root in "+wave[i].Bundle, res.Data[1], wave[i].Root.CRC)
			}
			if err == nil {
				continue
			}
			reason, passing := damage(ctx, err)
			if passing != nil {
				return passing
			}
			reject(wave[i].At, r.finding(wave[i], reason, err.Error()))
		}
	}
	return nil
}

// everyDerived verifies what the version names of derived objects.
func (r *run) everyDerived(ctx context.Context) (found []Finding, err error) {
	all := r.report.Version.EveryDerived()
	for i := range all {
		f, err := r.derived(ctx, &all[i], false)
		if err != nil {
			return nil, err
		}
		if f != nil {
			found = append(found, *f)
		}
	}
	return found, nil
}

// finding is about one artifact of the newest version.
func (r *run) finding(a overlay.ArtifactInfo, reason, detail string) Finding {
	return Finding{IndexID: a.IndexID, Bundle: a.Bundle, Reason: reason, Detail: detail, key: a.Key()}
}

// name fills in the files of the artifact. Where the overlay does not tell them any more, it has none, and a sync finds what is missing.
func (r *run) name(ctx context.Context, f *Finding) error {
	v := r.report.Version
	at, ok := v.Lookup(f.key)
	if !ok {
		return nil
	}
	paths, _, err := v.Paths(ctx, at)
	if err != nil && (fault.Retryable(err) || ctx.Err() != nil) {
		return err
	}
	f.Files = paths
	return nil
}
