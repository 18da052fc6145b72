package maintain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/overlay"
)

// Shortcut is what a sync needs that looks at nothing but the files that came since the last one. Where an earlier sync left a record that every
// file of a snapshot was covered, that holds yet, and no file left the table since, that is all that can have changed: the sync then reads the
// manifests that are new, and of the overlay's lists of artifacts those that it writes anew. What it does is what Sync would have done.
type Shortcut struct {
	Version *overlay.Version // lean
	Past    int64            // the snapshot that the record is about
	// Since is what came after that; the caller finds out.
	Since *lake.Since

	claimed uint64
	notes   notes
}

// whole is the error of a shortcut that leads nowhere: everything has to be looked at.
type whole struct{ reason string }

const lostPart = "a part of the overlay cannot be read"

func (w *whole) Error() string { return "every file has to be looked at: " + w.reason }

// Whole tells whether the error of SyncNew means that Sync has to do the work, and why.
func Whole(err error) (reason string, ok bool) {
	var w *whole
	if errors.As(err, &w) {
		return w.reason, true
	}
	return "", false
}

// FindShortcut tells whether the overlay's record allows a shortcut to a snapshot, whose files are not needed for that, or why not.
func FindShortcut(v *overlay.Version, s *facts.Snapshot, now time.Time) (x *Shortcut, why string) {
	c, ok := v.Complete()
	x = &Shortcut{Version: v, Past: c.SnapshotID, claimed: c.Version}
	switch {
	case v.Broken() != nil || len(v.Warnings()) > 0:
		return nil, lostPart
	case !ok:
		return nil, "no sync since the overlay changed found every file covered"
	case json.Unmarshal(c.Notes, &x.notes) != nil || x.notes.Rule != recordRule || x.notes.Basis != basis(v, s):
		return nil, "the indexes, the schema or this program are others than those of the last sync"
	}
	if age := now.Sub(time.UnixMilli(x.notes.LookedMs)); age < 0 || age > lookEvery {
		return nil, fmt.Sprintf("that was done last at %s", time.UnixMilli(x.notes.LookedMs).UTC().Format(time.RFC3339))
	}
	return x, ""
}

// Reason is why what came since does not allow the shortcut, or "".
func (x *Shortcut) Reason() string {
	switch {
	case x.Since.Deletes:
		return "the table has delete files"
	case x.Since.Left:
		return "files left the table"
	}
	return ""
}

// short is a sync that takes a shortcut.
type short struct {
	*Shortcut
	spoilt string // why the shortcut led nowhere after all
	off    bool   // none of the files that came is on the roll
	live   int    // artifacts in the bundles that Tiers sums up, and in those that are full
}

// SyncNew is Sync for the files that came. An error that Whole knows means that everything which was published stands, and Sync has to do the rest.
func (y *Syncer) SyncNew(ctx context.Context, x *Shortcut) (*Report, error) {
	r, ctx := y.newRun(ctx, x.Since.Snapshot)
	r.short = &short{Shortcut: x}
	v, err := r.reach(ctx, x.Version)
	if err != nil {
		return nil, err
	}
	r.began, r.report.Version = v.Number(), v
	if err := r.refused.load(ctx, y.Store, y.Overlay, v); err != nil {
		return nil, err
	}
	err = r.syncNew(ctx)
	return r.end(), err
}

func (r *run) syncNew(ctx context.Context) error {
	if err := r.recount(ctx); err != nil {
		return err
	}
	var found []overlay.Placement
	for _, path := range r.paths() {
		if found = r.report.Version.AppendCovering(found[:0], path); len(found) > 0 {
			return &whole{"files that came have artifacts already"}
		}
	}
	if err := r.builds(ctx); err != nil || r.report.Stopped != "" {
		return err
	}
	if err := r.short.trouble(&r.report); err != nil {
		return err
	}
	if len(r.missing(r.report.Version)) > 0 {
		return &whole{"files that came could not all be indexed"}
	}
	if err := r.phases(ctx); err != nil {
		return err
	}
	return r.finish(ctx)
}

// trouble is the error of a shortcut on which something happened that it does not foresee.
func (s *short) trouble(r *Report) error {
	switch {
	case s.spoilt != "":
		return &whole{s.spoilt}
	case len(r.Skipped) > 0:
		return &whole{"files cannot be indexed"}
	case len(r.Version.Warnings()) > 0:
		return &whole{lostPart}
	}
	return nil
}

// paths is the stated paths of the files that came.
func (r *run) paths() []string {
	var out []string
	for _, path := range r.snapshot.Files.Stated {
		if !r.short.Since.Old[path] {
			out = append(out, path)
		}
	}
	return out
}

// latest is the overlay's newest version, as far as the run looks at it.
func (r *run) latest(ctx context.Context) (*overlay.Version, error) {
	if r.short == nil {
		return r.Overlay.Latest(ctx)
	}
	v, err := r.Overlay.Lean(ctx)
	if err != nil {
		return nil, err
	}
	return r.reach(ctx, v)
}

// reach is the version with the lists that have files which came.
func (r *run) reach(ctx context.Context, v *overlay.Version) (*overlay.Version, error) {
	v, err := r.look(ctx, v)
	if lost(err) || err == nil && len(v.Warnings()) > 0 {
		err = &whole{lostPart}
	}
	return v, err
}

