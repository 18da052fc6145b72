package skomer

import (
	"context"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// firstLook is the first look at a table's overlay in an object store, which runs beside the reading of the table's metadata.
type firstLook struct {
	start time.Time
	done  chan struct{}
	used  store.Counter

	version *overlay.Version // nil: not mounted
	err     error
}

// lookAhead begins to look at the overlay, and to read what its head expects to be asked for of the table.
func (t *Table) lookAhead(ctx context.Context) {
	if !lake.Remote(t.where) || t.client.silent.told(t.where) != nil {
		return
	}
	l := &firstLook{start: time.Now(), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.ahead, t.stopAhead = l, cancel
	t.background.Go(func() {
		defer close(l.done)
		l.version, l.err = t.hurried(store.CountOnly(ctx, &l.used), t.client.config.OverlayWait, func(hurried context.Context) (*overlay.Version, error) {
			return t.overlay.First(hurried, func(h *overlay.Head) {
				if h.Mounted && t.maybeAt(h.SnapshotID) {
					t.lake.Ahead(ctx, h.Sources)
				}
			})
		})
		if fault.Is(l.err, fault.NotFound) {
			l.version, l.err = nil, nil
		}
	})
}

// maybeAt reports whether a snapshot is the table's current one, as far as that is known.
func (t *Table) maybeAt(snapshot int64) bool {
	table := t.metadata()
	if table == nil {
		return true
	}
	v, err := table.View(lake.Current())
	return err == nil && v.Shell().ID == snapshot
}

// takeAhead is the first look, once, and if its result is fresh enough.
func (t *Table) takeAhead() *firstLook {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.ahead
	t.ahead = nil
	if l != nil && time.Since(l.start) >= t.client.config.MaxStaleness {
		return nil
	}
	return l
}

// result waits for what the look found. What it cost counts for the one who asks.
func (l *firstLook) result(ctx context.Context) (*overlay.Version, error) {
	select {
	case <-l.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	store.Count(ctx, l.used.Usage())
	return l.version, l.err
}

// likelyNeeded is the roots of file maps that an overlay does not list whole, with the layouts behind them as far as heads name so much.
func likelyNeeded(v *overlay.Version) []overlay.Derived {
	var out []overlay.Derived
	var layouts []int64 // behind each
	left := int64(overlay.MaxAheadBytes)
	for _, e := range v.Derived(filemap.Kind) {
		m, err := filemap.ParseMeta(e.Name, e.Meta)
		if err != nil || len(m.Root) > 0 {
			continue
		}
		out, layouts, left = append(out, e), append(layouts, 0), left-e.Len
		if l := m.Layouts; l != nil && l.Off == e.Off+e.Len {
			layouts[len(out)-1] = l.Len
		}
	}
	for i, n := range layouts {
		if n <= left {
			out[i].Len, left = out[i].Len+n, left-n
		}
	}
	return out
}
