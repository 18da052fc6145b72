package skomer

import (
	"context"
	"os"
	"time"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/maintain"
)

// Sync brings the overlay to the table's present snapshot: it builds what is missing and publishes unit by unit. A sync that
// was killed goes on where it stopped.
func (t *Table) Sync(ctx context.Context, o SyncOptions) (*SyncReport, error) {
	start := time.Now()
	if _, err := t.mounted(ctx); err != nil {
		return nil, err
	}
	if err := t.refresh(ctx); err != nil {
		return nil, err
	}
	s, err := t.snapshot(ctx, "")
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "skomer-sync-")
	if err != nil {
		return nil, fault.Wrap(fault.Exhausted, os.TempDir(), err)
	}
	defer os.RemoveAll(temp)
	workers := t.client.config.Workers
	data, err := t.dataStore()
	if err != nil {
		return nil, err
	}
	y := &maintain.Syncer{
		Overlay: t.overlay, Store: t.overlayStore, Workers: workers, Phases: t.phases(),
		Build: &build.Builder{
			Store: data, Footers: t.client.footers, TempDir: temp, Memory: t.client.config.Memory / int64(workers),
		},
	}
	if o.Progress != nil {
		y.Progress = func(p maintain.Progress) { o.Progress(SyncProgress(p)) }
	}
	r, err := y.Sync(ctx, s)
	if r == nil {
		return nil, err
	}
	t.saw(r.Version)
	masks := 0
	if err == nil {
		var lost error
		if masks, lost = t.saveMasks(ctx, s, data); lost != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			r.Skipped[s.MetadataPath] = "its deletes: " + lost.Error()
		}
	}
	return &SyncReport{
		SnapshotID: s.ID, OverlayVersion: r.Version.Number(), FilesIndexed: r.Files, Artifacts: r.Artifacts, Bundles: r.Bundles,
		Masks: masks, BytesRead: r.BytesRead, BytesWritten: r.BytesWritten, Skipped: r.Skipped, Declined: r.Declined, Seconds: time.Since(start).Seconds(),
	}, err
}

// phases is what a sync does after its builds, in this order.
func (t *Table) phases() []maintain.Phase {
	return nil
}
