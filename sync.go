package skomer

import (
	"context"
	"strconv"
	"time"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/store/local"
)

// SyncOptions bounds a sync. The zero value builds everything that is missing.
type SyncOptions struct {
	// Workers is how many units are built side by side; 0: Config.Workers.
	Workers int
	// Sweep compares the entity tags of all indexed files with the present ones first: artifacts of overwritten files are withdrawn and
	// built anew, files with another tag and the same content are recorded under the new one.
	Sweep bool
	// Whole looks at every file of the table, as a sync without a record of an earlier one does, and once a day each.
	Whole bool
	// MaxCost, in US dollars, ends the sync before a unit that by its estimated requests and bytes would exceed it; 0: no limit.
	MaxCost float64
	// Until ends the sync when every index covers so many percent of the rows; 0: when everything is built.
	Until float64
	// Progress is called after every published unit and at least once, never by two goroutines at a time.
	Progress func(SyncProgress)
}

// SyncProgress tells how far a sync is.
type SyncProgress struct {
	FilesDone, FilesTotal int
	RowsDone, RowsTotal   int64
	Elapsed, Left         time.Duration // Left is an estimate; negative: not known yet
}

// SyncReport is what a sync did.
type SyncReport struct {
	SnapshotID     int64             `json:"snapshot_id"`
	OverlayVersion uint64            `json:"overlay_version"`
	FilesIndexed   int               `json:"files_indexed"`
	Artifacts      int               `json:"artifacts"`
	Bundles        int               `json:"bundles"`
	Carried        int               `json:"carried"` // artifacts that a proven rewrite took over instead of being built
	Masks          int               `json:"masks"`   // of deleted rows, kept for later queries
	BytesRead      int64             `json:"bytes_read"`
	BytesWritten   int64             `json:"bytes_written"`
	Cost           float64           `json:"cost_usd"` // of all requests and bytes, by the list prices of S3
	Skipped        map[string]string `json:"skipped"`  // data file → why it cannot be indexed
	Declined       map[string]string `json:"declined"` // index id → why an artifact was not worth keeping
	Swept          *Swept            `json:"swept,omitempty"`
	Released       []string          `json:"released,omitempty"` // ids of indexes that were silent and speak again
	Stopped        string            `json:"stopped,omitempty"`  // why it ended before everything was built
	// Whole is why every file of the table was looked at; "": only the files were that came since the last sync.
	Whole   string  `json:"whole,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Swept is what a sweep of entity tags found.
type Swept struct {
	Files     int `json:"files"`     // indexed ones, which were looked up
	Changed   int `json:"changed"`   // with another tag than when they were indexed
	Restamped int `json:"restamped"` // of these, with the same content
	Withdrawn int `json:"withdrawn"` // artifacts of the others
	Missing   int `json:"missing"`   // files that are gone
	Unchecked int `json:"unchecked"` // files whose tag could not be looked up
}

// Blind tells that no tag could be looked up at all: what was overwritten in place is as unknown as before.
func (s *Swept) Blind() bool { return s != nil && s.Unchecked > 0 && s.Unchecked+s.Missing == s.Files }

// Sync brings the overlay to the table's present snapshot: it builds what is missing and publishes unit by unit. A sync that
// was killed goes on where it stopped, and several at once share the work. One that finds nothing to do records itself only if the last
// record is older than 15 minutes.
func (t *Table) Sync(ctx context.Context, o SyncOptions) (*SyncReport, error) {
	ctx, end := t.metered(ctx)
	defer end()
	r, err := t.syncOnce(ctx, o)
	t.synced(ctx, err)
	return r, err
}

func (t *Table) syncOnce(ctx context.Context, o SyncOptions) (*SyncReport, error) {
	start := time.Now()
	y, done, err := t.builder(o.Workers)
	if err != nil {
		return nil, err
	}
	defer done()
	y.Phases, y.Sweep = t.phases(), o.Sweep
	y.Limits = maintain.Limits{MaxCost: o.MaxCost, Until: o.Until}
	if o.Progress != nil {
		y.Progress = func(p maintain.Progress) { o.Progress(SyncProgress(p)) }
	}
	r, why, err := t.run(ctx, y, o)
	err = local.Spilled(err)
	if r == nil {
		return nil, err
	}
	t.saw(r.Version)
	masks := 0
	if err == nil && r.Stopped == "" {
		var lost error
		if masks, lost = t.saveMasks(ctx, r.Snapshot, y.Build.Store); lost != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			r.Skipped[r.Snapshot.MetadataPath] = "its deletes: " + lost.Error()
		}
	}
	out := syncReport(r, start)
	out.Whole = why
	out.Masks = masks
	if o.Sweep {
		swept := Swept(r.Swept)
		out.Swept = &swept
	}
	return out, err
}

func syncReport(r *maintain.Report, start time.Time) *SyncReport {
	return &SyncReport{
		SnapshotID: r.Snapshot.ID, OverlayVersion: r.Version.Number(), FilesIndexed: r.Files, Artifacts: r.Artifacts, Bundles: r.Bundles,
		Carried: r.Carried, BytesRead: r.BytesRead, BytesWritten: r.BytesWritten, Cost: r.Cost, Skipped: r.Skipped, Declined: r.Declined,
		Released: r.Released, Stopped: r.Stopped, Seconds: time.Since(start).Seconds(),
	}
}

// syncer is what brings the overlay to the table's present snapshot; done removes its temporary files.
func (t *Table) syncer(ctx context.Context, workers int) (y *maintain.Syncer, s *facts.Snapshot, done func(), err error) {
	if _, err := t.mounted(ctx); err != nil {
		return nil, nil, nil, err
	}
	if s, err = t.newest(ctx); err != nil {
		return nil, nil, nil, err
	}
	y, done, err = t.builder(workers)
	return y, s, done, err
}

// builder is a syncer that has read nothing yet.
func (t *Table) builder(workers int) (y *maintain.Syncer, done func(), err error) {
	data, err := t.dataStore()
	if err != nil {
		return nil, nil, err
	}
	temp, done, err := local.Scratch("sync")
	if err != nil {
		return nil, nil, err
	}
	if workers <= 0 {
		workers = t.client.config.Workers
	}
	return &maintain.Syncer{
		Overlay: t.overlay, Store: t.overlayStore, Workers: workers, Refresh: t.newest, Past: t.past, Replaces: t.replaces, Refused: &t.refused, Runs: t.client.runs,
		Clock: t.client.config.now, Log: t.logger(),
		Build: &build.Builder{
			Store: data, Footers: t.client.footers, TempDir: temp, Memory: t.client.config.Memory / int64(workers),
		},
	}, done, nil
}

// past is the facts of an older snapshot.
func (t *Table) past(ctx context.Context, id int64) (*facts.Snapshot, error) {
	return t.snapshot(ctx, strconv.FormatInt(id, 10))
}

// replaces tells of a snapshot whether it says that it only replaced files, as a compaction does. One that has expired says nothing.
func (t *Table) replaces(id int64) bool {
	for _, s := range t.metadata().Snapshots() {
		if s.ID == id {
			return s.Operation == "replace"
		}
	}
	return false
}

// newest is the facts of the table's current snapshot, whose metadata is looked up anew.
func (t *Table) newest(ctx context.Context) (*facts.Snapshot, error) {
	if err := t.refresh(ctx); err != nil {
		return nil, err
	}
	t.mu.Lock()
	v := t.version
	t.mu.Unlock()
	if v != nil && v.Broken() == nil {
		if err := t.same(v.Table()); err != nil { // a catalog hands out another table by the same name
			return nil, err
		}
	}
	return t.snapshot(ctx, "")
}

// phases is what a sync does after its builds, in this order.
func (t *Table) phases() []maintain.Phase {
	if t.overlay.Keyed() { // file maps and facts are not believed there
		return []maintain.Phase{maintain.MergeSketches(), t.consolidating()}
	}
	return []maintain.Phase{maintain.MapFiles(t.client.runs), maintain.MergeSketches(), t.keepFacts(), t.consolidating()}
}
