// Package maintain answers: what must be done so that an overlay serves its table as it is now?
//
// Sync compares a snapshot with an overlay version, builds what is missing in units and publishes each unit as it is
// finished, so that a kill loses one unit and the next sync goes on from there. Incomplete work is never published. A sweep
// finds data files that were overwritten, repair what the lineage check or the artifacts' own checksums reject, scrub what
// rotted, reindex what an older format or analyzer made. Several processes may do all of it at once: declarations keep them from
// doing the same work, and the commit decides.
package maintain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/wave"
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
	Snapshot     *facts.Snapshot // that the overlay was brought to
	Files        int             // data files that gained an artifact
	Artifacts    int
	Bundles      int
	Carried      int // artifacts that were carried over a rewrite instead of being built
	BytesRead    int64
	BytesWritten int64
	Cost         float64 // in US dollars, by Limits.Prices
	// Skipped is the data files that cannot be indexed, Declined the indexes of which an artifact was not worth keeping.
	Skipped, Declined map[string]string
	Swept             Swept
	Released          []string // indexes that were in quarantine and speak again
	Stopped           string   // why the sync ended before everything was built; "" if it did not
}

// Limits bound a sync. The zero value sets none.
type Limits struct {
	MaxCost float64 // US dollars: a unit that would exceed it is not begun
	Prices  Prices  // zero: S3
	// Until ends the sync when every index covers so many percent of the rows; 0: everything is built.
	Until float64
}

// Syncer brings an overlay to a snapshot. Its fields are set once.
type Syncer struct {
	Overlay  *overlay.Overlay
	Store    store.Store // the overlay's
	Build    *build.Builder
	Workers  int // units built side by side; 0: one
	Progress func(Progress)
	Limits   Limits
	// Sweep compares the entity tags of all indexed files with the present ones before anything is built.
	Sweep bool
	// Phases run after the builds, in this order.
	Phases []Phase
	// Runs keeps what was read of file maps; nil: they are read anew.
	Runs *wave.Runs
	// Refresh reads the table anew, for builds that it overtook; nil: the snapshot is final.
	Refresh func(context.Context) (*facts.Snapshot, error)
	// Past reads an older snapshot, to find out what was rewritten since; nil: everything is built from the data.
	Past func(ctx context.Context, id int64) (*facts.Snapshot, error)
	// Replaces tells of a snapshot whether it only replaced files by others with the same rows; nil: none is known to.
	Replaces func(id int64) bool
	// Refused keeps what was not worth keeping between syncs; nil: it is read anew.
	Refused *Refused
	// Clock tells the time of records; nil: the system's.
	Clock func() time.Time
	// Log is told of every publication (info), and of declarations and units built (debug); nil: nobody is.
	Log *slog.Logger
	// Before is what a shortcut did that led nowhere: the report goes on from there.
	Before *Report

	largeRows int64 // from which on a data file is large; 0: unitRows
}

// Sync builds every declared index for every data file of s that lacks it.
func (y *Syncer) Sync(ctx context.Context, s *facts.Snapshot) (*Report, error) {
	r, ctx, err := y.begin(ctx, s)
	if err != nil {
		return nil, err
	}
	err = r.sync(ctx)
	return r.end(), err
}

// newRun makes a run. What is done under the returned context is counted.
func (y *Syncer) newRun(ctx context.Context, s *facts.Snapshot) (*run, context.Context) {
	r := &run{Syncer: y, snapshot: s, start: time.Now(), tried: map[target]bool{}, counted: map[string]bool{}, refused: y.Refused}
	if r.refused == nil {
		r.refused = &Refused{}
	}
	r.budget.limit, r.budget.prices = y.Limits.MaxCost, y.Limits.Prices
	if r.budget.prices == (Prices{}) {
		r.budget.prices = S3
	}
	r.report = Report{Skipped: map[string]string{}, Declined: map[string]string{}}
	if b := y.Before; b != nil {
		r.report.Files, r.report.Artifacts, r.report.Bundles, r.report.Carried = b.Files, b.Artifacts, b.Bundles, b.Carried
		r.report.BytesRead, r.report.BytesWritten = b.BytesRead, b.BytesWritten
		maps.Copy(r.report.Declined, b.Declined)
	}
	return r, store.WithCounter(ctx, &r.budget.used)
}

// begin prepares a run on the overlay's newest version.
func (y *Syncer) begin(ctx context.Context, s *facts.Snapshot) (*run, context.Context, error) {
	r, ctx := y.newRun(ctx, s)
	v, err := y.Overlay.Latest(ctx)
	if err != nil {
		return nil, ctx, err
	}
	if err := v.Broken(); err != nil {
		return nil, ctx, fmt.Errorf("%s: %w", y.Overlay.Prefix(), err)
	}
	r.began, r.report.Version = v.Number(), v
	return r, ctx, r.refused.load(ctx, y.Store, y.Overlay, v)
}

