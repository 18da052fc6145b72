package skomer

import (
	"context"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/maintain"
)

// leastCost is a limit, in US dollars, that no unit of a build keeps.
const leastCost = 1e-9

// run syncs, by a shortcut where one leads there. why is why every file was looked at.
func (t *Table) run(ctx context.Context, y *maintain.Syncer, o SyncOptions) (r *maintain.Report, why string, err error) {
	x, why, err := t.shortcut(ctx, o)
	if err != nil {
		return nil, "", err
	}
	if x != nil {
		r, err = y.SyncNew(ctx, x)
		var ok bool
		if why, ok = maintain.Whole(err); !ok {
			return r, "", err
		}
		if y.Before = r; r != nil && o.MaxCost > 0 {
			y.Limits.MaxCost = max(o.MaxCost-r.Cost, leastCost)
		}
	}
	t.client.log.InfoContext(ctx, "sync looks at every file", "table", t.name, "reason", why)
	if _, err := t.mounted(ctx); err != nil {
		return nil, "", err
	}
	s, err := t.newest(ctx)
	if err != nil {
		return nil, "", err
	}
	r, err = y.Sync(ctx, s)
	return r, why, err
}

// shortcut is what a sync needs that looks at nothing but the files that came since the last one; nil, and why, where there is no such way.
func (t *Table) shortcut(ctx context.Context, o SyncOptions) (x *maintain.Shortcut, why string, err error) {
	switch {
	case o.Sweep:
		return nil, "a sweep was asked for", nil
	case o.Until > 0:
		return nil, "a coverage was asked for", nil
	case o.Whole:
		return nil, "it was asked for", nil
	case t.overlay.Keyed():
		return nil, "the overlay is signed", nil
	}
	v, err := t.overlay.Lean(ctx)
	if fault.Is(err, fault.NotFound) {
		return nil, "", t.notMounted()
	}
	if err != nil {
		return nil, "", err
	}
	if err := t.refresh(ctx); err != nil {
		return nil, "", err
	}
	table := t.metadata()
	now, err := table.View(lake.Current())
	if err != nil {
		return nil, "", err
	}
	if x, why = maintain.FindShortcut(v, now.Shell(), t.client.config.now()); x == nil {
		return nil, why, nil
	}
	t.saw(v) // it is that of this table
	if !descends(table.Snapshots(), now.Shell().ID, x.Past) {
		return nil, "the table's snapshot does not come after the one that was synced last", nil
	}
	past, err := table.View(lake.Selector{ID: x.Past})
	if err != nil {
		return nil, "the snapshot that was synced last has expired", nil //nolint:nilerr // then it is not needed
	}
	if x.Since, err = now.Since(ctx, t.kept(v), past); err != nil {
		return nil, "the manifests cannot be compared: " + err.Error(), ctx.Err()
	}
	t.mu.Lock()
	if t.table == table && t.views[""] == nil {
		t.views[""] = now
	}
	t.mu.Unlock()
	if why = x.Reason(); why != "" {
		return nil, why, nil
	}
	return x, "", nil
}

// descends tells whether a snapshot is another one or has it among its ancestors, as far as the history reaches.
func descends(history []lake.SnapshotInfo, id, from int64) bool {
	parents := make(map[int64]int64, len(history))
	for i := range history {
		parents[history[i].ID] = history[i].Parent
	}
	for range history {
		if id == from {
			return true
		}
		next, ok := parents[id]
		if !ok {
			return false
		}
		id = next
	}
	return false
}
