package skomer

import (
	"context"
	"time"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/store/local"
)

// ConsolidateReport is what a consolidation did, or with a dry run would do first.
type ConsolidateReport struct {
	DryRun         bool              `json:"dry_run"`
	OverlayVersion uint64            `json:"overlay_version"`
	BundlesBefore  int               `json:"bundles_before"`
	BundlesAfter   int               `json:"bundles_after"`
	Merges         int               `json:"merges"`        // bundles written, each of several
	Segments       int               `json:"segments"`      // artifacts merged from several
	Copied         int               `json:"copied"`        // artifacts taken over as they are
	DroppedFiles   int               `json:"dropped_files"` // left out of segments, once per index: no retained snapshot has them
	Retired        int               `json:"retired"`       // artifacts all of whose files no retained snapshot has
	BytesRead      int64             `json:"bytes_read"`    // of artifacts; data files are not read
	BytesWritten   int64             `json:"bytes_written"` // of bundles
	PassedOver     map[string]string `json:"passed_over"`   // bundle → why it stayed as it is
	Unmerged       map[string]string `json:"unmerged"`      // index id → why artifacts of it were copied
	Seconds        float64           `json:"seconds"`
}

// Consolidate merges the bundles of the table's indexes in tiers, so that there are few large ones: artifacts of kinds that cover
// segments become one, those of single data files are copied beside each other, and what is about files that no retained snapshot
// has is left behind. No data file is read. Answers stay the same at every moment; old bundles stay for readers until a vacuum.
// Syncs do the same where a tier is full; dryRun only tells.
func (t *Table) Consolidate(ctx context.Context, dryRun bool) (*ConsolidateReport, error) {
	ctx, end := t.metered(ctx)
	defer end()
	start := time.Now()
	if _, err := t.mounted(ctx); err != nil {
		return nil, err
	}
	s, err := t.newest(ctx)
	if err != nil {
		return nil, err
	}
	temp, done, err := local.Scratch("consolidate")
	if err != nil {
		return nil, err
	}
	defer done()
	c := maintain.Consolidator{
		Overlay: t.overlay, Store: t.overlayStore, Snapshot: s, TempDir: temp, Memory: t.client.config.Memory, DryRun: dryRun, Snapshots: t.everySnapshot(),
	}
	r, err := c.Run(ctx)
	err = local.Spilled(err)
	if r.Version == nil {
		return nil, err
	}
	t.saw(r.Version)
	return &ConsolidateReport{
		DryRun: dryRun, OverlayVersion: r.Version.Number(), BundlesBefore: r.Before, BundlesAfter: r.After, Merges: r.Merges, Segments: r.Segments,
		Copied: r.Copied, DroppedFiles: r.Dropped, Retired: r.Retired, BytesRead: r.BytesRead, BytesWritten: r.BytesWritten,
		PassedOver: r.Passed, Unmerged: r.Unmerged, Seconds: time.Since(start).Seconds(),
	}, err
}

// everySnapshot reads the snapshots that the table retains, those of all refs.
func (t *Table) everySnapshot() []func(context.Context) (*facts.Snapshot, error) {
	table := t.metadata()
	var out []func(context.Context) (*facts.Snapshot, error)
	for _, x := range table.Snapshots() {
		out = append(out, func(ctx context.Context) (*facts.Snapshot, error) {
			return table.Snapshot(ctx, lake.Selector{ID: x.ID})
		})
	}
	return out
}

// consolidating is the phase of a sync that merges bundles.
func (t *Table) consolidating() maintain.Phase {
	return maintain.Consolidate(maintain.Consolidator{Memory: t.client.config.Memory, Snapshots: t.everySnapshot()})
}