// run is one sync.
type run struct {
	*Syncer
	snapshot *facts.Snapshot
	base     *overlay.Version // that the units at work were planned on
	began    uint64           // the version that the run found
	start    time.Time
	budget   budget
	refused  *Refused
	rewrite  *rewrite                 // since the last sync; nil: nothing can be carried over
	only     map[target]bool          // what is to be built; nil: everything that is missing
	short    *short                   // nil: every file is looked at
	maps     mapped                   // what the phase of file maps found
	replaces map[target][]overlay.Key // artifacts whose place the new ones take, beside those that moved columns void

	mu       sync.Mutex
	report   Report
	progress Progress
	coverage coverage
	tried    map[target]bool
	counted  map[string]bool // files that the progress counts as done
	busy     int             // files of this round that others are building
	moved    *facts.Snapshot // that the table was found at, once it overtook the sync
}

func (r *run) sync(ctx context.Context) error {
	if r.Sweep {
		if err := r.sweep(ctx); err != nil {
			return err
		}
	}
	if err := r.builds(ctx); err != nil || r.report.Stopped != "" {
		return err
	}
	if err := r.phases(ctx); err != nil {
		return err
	}
	return r.finish(ctx)
}

// end closes the report.
func (r *run) end() *Report {
	r.report.Snapshot, r.report.Cost = r.snapshot, r.budget.spent()
	if r.Before != nil {
		r.report.Cost += r.Before.Cost
	}
	return &r.report
}

const (
	// rounds bounds how often a sync starts over because its table moved on.
	rounds = 16
	// busyWait is how long a sync waits at first for what others are building.
	busyWait, busyWaitMost = 100 * time.Millisecond, 5 * time.Second
)

// builds builds and publishes what is missing until nothing is left: files whose columns are found in another way than in the rest
// of their unit come in a later round, and so does what others were building and did not finish, and what the table got meanwhile.
func (r *run) builds(ctx context.Context) error {
	wait := busyWait
	for moves := 0; ; {
		if r.rewrite == nil && len(r.tried) == 0 && r.short == nil {
			if err := r.rewritten(ctx); err != nil {
				return err
			}
		}
		r.base = r.report.Version
		units := r.units(r.missing(r.base))
		r.count(units)
		before := len(r.tried)
		if err := r.all(ctx, units); err != nil {
			return err
		}
		switch {
		case r.moved != nil && r.short != nil:
			return &whole{"the table moved on meanwhile"}
		case r.moved != nil && moves < rounds:
			moves++
			r.snapshot, r.moved = r.moved, nil
			clear(r.report.Skipped)
		case len(units) == 0 || r.report.Stopped != "" || r.busy == 0 && r.left(units) == 0:
			return nil
		case len(r.tried) > before:
			wait = busyWait
		default:
			if !pause(ctx, wait) {
				return context.Cause(ctx)
			}
			wait = min(2*wait, busyWaitMost)
		}
		v, err := r.latest(ctx)
		if err != nil {
			return err
		}
		r.report.Version = v
	}
}

// left is how many files of units were not tried.
func (r *run) left(units []unit) (n int) {
	for _, u := range units {
		for _, w := range u.files {
			if !r.tried[target{r.snapshot.Files.Stated[w.ordinal], u.missing[0].ID}] {
				n++
			}
		}
	}
	return n
}

