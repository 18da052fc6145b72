package skomer

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/maintain"
	"github.com/skomerdb/skomer/internal/overlay"
)

const (
	defaultGrace = time.Hour
	// defaultAbandoned is how long a build may go without renewing its declaration, which it does twice a minute.
	defaultAbandoned = time.Hour
)

// VacuumOptions bounds a vacuum.
type VacuumOptions struct {
	// Retain is how many of the newest overlay versions stay readable, at least one.
	Retain int
	// RetainFor keeps, besides these, the versions that were the newest within this time.
	RetainFor time.Duration
	// Grace is how long objects stay after they were written, and after they went out of use; 0: an hour, negative: not at all.
	Grace time.Duration
	// DryRun reports and deletes nothing.
	DryRun bool
	// AllowEmpty lets a vacuum delete all bundles, where no version needs one; otherwise it refuses.
	AllowEmpty bool
}

// Tally is objects and their bytes.
type Tally = maintain.Tally

// VacuumReport is what a vacuum deleted and kept, by reason, or would.
type VacuumReport = maintain.VacuumReport

// Vacuum deletes what only overlay versions need that are not retained, what no version ever named, and what is about data files that no
// retained snapshot of the table has. Builds that died are revoked. Queries and builds go on meanwhile.
func (t *Table) Vacuum(ctx context.Context, o VacuumOptions) (*VacuumReport, error) {
	ctx, end := t.metered(ctx)
	defer end()
	if o.Retain < 0 || o.RetainFor < 0 {
		return nil, fault.New(fault.Invalid, "vacuum", "what it retains is negative: %d versions, %s", o.Retain, o.RetainFor)
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
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
	snapshots := t.everySnapshot()
	slices.Reverse(snapshots) // artifacts are mostly about files that the latest ones have
	c := t.vacuum()
	c.Retain, c.RetainFor, c.Grace, c.Abandoned = o.Retain, o.RetainFor, max(o.Grace, 0), defaultAbandoned
	c.DryRun, c.AllowEmpty, c.Snapshots = o.DryRun, o.AllowEmpty, snapshots
	r, err := c.Run(ctx)
	return t.cleaned(ctx, r, err)
}

// owns refuses to delete anything from the overlay of another table.
func (t *Table) owns(of overlay.Table) error {
	if err := t.apart(t.where); err != nil {
		return err
	}
	return t.same(of)
}

// same refuses the overlay of another table, as there is after a typing error, or when the table was dropped and made again.
func (t *Table) same(of overlay.Table) error {
	now := t.metadata()
	if strings.EqualFold(of.UUID, now.UUID()) && (of.UUID != "" || of.Location == now.Location()) {
		return nil
	}
	return fault.New(fault.Refused, t.where, "is the overlay of another table, %s at %s; %s is %s now", of.UUID, of.Location, t.name, now.UUID()).
		WithFix("give the table an overlay of its own: skomer mount %s", t.name)
}

func (t *Table) vacuum() *maintain.Vacuum {
	return &maintain.Vacuum{Overlay: t.overlay, Store: t.overlayStore, Log: t.logger()}
}

// cleaned looks up the newest version, and leaves no empty folders in a local overlay.
func (t *Table) cleaned(ctx context.Context, r *VacuumReport, err error) (*VacuumReport, error) {
	t.saw(nil)
	if v, again := t.overlay.Latest(ctx); again == nil {
		t.saw(v)
	}
	if r.DryRun {
		return r, err
	}
	for _, n := range r.Deleted {
		t.client.metrics.Purged(n.Objects)
	}
	if path, ok := lake.LocalPath(t.where); ok {
		removeEmpty(path)
	}
	return r, err
}

// removeEmpty removes the empty folders below root. A writer that needs one makes it again.
func removeEmpty(root string) {
	var folders []string
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root {
			folders = append(folders, path)
		}
		return nil // what cannot be read is not removed
	})
	for _, f := range slices.Backward(folders) {
		_ = os.Remove(f) // refused where it is not empty
	}
}

// PurgeIndex drops an index, named by id or by its expression, and deletes at once what only it needs. Bundles that hold other
// indexes, too, stay until they are consolidated.
func (t *Table) PurgeIndex(ctx context.Context, name string) (*Index, *VacuumReport, error) {
	ctx, end := t.metered(ctx)
	defer end()
	v, err := t.mounted(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := t.owns(v.Table()); err != nil {
		return nil, nil, err
	}
	x, err := t.find(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	r, err := t.vacuum().Purge(ctx, x.ID)
	r, err = t.cleaned(ctx, r, err)
	return x, r, err
}

// Purge ends the mount and deletes the overlay: every index, artifact and version. What stays is the record of the newest version, a few
// hundred bytes, so that its number is never used again.
func (t *Table) Purge(ctx context.Context) (*VacuumReport, error) {
	ctx, end := t.metered(ctx)
	defer end()
	history, err := t.history(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(history, func(h overlay.Summary) bool { return h.Err == nil && !h.Expired })
	if at < 0 {
		return nil, fault.New(fault.Refused, t.where, "no version tells whose overlay it is").WithCause(history[0].Err).
			WithFix("if it shall go: skomer unmount --purge --overlay %s", t.where)
	}
	if err := t.owns(history[at].Table); err != nil {
		return nil, err
	}
	r, err := t.vacuum().PurgeAll(ctx)
	return t.cleaned(ctx, r, err)
}

// PurgeOverlay is Table.Purge for the overlay at a place, whatever its table: one that is gone or was made again, or that no version tells of any
// more.
func (c *Client) PurgeOverlay(ctx context.Context, where string) (*VacuumReport, error) {
	t := &Table{client: c, name: where, options: TableOptions{Overlay: where}}
	if err := t.locate(); err != nil {
		return nil, err
	}
	defer t.Close()
	ctx, end := t.metered(ctx)
	defer end()
	if _, err := t.history(ctx); err != nil {
		return nil, err
	}
	r, err := t.vacuum().PurgeAll(ctx)
	return t.cleaned(ctx, r, err)
}

// history is the newest versions of the overlay, damaged ones too.
func (t *Table) history(ctx context.Context) ([]overlay.Summary, error) {
	const enough = 16 // versions: that all of them are damaged is not to be expected
	history, err := t.overlay.History(ctx, enough)
	if fault.Is(err, fault.NotFound) || err == nil && len(history) == 0 {
		return nil, fault.New(fault.NotFound, t.name, "has no overlay at %s", t.where)
	}
	return history, err
}
