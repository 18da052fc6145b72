// Package maintain answers: what must be done so that an overlay serves its table as it is now?
//
// Sync compares a snapshot with an overlay version, builds what is missing in units and publishes each unit as it is
// finished, so that a kill loses one unit and the next sync goes on from there. Incomplete work is never published.
package maintain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/scan"
	"github.com/skomerdb/skomer/internal/store"
)

// Progress is how far a sync is.
type Progress struct {
	FilesDone, FilesTotal int
	RowsDone, RowsTotal   int64
	Elapsed, Left         time.Duration // Left is negative until it can be estimated
}

// Report is what a sync did.
type Report struct {
	Version      *overlay.Version
	Files        int // data files that gained an artifact
	Artifacts    int
	Bundles      int
	BytesRead    int64
	BytesWritten int64
	// Skipped is the data files that cannot be indexed, Declined the indexes of which an artifact was not worth keeping.
	Skipped, Declined map[string]string
}

// Syncer brings an overlay to a snapshot. Its fields are set once.
type Syncer struct {
	Overlay  *overlay.Overlay
	Store    store.Store // the overlay's
	Build    *build.Builder
	Workers  int // units built side by side; 0: one
	Progress func(Progress)
	// Phases run after the builds, in this order.
	Phases []Phase
}

// Sync builds every declared index for every data file of s that lacks it.
func (y *Syncer) Sync(ctx context.Context, s *facts.Snapshot) (*Report, error) {
	v, err := y.Overlay.Latest(ctx)
	if err != nil {
		return nil, err
	}
	if err := v.Broken(); err != nil {
		return nil, fault.About(y.Overlay.Prefix(), err)
	}
	r := &run{Syncer: y, snapshot: s, base: v, start: time.Now(), report: Report{
		Version: v, Skipped: map[string]string{}, Declined: map[string]string{},
	}}
	units := cut(r.missing())
	for _, u := range units {
		r.progress.FilesTotal += len(u.files)
		r.progress.RowsTotal += u.rows
	}
	r.tell()
	for len(units) > 0 {
		r.later = nil
		if err := r.all(ctx, units); err != nil {
			return &r.report, err
		}
		units = cut(r.later)
	}
	if err := r.phases(ctx); err != nil {
		return &r.report, err
	}
	return &r.report, r.finish(ctx)
}

// run is one sync.
type run struct {
	*Syncer
	snapshot *facts.Snapshot
	base     *overlay.Version
	start    time.Time

	mu       sync.Mutex
	report   Report
	progress Progress
	later    []work
}

// missing lists the data files with the indexes that do not cover them.
func (r *run) missing() []work {
	f := &r.snapshot.Files
	var out []work
	var found []overlay.Placement
	seen := map[string]bool{}
	for i := range f.Len() {
		if seen[f.Stated[i]] {
			continue
		}
		seen[f.Stated[i]] = true
		switch {
		case f.Format[i] != facts.Parquet:
			r.report.Skipped[f.Path[i]] = "not a Parquet file"
			continue
		case f.Encrypted[i]:
			r.report.Skipped[f.Path[i]] = "encrypted"
			continue
		}
		w := work{ordinal: i, path: f.Path[i], rows: f.Records[i]}
		found = r.base.AppendFind(found[:0], f.Stated[i])
		for n, d := range r.base.Indexes() {
			if r.usable(d) && !r.covered(i, n, found) {
				w.missing = append(w.missing, d)
			}
		}
		if len(w.missing) > 0 {
			out = append(out, w)
		}
	}
	return out
}

// usable tells whether this build can make the index on the table as it is.
func (r *run) usable(d overlay.Definition) bool {
	_, ok := r.index(d)
	return ok
}

func (r *run) index(d overlay.Definition) (build.Index, bool) {
	k, ok := kinds.ByName(d.Kind)
	if !ok || d.KindVersion > k.Version {
		return build.Index{}, false
	}
	x := build.Index{Definition: d, Kind: k}
	for _, id := range d.FieldIDs {
		path := r.snapshot.Schema.ByID(id)
		if path == nil {
			return x, false
		}
		x.Columns = append(x.Columns, append(column.Path(nil), path...))
	}
	return x, k.Kind.Check(x.Columns, d.Params) == nil
}

// covered tells whether a placement of index n may speak for file i.
func (r *run) covered(i, n int, found []overlay.Placement) bool {
	f := &r.snapshot.Files
	for _, p := range found {
		if p.Index != n {
			continue
		}
		info, ok := r.base.Artifact(p.At)
		if !ok {
			continue
		}
		if p.Check(&info, f.Size[i], f.Records[i], "", r.lineage()).OK() && scan.Renamed(&info, r.snapshot) == "" {
			return true
		}
	}
	return false
}

func (r *run) lineage() lineage.Options {
	return lineage.Options{
		TableUUID: r.snapshot.TableUUID, TableLastSequence: r.snapshot.LastSequence, ActiveSnapshotID: r.snapshot.ID,
	}
}