// all builds and publishes units side by side. One that fails does not keep the others from being published.
func (r *run) all(ctx context.Context, units []unit) error {
	queue := make(chan unit)
	go func() {
		defer close(queue)
		for _, u := range units {
			queue <- u
		}
	}()
	var mu sync.Mutex
	var errs []error
	var workers sync.WaitGroup
	for range max(r.Workers, 1) {
		workers.Go(func() {
			for u := range queue {
				err := ctx.Err()
				if err == nil && !r.enough(u) {
					err = r.unit(ctx, u)
				}
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// enough tells that the limits leave no room for a unit.
func (r *run) enough(u unit) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.report.Stopped == "" && r.Limits.Until > 0 {
		if least := r.coverage.least(u.missing); least >= r.Limits.Until {
			r.report.Stopped = fmt.Sprintf("%.1f %% of the rows are covered", least)
		}
	}
	return r.report.Stopped != ""
}

// unit declares, builds, uploads and commits one unit, then withdraws the declaration.
func (r *run) unit(ctx context.Context, u unit) (err error) {
	id := uuid.NewString()
	size, estimate := r.estimate(u)
	if refusal := r.budget.reserve(id, estimate); refusal != "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.report.Stopped = refusal
		return nil
	}
	began := r.now()
	var read, wrote int64
	defer func() { r.budget.settle(id, size, read, wrote) }()
	in := r.prepare(id, &u)
	c, taken, err := declare(ctx, r.Overlay, r.declaration(id, in, u))
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.end(ctx))
		logTo(r.Log).DebugContext(ctx, sayWithdrawn, "build", id)
	}()
	err = r.yield(ctx, &in, u, taken)
	r.tellDeclared(ctx, c.declared, len(in.Files))
	if err != nil || len(in.Files) == 0 {
		return err
	}
	r.carry(&in)
	in.Enough = func() bool { return r.now().Sub(began) >= unitTime }
	res, err := r.Build.Build(ctx, in)
	if err != nil {
		return err
	}
	for _, f := range res.Later {
		size -= f.Size
	}
	if res.Path != "" {
		defer os.Remove(res.Path)
	}
	read, wrote = res.BytesRead, res.Size
	r.tellBuilt(ctx, res, id, r.now().Sub(began))
	res.Files = r.firsts(in, res)
	if err := r.publish(ctx, res, began); err != nil {
		return err
	}
	return r.book(ctx, u, in, res)
}

// estimate is the size of a unit's files and the usage that building it will take.
func (r *run) estimate(u unit) (size int64, usage store.Usage) {
	columns := map[int]bool{}
	for _, d := range u.missing {
		for _, id := range d.FieldIDs {
			columns[id] = true
		}
	}
	for _, w := range u.files {
		size += r.snapshot.Files.Size[w.ordinal]
	}
	share := float64(len(columns)) / float64(max(leaves(r.snapshot.Schema), 1))
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	return size, r.budget.estimate(u, size, min(share, 1), len(columns))
}

// prepare is the build of a unit.
func (r *run) prepare(id string, u *unit) build.Unit {
	in := build.Unit{ID: id, Snapshot: r.snapshot, Bundle: r.Overlay.DataKey(id + ".puffin")}
	for _, d := range u.missing {
		x, _ := r.index(d)
		in.Indexes = append(in.Indexes, x)
	}
	in.Maps = r.feeds(u.missing)
	f := &r.snapshot.Files
	for _, w := range u.files {
		i := w.ordinal
		in.Files = append(in.Files, build.File{Ordinal: i, Path: f.Path[i], Stated: f.Stated[i], Size: f.Size[i], Records: f.Records[i]})
	}
	return in
}

func (r *run) declaration(id string, in build.Unit, u unit) overlay.InFlight {
	out := overlay.InFlight{BuildID: id, Bundle: in.Bundle, StartedMs: time.Now().UnixMilli(), Writer: writer()}
	for _, d := range u.missing {
		out.Indexes = append(out.Indexes, d.ID)
	}
	for _, f := range in.Files {
		out.Files = append(out.Files, fileHash(f.Stated))
	}
	return out
}

// yield leaves out the files that somebody else is building an index of, or has built since the unit was planned. Where values were
// erased since then, it leaves out all: they are planned anew, on the table as it is now.
func (r *run) yield(ctx context.Context, in *build.Unit, u unit, taken map[hashedTarget]bool) error {
	v, err := r.latest(ctx)
	if err != nil {
		return err
	}
	if erasedSince(v, r.base) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.busy += len(in.Files)
		in.Files = nil
		return r.overtaken(ctx)
	}
	kept := in.Files[:0]
	var found []overlay.Placement
	for _, f := range in.Files {
		mine := true
		found = v.AppendCovering(found[:0], f.Stated)
		for _, d := range u.missing {
			n := slices.IndexFunc(v.Indexes(), func(x overlay.Definition) bool { return x.ID == d.ID })
			done := v != r.base && r.covered(v, f.Ordinal, n, found) && !r.replaced(v, n, found)
			mine = mine && !done && !taken[hashedTarget{fileHash(f.Stated), d.ID}]
		}
		if mine {
			kept = append(kept, f)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy += len(in.Files) - len(kept)
	in.Files = kept
	return nil
}

// book enters what became of a unit into the report.
func (r *run) book(ctx context.Context, u unit, in build.Unit, res *build.Result) error {
	later := map[string]bool{}
	for _, f := range res.Later {
		later[f.Stated] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range in.Files {
		if later[f.Stated] {
			continue
		}
		for _, d := range u.missing {
			r.tried[target{f.Stated, d.ID}] = true
		}
		if why, skipped := res.Skipped[f.Path]; skipped {
			r.report.Skipped[f.Path] = why
			if !r.counted[f.Stated] {
				r.counted[f.Stated] = true
				r.progress.FilesDone++
			}
			r.progress.RowsDone += f.Records
			continue
		}
		for _, d := range u.missing {
			r.coverage.add(d.ID, f.Records)
		}
	}
	for _, n := range res.NotCarried {
		for _, f := range n.Files {
			delete(r.tried, target{f.Path, n.IndexID})
			r.rewrite.failed[target{f.Path, n.IndexID}] = true
			r.busy++
		}
	}
	for index, why := range res.Declined {
		r.report.Declined[index] = why
	}
	r.report.BytesRead += res.BytesRead
	r.progress.FilesDone += res.Files
	r.progress.RowsDone += res.Rows
	r.tell()
	if len(res.Skipped) > 0 {
		return r.overtaken(ctx)
	}
	return nil
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

func writer() string { return fmt.Sprintf("%s, process %d", process.host, process.pid) }
