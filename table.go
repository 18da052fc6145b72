package skomer

import (
	"context"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/mask"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/plan"
	"github.com/skomerdb/skomer/internal/scan"
	"github.com/skomerdb/skomer/internal/store"
)

// Table is an Iceberg table and its overlay, if it has one. It is safe for concurrent use.
type Table struct {
	client  *Client
	name    string
	options TableOptions
	mapping lake.Mapping
	lake    *lake.Lake
	where   string // location of the overlay

	overlayStore store.Store
	overlay      *overlay.Overlay
	archive      *mask.Archive // of masks, in the overlay
	maps         *scan.Maps
	refused      maintain.Refused

	background sync.WaitGroup
	stopAhead  context.CancelFunc // of what is read ahead; nil: nothing is

	mu      sync.Mutex
	table   *lake.Table
	read    time.Time             // when table was read
	views   map[string]*lake.View // of table, by Query.At
	version *overlay.Version      // nil: not mounted
	looked  time.Time             // when version was looked up
	ahead   *firstLook            // at the overlay; nil: none, or its result was taken

	sketches   plan.Known       // of sketchesOf
	sketchesOf *overlay.Version // may be an older one
}

// Name is what the table was opened by.
func (t *Table) Name() string { return t.name }

// Overlay is the location of the table's overlay, mounted or not.
func (t *Table) Overlay() string { return t.where }

// Location is the table's location as its metadata states it.
func (t *Table) Location() string { return t.metadata().Location() }

// metadata is the table's metadata as it was read last.
func (t *Table) metadata() *lake.Table {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.table
}

// Close waits for what is still under way in the background: shadow checks, and the writing of the overlay's readable head.
func (t *Table) Close() {
	if t.stopAhead != nil {
		t.stopAhead()
	}
	t.background.Wait()
	if t.overlay != nil {
		t.overlay.Close()
	}
}

// refresh reads the table's metadata anew.
func (t *Table) refresh(ctx context.Context) error {
	table, err := t.lake.Open(ctx, t.name)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.table == nil || t.table.MetadataPath() != table.MetadataPath() || t.table.UUID() != table.UUID() {
		t.table, t.views = table, map[string]*lake.View{}
	}
	t.read = time.Now()
	return nil
}

// current is the overlay's newest version, nil if the table is not mounted; from memory while it is fresh enough. Its artifacts are there to
// be found after Full. A query can do without it: a store that does not answer is not waited for long, and not asked again at once.
func (t *Table) current(ctx context.Context) (*overlay.Version, error) {
	t.mu.Lock()
	v, fresh := t.version, time.Since(t.looked) < t.client.config.MaxStaleness
	t.mu.Unlock()
	if fresh {
		return v, nil
	}
	if err := t.client.silent.told(t.where); err != nil {
		return nil, err
	}
	if l := t.takeAhead(); l != nil {
		v, err := l.result(ctx)
		switch {
		case err == nil:
			t.sawAt(v, l.start)
			return v, nil
		case fault.Is(err, fault.Unreachable):
			return nil, t.client.silent.note(t.where, err)
		}
	}
	v, err := t.hurried(ctx, t.client.config.OverlayWait, t.overlay.Latest)
	switch {
	case fault.Is(err, fault.NotFound):
		v, err = nil, nil
	case err != nil && ctx.Err() == nil && fault.Retryable(err):
		return nil, t.client.silent.note(t.where, err)
	case err != nil:
		return nil, err
	}
	t.saw(v)
	return v, err
}

// saw remembers the overlay's newest version.
func (t *Table) saw(v *overlay.Version) { t.sawAt(v, time.Now()) }

func (t *Table) sawAt(v *overlay.Version, looked time.Time) {
	t.client.silent.forget(t.where)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version, t.looked = v, looked
}

// mounted is the overlay's newest version, or a NotFound fault that tells how to mount. The overlay of another table is refused.
func (t *Table) mounted(ctx context.Context) (*overlay.Version, error) {
	v, err := t.overlay.Latest(ctx)
	if fault.Is(err, fault.NotFound) {
		return nil, t.notMounted()
	}
	if err != nil {
		return v, err
	}
	t.saw(v)
	if v.Broken() == nil {
		err = t.same(v.Table())
	}
	return v, err
}

func (t *Table) notMounted() error {
	return fault.New(fault.NotFound, t.name, "is not mounted: no overlay at %s", t.where).WithFix("skomer mount %s", t.name)
}
