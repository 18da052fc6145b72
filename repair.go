package skomer

import (
	"context"
	"time"

	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
)

// Finding is an artifact, or another object that the overlay names, that must not speak, and why.
type Finding struct {
	Index  string   `json:"index"`          // its declaration; "" for what belongs to no index
	Kind   string   `json:"kind,omitempty"` // of what is no artifact: filemap, facts, sketch, refused; list for the overlay's own lists
	Bundle string   `json:"bundle"`         // object key
	Files  []string `json:"files"`          // data files that an artifact covers
	Reason string   `json:"reason"`         // one of few words, for counting
	Detail string   `json:"detail"`
}

// RepairReport is what a repair found and did.
type RepairReport struct {
	DryRun bool `json:"dry_run"`
	// ByReason counts the findings.
	ByReason map[string]int `json:"by_reason"`
	Findings []Finding      `json:"findings"`
	// Unchecked is the data files whose entity tag could not be looked up, and why.
	Unchecked map[string]string `json:"unchecked,omitempty"`
	// Sync is what was built; nil after a dry run.
	Sync *SyncReport `json:"sync,omitempty"`
}

// Repair withdraws the artifacts of the present snapshot that are not believed, because the lineage check rejects them, their bundle
// cannot be read, or their file was overwritten, and builds exactly these anew. File maps, facts of manifests, sketches and lists of
// refusals that are damaged go and are made anew; so do damaged lists of the overlay, and the next sync builds what only they knew of.
// With dryRun it only reports.
func (t *Table) Repair(ctx context.Context, dryRun bool) (*RepairReport, error) {
	ctx, end := t.metered(ctx)
	defer end()
	start := time.Now()
	y, s, done, err := t.syncer(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer done()
	before, err := t.overlay.Latest(ctx)
	if err != nil {
		return nil, err
	}
	y.Phases, y.Store = t.phases(), t.unkept()
	r, err := y.Repair(ctx, s, dryRun)
	err = local.Spilled(err)
	if r == nil {
		return nil, err
	}
	out := &RepairReport{DryRun: dryRun, Unchecked: r.Unchecked}
	out.ByReason, out.Findings = findings(before, r.Found)
	if !dryRun {
		t.saw(r.Report.Version)
		t.dropReaders(r.Found)
		out.Sync = syncReport(r.Report, start)
	}
	return out, err
}

// findings are what maintenance found, with indexes called by their declarations, and their number by reason.
func findings(v *overlay.Version, found []maintain.Finding) (map[string]int, []Finding) {
	byReason, out := map[string]int{}, make([]Finding, 0, len(found))
	for _, f := range found {
		name := f.IndexID
		if d, ok := v.Index(f.IndexID); ok {
			name = exprOf(d)
		}
		byReason[f.Reason]++
		out = append(out, Finding{Index: name, Kind: f.Kind, Bundle: f.Bundle, Files: f.Files, Reason: f.Reason, Detail: f.Detail})
	}
	return byReason, out
}

// unkept is the overlay's store without the byte cache, for who wants to know what is in storage.
func (t *Table) unkept() store.Store {
	if d, ok := t.overlayStore.(store.Decorator); ok {
		return d.Inner()
	}
	return t.overlayStore
}

// dropReaders forgets what is in memory of withdrawn artifacts.
func (t *Table) dropReaders(found []maintain.Finding) {
	for _, f := range found {
		t.client.readers.Drop(f.Bundle)
	}
}

// ScrubOptions bound a scrub.
type ScrubOptions struct {
	// Sample is the share of artifacts and derived objects to check, above 0 and up to 1; 0: all.
	Sample float64
	// MaxBytes ends the scrub when so much was read; 0: no limit. The next scrub goes on there.
	MaxBytes int64
}

// ScrubReport is what a scrub read and found.
type ScrubReport struct {
	Artifacts int            `json:"artifacts"` // whose bytes were checked
	Derived   int            `json:"derived"`   // parts of file maps, facts, sketches and lists of refusals whose bytes were checked
	Sources   int            `json:"sources"`   // data files that were hashed again
	BytesRead int64          `json:"bytes_read"`
	Complete  bool           `json:"complete"` // the end of the list was reached
	ByReason  map[string]int `json:"by_reason"`
	Findings  []Finding      `json:"findings"` // withdrawn, and built by the next sync; but for lists, which Repair takes out
}

// Scrub reads everything that the overlay's newest version names, and the data files under it, again, from storage, and compares it with
// the checksums that were recorded when it was written. What differs is withdrawn; the next sync or repair builds it anew. A scrub that ends early is gone on with by the next one.
func (t *Table) Scrub(ctx context.Context, o ScrubOptions) (*ScrubReport, error) {
	ctx, end := t.metered(ctx)
	defer end()
	y, s, done, err := t.syncer(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer done()
	before, err := t.overlay.Latest(ctx)
	if err != nil {
		return nil, err
	}
	y.Store = t.unkept()
	r, err := y.Scrub(ctx, s, maintain.ScrubOptions(o))
	if r == nil {
		return nil, err
	}
	t.saw(r.Version)
	t.dropReaders(r.Found)
	out := &ScrubReport{Artifacts: r.Artifacts, Derived: r.Derived, Sources: r.Sources, BytesRead: r.BytesRead, Complete: r.Complete}
	out.ByReason, out.Findings = findings(before, r.Found)
	return out, err
}

// Reindex builds the artifacts of an index anew that an older format of its kind made or that has other parameters than the index has
// now; of every index where name is empty. The old ones answer until they are replaced. all builds every artifact. An index that was paused
// or quarantined, and is named, is built anew as a whole and speaks again.
func (t *Table) Reindex(ctx context.Context, name string, all bool, o SyncOptions) (*SyncReport, error) {
	ctx, end := t.metered(ctx)
	defer end()
	start := time.Now()
	id := ""
	if name != "" {
		x, err := t.ShowIndex(ctx, name)
		if err != nil {
			return nil, err
		}
		id = x.ID
	}
	y, s, done, err := t.syncer(ctx, o.Workers)
	if err != nil {
		return nil, err
	}
	defer done()
	y.Limits = maintain.Limits{MaxCost: o.MaxCost, Until: o.Until}
	if o.Progress != nil {
		y.Progress = func(p maintain.Progress) { o.Progress(SyncProgress(p)) }
	}
	r, err := y.Reindex(ctx, s, id, all)
	err = local.Spilled(err)
	if r == nil {
		return nil, err
	}
	t.saw(r.Version)
	return syncReport(r, start), err
}