// look is reach. Where the files are not on the roll, the lists that are need not be looked into.
func (r *run) look(ctx context.Context, v *overlay.Version) (*overlay.Version, error) {
	paths, rolls := r.paths(), v.Derived(RollKind)
	if len(rolls) == 0 || rollName(rolls[0].Len, rolls[0].CRC) != r.short.notes.Roll {
		return v.Reach(ctx, paths, nil)
	}
	if !r.short.off {
		off, err := r.Overlay.OffRoll(ctx, &rolls[0], paths)
		if err != nil {
			return nil, err
		}
		if !off {
			return v.Reach(ctx, paths, nil)
		}
		r.short.off = true
	}
	return v.Reach(ctx, paths, func(c overlay.Chunk) bool { return slices.Contains(r.short.notes.Rolled, c.Name) })
}

// recount sums up the bundles anew where lists of artifacts are others than the record knows: another process wrote them.
func (r *run) recount(ctx context.Context) error {
	n := &r.short.notes
	v := r.report.Version
	if !slices.ContainsFunc(v.Chunks(), func(c overlay.Chunk) bool { return !n.knows(c) }) {
		r.short.live = live(v)
		return nil
	}
	v, parcels, err := r.short.parcels(ctx, v)
	if err != nil {
		return err
	}
	r.short.count(v, parcels)
	r.report.Version = v
	return nil
}

// count sums up the bundles of a version of which the lists were read that may have some that are not full.
func (s *short) count(v *overlay.Version, parcels []parcel) {
	s.notes.Tiers, s.live = usualTiers.sum(parcels), live(v)
	s.notes.shelve(v, parcels)
}

// live is how many artifacts the lists of a version have.
func live(v *overlay.Version) (n int) {
	for _, c := range v.Chunks() {
		n += c.Artifacts - c.Dead
	}
	return n
}

func (n *notes) knows(c overlay.Chunk) bool {
	if dead, ok := n.Closed[c.Name]; ok {
		return dead == c.Dead
	}
	dead, ok := n.Open[c.Name]
	return ok && dead == c.Dead
}

// closed tells of a list that all bundles in it are full.
func (n *notes) closed(c overlay.Chunk) bool {
	dead, ok := n.Closed[c.Name]
	return ok && dead == c.Dead
}

// parcels is the bundles of a version that may not be full.
func (s *short) parcels(ctx context.Context, v *overlay.Version) (*overlay.Version, []parcel, error) {
	v, err := v.ReadChunks(ctx, s.notes.closed)
	if err != nil {
		return nil, nil, err
	}
	if len(v.Warnings()) > 0 {
		return nil, nil, &whole{lostPart}
	}
	parcels, _ := parcelsOf(v, usualTiers)
	return v, parcels, nil
}

// built notes the bundle of a build.
func (s *short) built(b *overlay.Build, receipt *overlay.Receipt) {
	if len(receipt.Discarded) > 0 || len(receipt.Unfit) > 0 {
		s.spoilt = "a part of what was built was discarded"
	}
	if len(b.Artifacts) == 0 {
		return
	}
	weights, most := map[string]int64{}, int64(0)
	for i := range b.Artifacts {
		a := &b.Artifacts[i]
		rows := int64(0)
		for _, f := range a.Files {
			rows += f.Records
		}
		weights[a.IndexID] += max(rows, int64(len(a.Files))*usualTiers.fileRows)
		most = max(most, weights[a.IndexID])
	}
	usualTiers.add(&s.notes.Tiers, most)
	s.live += len(b.Artifacts)
}

// consolidate merges the bundles that are not full, where they fill a tier.
func (s *short) consolidate(ctx context.Context, c Consolidator, state *State) error {
	if !usualTiers.due(s.notes.Tiers) {
		return nil
	}
	if s.notes.Gone {
		return &whole{"bundles about files that left the table are to be merged"}
	}
	c.short, c.Snapshots = s, nil // every file of theirs is in the table
	report, err := c.Run(ctx)
	if report.Version == nil {
		return err
	}
	state.Version = report.Version
	state.Report.BytesWritten += report.BytesWritten
	if err != nil {
		return err
	}
	v, parcels, err := s.parcels(ctx, report.Version)
	if err != nil {
		return err
	}
	s.count(v, parcels)
	return nil
}

// record renews the record for the snapshot that was reached now. It claims no more of what was there before than the one before did. Where another
// process published bundles meanwhile, or took some out, the next sync sums them up: it is told of no list that may have such a bundle.
func (s *short) record(v *overlay.Version, to *facts.Snapshot) (overlay.Complete, error) {
	n := s.notes
	closed := n.Closed
	n.Closed, n.Open = map[string]int{}, map[string]int{}
	alone := live(v) == s.live
	for _, c := range v.Chunks() {
		if dead, ok := closed[c.Name]; ok && dead == c.Dead {
			n.Closed[c.Name] = c.Dead
		} else if alone {
			n.Open[c.Name] = c.Dead
		}
	}
	return n.claim(to.ID, s.claimed)
}
