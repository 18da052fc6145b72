package skomer

import (
	"context"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/scan"
)

// Status compares the overlay with the table as it is now. A table that is not mounted has a status too.
func (t *Table) Status(ctx context.Context) (*Status, error) {
	if err := t.refresh(ctx); err != nil {
		return nil, err
	}
	s, err := t.snapshot(ctx, "")
	if err != nil {
		return nil, err
	}
	st := statusOf(s)
	st.Table, st.Overlay = t.name, t.where
	v, err := t.hurried(ctx, statusWait, t.overlay.Latest)
	switch {
	case fault.Is(err, fault.NotFound):
		t.saw(nil)
		return st, nil
	case err != nil:
		return nil, err
	}
	t.saw(v)
	t.stands(st, s, v)
	if v.Broken() == nil {
		if err := t.outdated(ctx, st, s, v); err != nil {
			return nil, err
		}
	}
	return st, t.fileMaps(ctx, st, s, v, lineage.Options{TableUUID: s.TableUUID, TableLastSequence: s.LastSequence, ActiveSnapshotID: s.ID})
}

// statusRecords is how many lineage records of an index a status reads.
const statusRecords = 1024

// outdated counts the artifacts that a reindex would renew in a version that is not broken.
func (t *Table) outdated(ctx context.Context, st *Status, s *facts.Snapshot, v *overlay.Version) error {
	old, err := maintain.Outmoded(ctx, t.overlayStore, v, s, statusRecords)
	for i := range st.Indexes {
		st.Indexes[i].Outdated = old[st.Indexes[i].ID]
	}
	return err
}

// statusOf is the status of a table that is not mounted.
func statusOf(s *facts.Snapshot) *Status {
	st := &Status{
		TableUUID: s.TableUUID, SnapshotID: s.ID, Files: s.Files.Len(), Indexes: []Index{}, Rejected: map[string]int64{}, Objects: map[string]Tally{}, Warnings: []string{},
	}
	for _, n := range s.Files.Records {
		st.Rows += n
	}
	return st
}

// stands fills in what a version says of the snapshot.
func (t *Table) stands(st *Status, s *facts.Snapshot, v *overlay.Version) {
	st.Mounted, st.OverlayVersion, st.SyncedSnapshot = true, v.Number(), v.Upstream().SnapshotID
	st.LastSync = timeOf(v.Upstream().LastSyncMs)
	st.LagSeconds = lag(t.metadata().Snapshots(), s.ID, st.SyncedSnapshot, st.LastSync, t.client.config.now()).Seconds()
	unusable := v.Broken()
	if unusable == nil {
		unusable = t.same(v.Table())
	}
	if unusable != nil {
		st.Unusable = unusable.Error()
		st.Warnings = append(st.Warnings, withFix("the overlay cannot be used: "+st.Unusable, fault.FixOf(unusable)))
	}
	for _, w := range v.Warnings() {
		if v.Broken() == nil {
			fix := fault.FixOf(w.Reason)
			if fault.Is(w.Reason, fault.Corrupt) || fault.Is(w.Reason, fault.NotFound) {
				fix = "skomer repair TABLE, then skomer sync TABLE"
			}
			st.Warnings = append(st.Warnings, withFix(fault.About(w.Part, w.Reason).Error(), fix))
		}
	}
	for _, d := range v.Indexes() {
		q, _ := v.Quarantined(d.ID)
		st.Indexes = append(st.Indexes, Index{
			ID: d.ID, Expr: exprOf(d), Kind: d.Kind, Columns: d.Names, Total: st.Rows, Problem: unbuildable(s.Schema, d), Paused: q.Reason,
		})
	}
	t.coverage(st, s, v)
}

// unbuildable is why an index can not be built on the table as it is now, or "".
func unbuildable(s *column.Schema, d overlay.Definition) string {
	k, ok := kinds.ByName(d.Kind)
	if !ok || d.KindVersion > k.Version {
		return "its kind is not known to this version of skomer"
	}
	cols, ok := columnsOf(s, d)
	if !ok {
		return "its column was dropped from the table"
	}
	if err := k.Kind.Check(cols, d.Params); err != nil {
		return err.Error()
	}
	return ""
}

// lacks tells whether an index that can be built does not cover a file.
func (s *Status) lacks(covered []bool) bool {
	for i, yes := range covered {
		if !yes && s.Indexes[i].Problem == "" {
			return true
		}
	}
	return false
}

// coverage fills in how much of the snapshot each index covers and what was not believed.
func (t *Table) coverage(st *Status, s *facts.Snapshot, v *overlay.Version) {
	o := lineage.Options{TableUUID: s.TableUUID, TableLastSequence: s.LastSequence, ActiveSnapshotID: s.ID}
	f := &s.Files
	var found []overlay.Placement
	for i, path := range f.Stated {
		covered := make([]bool, len(st.Indexes))
		found = v.AppendCovering(found[:0], path)
		for _, p := range found {
			if st.Indexes[p.Index].Problem != "" {
				continue
			}
			info, ok := v.Artifact(p.At)
			if !ok {
				st.Rejected["unreadable"]++
				continue
			}
			verdict := p.Check(&info, f.Size[i], f.Records[i], "", o)
			if verdict.OK() && scan.Renamed(&info, s) != "" {
				verdict.Reason = lineage.LeafMismatch
			}
			if !verdict.OK() {
				st.Rejected[verdict.Reason.String()]++
				continue
			}
			covered[p.Index] = true
		}
		for k, yes := range covered {
			if yes {
				st.Indexes[k].Covered += f.Records[i]
			}
		}
		if st.lacks(covered) && f.Format[i] == facts.Parquet && !f.Encrypted[i] {
			st.Backlog.Files++
			st.Backlog.Rows += f.Records[i]
			st.Backlog.Bytes += f.Size[i]
			for k, d := range v.Indexes() {
				if !covered[k] && st.Indexes[k].Problem == "" {
					for _, id := range d.FieldIDs {
						if p := s.Schema.ByID(id); p != nil {
							st.Backlog.lacking(d.Kind, p.Leaf().Type, f.Records[i])
						}
					}
				}
			}
		}
	}
	st.Backlog.paced(v.Pace())
	st.Backlog.shared(t.client.config.Workers)
	bundles := map[string]bool{}
	v.Each(func(a overlay.ArtifactInfo) bool {
		bundles[a.Bundle] = true
		st.Bytes += a.Body.Len + a.Root.Len
		st.Indexes[a.Index].Artifacts++
		st.Indexes[a.Index].Bytes += a.Body.Len + a.Root.Len
		if capped(st.Indexes[a.Index].Kind, &a) {
			st.Indexes[a.Index].Capped++
		}
		return true
	})
	st.Bundles = len(bundles)
	for sort, n := range v.Objects() {
		st.Objects[sort] = Tally{Objects: n.Objects, Bytes: n.Bytes}
	}
}

// withFix is a warning and the way out, where there is one.
func withFix(warning, fix string) string {
	if fix == "" {
		return warning
	}
	return warning + "; try: " + fix
}
