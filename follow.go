package skomer

import (
	"context"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/maintain"
)

// FollowOptions is how an overlay follows its table.
type FollowOptions struct {
	SyncOptions               // of each sync; Sweep is chosen by SweepEvery
	Every       time.Duration // between syncs, give or take a half; 0: a minute
	SweepEvery  time.Duration // between sweeps of entity tags; 0: a day, negative: never
	// Synced is told of every sync: its report, nil where it did not come so far, and its error.
	Synced func(*SyncReport, error)
}

const (
	defaultEvery = time.Minute
	defaultSweep = 24 * time.Hour
)

// Follow keeps the overlay at the table's newest snapshot until ctx ends, which is no error. Trouble that may pass is told to Synced and
// tried again, at growing intervals; what cannot pass, such as an overlay that was unmounted, ends it. A table opened by its metadata.json
// stays what it is.
func (t *Table) Follow(ctx context.Context, o FollowOptions) error {
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	if o.SweepEvery == 0 {
		o.SweepEvery = defaultSweep
	}
	swept := time.Time{}
	return maintain.Follow(ctx, o.Every, func(ctx context.Context) (bool, error) {
		so := o.SyncOptions
		so.Sweep = o.SweepEvery > 0 && time.Since(swept) >= o.SweepEvery
		report, err := t.Sync(ctx, so)
		if so.Sweep && err == nil && !report.Swept.Blind() {
			swept = time.Now()
		}
		if ctx.Err() == nil && o.Synced != nil {
			o.Synced(report, err)
		}
		return t.goOn(ctx, err), err
	})
}

// goOn tells whether another sync may come further than the one that ended with err.
func (t *Table) goOn(ctx context.Context, err error) bool {
	switch fault.ClassOf(err) {
	case fault.Refused, fault.Unsupported, fault.Invalid:
		return fault.Retryable(err)
	case fault.NotFound:
		_, lost := t.mounted(ctx)
		return !fault.Is(lost, fault.NotFound)
	default:
		return true
	}
}
