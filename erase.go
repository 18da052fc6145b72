package skomer

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index/kinds"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/store/local"
)

// EraseOptions tell what to erase.
type EraseOptions struct {
	// Where picks the rows that were deleted from the table. Every data file that has such a row, deleted or not, is forgotten, and so
	// is what GoneOnly erases.
	Where string
	// GoneOnly erases what was built from data files that no retained snapshot has.
	GoneOnly bool
	// Deadline is how long builds under way are waited for.
	Deadline time.Duration
	// DryRun reports and changes nothing.
	DryRun bool
}

// ErasedObject is an object that held values, or may have, and what became of it.
type ErasedObject = maintain.Forgotten

// Unerased is what an erasure could not end.
type Unerased = maintain.Unfinished

// EraseReport is the outcome of an erasure.
type EraseReport struct {
	Table    string    `json:"table"`
	Overlay  string    `json:"overlay"`
	Where    string    `json:"where,omitempty"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	Deadline time.Time `json:"deadline"`
	// Complete tells that nothing is left in the overlay, and DeadlineMet that this was reached in time.
	Complete    bool `json:"complete"`
	DeadlineMet bool `json:"deadline_met"`
	maintain.EraseReport
	// TableHas is the snapshots through which the table itself still shows rows that match.
	TableHas []TableHolds `json:"table_still_has"`
	// Files is the data files of retained snapshots that hold such rows, deleted or not.
	Files  []string     `json:"data_files"`
	Caches []CacheState `json:"caches"`
	// Declarations is those of indexes that name a key of a map or a path in a JSON text. Somebody typed it, so it is none of what was
	// built from the files, and it stays; where it is a value that has to go, the index is to be dropped before it is erased again.
	Declarations []string `json:"declarations"`
}

// TableHolds is a snapshot that shows rows that match.
type TableHolds struct {
	SnapshotID int64 `json:"snapshot_id"`
	Rows       int64 `json:"rows"`
}

// CacheState is what became of a cache.
type CacheState struct {
	Cache string `json:"cache"`
	State string `json:"state"`
}

// Erase makes the overlay forget values that were deleted from the table: everything that was built from their data files, in all of its
// versions, leaves it at once. Answers stay the same; the files are scanned from then on, until the table rewrites them. It refuses
// while the table's current snapshot shows a row that matches.
func (t *Table) Erase(ctx context.Context, o EraseOptions) (*EraseReport, error) {
	if (o.Where == "") == !o.GoneOnly {
		return nil, fault.New(fault.Invalid, "erase", "needs a filter, or that only files are meant that are gone").WithFix("pass one of --where and --snapshot-gone")
	}
	out := &EraseReport{
		Table: t.name, Overlay: t.where, Where: o.Where, Started: time.Now().UTC(), Deadline: time.Now().Add(o.Deadline).UTC(),
		TableHas: []TableHolds{}, Files: []string{}, Caches: []CacheState{}, Declarations: []string{},
	}
	if err := t.refresh(ctx); err != nil {
		return nil, err
	}
	v, err := t.mounted(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.owns(v.Table()); v.Broken() == nil && err != nil {
		return nil, err
	}
	known := map[maintain.DataFile]bool{}
	if err := t.holders(ctx, known, out); err != nil {
		return nil, err
	}
	vacuum := t.vacuum()
	vacuum.DryRun, vacuum.AllowEmpty, vacuum.Snapshots = o.DryRun, true, t.everySnapshot()
	e := maintain.Erase{Vacuum: vacuum, Known: known, Deadline: o.Deadline, Refresh: t.knowing(known, out)}
	r, err := e.Run(ctx)
	out.EraseReport, out.Finished = *r, time.Now().UTC()
	out.nameIndexes(v)
	out.Complete = err == nil && !o.DryRun && len(r.Left) == 0
	out.DeadlineMet = out.Complete && !out.Finished.After(out.Deadline.Add(time.Minute))
	if !o.DryRun {
		t.forgetCaches(out)
		_, _ = t.cleaned(ctx, &VacuumReport{}, nil)
	}
	return out, err
}

// nameIndexes calls indexes by their declarations, and lists those that may hold values themselves.
func (r *EraseReport) nameIndexes(v *overlay.Version) {
	for i := range r.Objects {
		for k, id := range r.Objects[i].Index {
			if d, ok := v.Index(id); ok {
				r.Objects[i].Index[k] = exprOf(d)
			}
		}
	}
	for _, d := range v.Indexes() {
		if kinds.Typed(d.Params) {
			r.Declarations = append(r.Declarations, exprOf(d))
		}
	}
}

// forgetCaches empties what this process keeps in memory.
func (t *Table) forgetCaches(out *EraseReport) {
	c := t.client
	c.readers.Clear()
	c.runs.Clear()
	c.masks.Clear()
	c.footers.Clear()
	t.maps.Clear()
	t.refused.Clear()
	t.sawAt(nil, time.Time{}) // the version from before holds roots, which are values: the next query looks for the newest
	t.mu.Lock()
	t.views, t.sketchesOf = map[string]*lake.View{}, nil
	t.sketches = plan.Known{}
	t.mu.Unlock()
	const other = "in memory only: it looks for a newer overlay version within its max-staleness, asks nothing that is gone from then on, and forgets the bytes " +
		"as others take their place, or when it ends"
	out.Caches = []CacheState{
		{"bytes of overlay objects in this process", "dropped with the objects"},
		{"overlay versions, readers, file maps, masks, footers and planned snapshots in this process", "emptied"},
		{"decoded manifests in this process", "kept: they are the table's, and go when the process ends"},
		{"other processes", other},
		{"disk", fmt.Sprintf("there are no caches on disk; of temporary folders that killed builds left below %s, %d were removed; other hosts may have some",
			os.TempDir(), local.Abandoned())},
	}
}

// knowing adds the data files that the table got since they were last looked at.
func (t *Table) knowing(known map[maintain.DataFile]bool, out *EraseReport) func(context.Context) error {
	seen := t.metadata()
	return func(ctx context.Context) error {
		if err := t.refresh(ctx); err != nil {
			return err
		}
		now := t.metadata()
		if now == seen {
			return nil
		}
		out.TableHas = []TableHolds{}
		err := t.holders(ctx, known, out)
		if err == nil {
			seen = now
		}
		return err
	}
}

// holders adds the data files of all retained snapshots, and whether they hold rows that match, whatever deletes hide.
func (t *Table) holders(ctx context.Context, known map[maintain.DataFile]bool, out *EraseReport) error {
	now, err := t.snapshot(ctx, "")
	if err != nil {
		return err
	}
	snapshots := append([]func(context.Context) (*facts.Snapshot, error){func(context.Context) (*facts.Snapshot, error) { return now, nil }}, t.everySnapshot()...)
	seen := map[int64]bool{}
	for _, read := range snapshots {
		s, err := read(ctx)
		if err != nil {
			return fault.About("a retained snapshot of the table", err)
		}
		if seen[s.ID] {
			continue
		}
		seen[s.ID] = true
		if out.Where == "" {
			for i := range s.Files.Len() {
				known[maintain.DataFile{Path: s.Files.Stated[i], Size: s.Files.Size[i], Records: s.Files.Records[i]}] = false
			}
			continue
		}
		tree, schema, err := bindErased(out.Where, now, s)
		if err != nil {
			return err
		}
		holds, err := t.holdersIn(ctx, physical(s, schema), tree, known, out)
		if err == nil && holds {
			err = t.stillShown(ctx, s, schema, tree, s.ID == now.ID, out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