// all builds and publishes units side by side. One that fails does not keep the others from being published.
func (r *run) all(ctx context.Context, units []unit) error {
	var g errgroup.Group
	g.SetLimit(max(r.Workers, 1))
	errs := make([]error, len(units))
	for i, u := range units {
		g.Go(func() error {
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = r.unit(ctx, u)
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	return errors.Join(errs...)
}

// unit declares, builds, uploads and commits one unit, then withdraws the declaration.
func (r *run) unit(ctx context.Context, u unit) (err error) {
	id := uuid.NewString()
	in := build.Unit{ID: id, Snapshot: r.snapshot, Bundle: r.Overlay.DataKey(id + ".puffin")}
	declared := overlay.InFlight{BuildID: id, Bundle: in.Bundle, StartedMs: time.Now().UnixMilli(), Writer: writer()}
	for _, d := range u.missing {
		x, _ := r.index(d)
		in.Indexes = append(in.Indexes, x)
		declared.Indexes = append(declared.Indexes, d.ID)
	}
	f := &r.snapshot.Files
	byPath := map[string]work{}
	for _, w := range u.files {
		i := w.ordinal
		in.Files = append(in.Files, build.File{Ordinal: i, Path: f.Path[i], Stated: f.Stated[i], Size: f.Size[i], Records: f.Records[i]})
		byPath[w.path] = w
	}
	if _, err := r.Overlay.Declare(ctx, declared); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Overlay.Withdraw(context.WithoutCancel(ctx), id)) }()
	res, err := r.Build.Build(ctx, in)
	if err != nil {
		return err
	}
	if res.Path != "" {
		defer os.Remove(res.Path)
	}
	if err := r.publish(ctx, res); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, file := range res.Later {
		r.later = append(r.later, byPath[file.Path])
	}
	for path, why := range res.Skipped {
		r.report.Skipped[path] = why
		r.progress.FilesDone++
		r.progress.RowsDone += byPath[path].rows
	}
	for index, why := range res.Declined {
		r.report.Declined[index] = why
	}
	r.report.BytesRead += res.BytesRead
	r.progress.FilesDone += res.Files
	r.progress.RowsDone += res.Rows
	r.tell()
	return nil
}

// publish uploads the bundle and commits its artifacts; nothing where no file was left.
func (r *run) publish(ctx context.Context, res *build.Result) error {
	if res.Path == "" || len(res.Build.Artifacts) == 0 {
		return nil
	}
	file, err := os.Open(res.Path)
	if err != nil {
		return fault.Wrap(fault.NotFound, res.Path, err)
	}
	defer file.Close()
	if _, err := r.Store.PutNew(ctx, res.Build.Bundle, file); err != nil {
		return fault.About(res.Build.Bundle, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replace(&res.Build)
	receipt, err := r.Overlay.Commit(ctx, r.base, overlay.Publish(nil, res.Build))
	if err != nil {
		return err
	}
	r.report.Version = receipt.Version
	r.report.Bundles++
	r.report.Artifacts += len(res.Build.Artifacts) - len(receipt.Discarded)
	r.report.Files += res.Files
	r.report.BytesWritten += res.Size
	return nil
}

// replace names the artifacts of the newest version that the build's take the place of: those whose columns are found elsewhere
// now. One that another unit of this sync replaced is gone already.
func (r *run) replace(b *overlay.Build) {
	v := r.report.Version
	var found []overlay.Placement
	for i := range b.Artifacts {
		a := &b.Artifacts[i]
		seen := map[overlay.Key]bool{}
		for _, f := range a.Files {
			found = v.AppendFind(found[:0], f.Path)
			for _, p := range found {
				info, ok := v.Artifact(p.At)
				if !ok || p.IndexID != a.IndexID || scan.Renamed(&info, r.snapshot) == "" || seen[info.Key()] {
					continue
				}
				seen[info.Key()] = true
				a.Replaces = append(a.Replaces, info.Key())
			}
		}
	}
}

// finish records the snapshot that the overlay was brought to.
func (r *run) finish(ctx context.Context) error {
	receipt, err := r.Overlay.Commit(ctx, nil, overlay.Synced(Upstream(r.snapshot, time.Now())))
	if err != nil {
		return err
	}
	r.report.Version = receipt.Version
	return nil
}

// Upstream is what the overlay records of the table's state; a zero synced means that it was not synced yet.
func Upstream(s *facts.Snapshot, synced time.Time) overlay.Upstream {
	u := overlay.Upstream{
		MetadataLocation: s.MetadataPath, SnapshotID: s.ID, SequenceNumber: s.Sequence, SchemaID: s.Schema.ID, LastUpdatedMs: s.TimestampMs,
	}
	if !synced.IsZero() {
		u.LastSyncMs = synced.UnixMilli()
	}
	return u
}

// tell reports progress; the caller holds mu or is alone.
func (r *run) tell() {
	if r.Progress == nil {
		return
	}
	p := r.progress
	p.Elapsed, p.Left = time.Since(r.start), -1
	if p.RowsDone > 0 && p.RowsTotal > 0 {
		p.Left = time.Duration(float64(p.Elapsed) * float64(p.RowsTotal-p.RowsDone) / float64(p.RowsDone))
	}
	r.Progress(p)
}

func writer() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}
