package maintain

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// Vacuum deletes what an overlay no longer needs: what only versions name that are not retained, and what was written and
// never named. Its fields are set once.
//
// It lists the objects first, then the declarations of builds, then the versions, and commits what it ends before it deletes
// anything: a build that is about to name an object is declared, or has committed, or is refused. No clock decides that; the
// times below, all by the store's clock, only spare readers that are behind and writers that declare nothing.
type Vacuum struct {
	Overlay *overlay.Overlay
	Store   store.Store // the overlay's
	// A version is retained that is one of the newest Retain, or was the newest one within RetainFor or Grace.
	Retain    int
	RetainFor time.Duration
	Grace     time.Duration // how long ago an object must have been written to be deleted
	Abandoned time.Duration // how long ago a declaration must have been renewed last for its build to be revoked
	DryRun    bool
	// AllowEmpty lets everything be deleted: a vacuum that finds no artifact in use otherwise refuses.
	AllowEmpty bool
	// Snapshots reads the retained snapshots of the table, those of all refs, the present one first. Artifacts and masks that are about
	// no file of any of them go. Where it is empty, or a snapshot cannot be read, they stay.
	Snapshots []func(context.Context) (*facts.Snapshot, error)
	// Log is told of every object that is deleted and every build that is revoked (debug); nil: nobody is.
	Log *slog.Logger
}

// Tally is objects and their bytes.
type Tally struct {
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

// VacuumReport is what a vacuum did, or would do.
type VacuumReport struct {
	DryRun   bool             `json:"dry_run"`
	Version  uint64           `json:"overlay_version"` // the newest, when it ended
	Oldest   uint64           `json:"oldest_version"`  // that is retained
	Expired  int              `json:"expired"`         // versions that were not expired before
	Revoked  []string         `json:"revoked"`         // builds that were taken for dead
	Retired  int              `json:"retired"`         // artifacts of which no retained snapshot has a file
	Deleted  map[string]Tally `json:"deleted"`         // by reason
	Kept     map[string]Tally `json:"kept"`            // by reason
	Warnings []string         `json:"warnings"`
}

// Run vacuums. After an error the report says what was done, and running again goes on.
func (c *Vacuum) Run(ctx context.Context) (*VacuumReport, error) {
	w := c.begin()
	return &w.report, w.run(ctx)
}

// cleaning is one run of a vacuum.
type cleaning struct {
	*Vacuum
	now      time.Time // by the store's clock
	objects  []store.Info
	flights  []overlay.InFlight
	newest   *overlay.Version
	versions []overlay.Object // the newest first
	names    *overlay.Names   // of the retained ones
	masks    map[string]bool  // keys of masks of files that are gone
	report   VacuumReport
}

func (w *cleaning) run(ctx context.Context) error {
	if err := w.look(ctx); err != nil {
		return err
	}
	ends := w.ends()
	retired := w.unnamed(ctx)
	if err := w.name(ctx, ends.Oldest); err != nil {
		return err
	}
	doomed := w.sort(ends.Builds)
	if err := w.sane(doomed); err != nil {
		return err
	}
	old := w.expired(ends.Oldest)
	w.report.Version, w.report.Oldest = w.newest.Number(), ends.Oldest
	w.report.Expired, w.report.Retired, w.report.Revoked = w.countExpired(ends.Oldest), len(retired), ends.Builds
	if w.DryRun || len(doomed)+len(old)+len(ends.Builds)+len(retired) == 0 {
		for _, d := range doomed {
			count(w.report.Deleted, d.reason, d.Size)
		}
		w.tellBodies(old)
		w.tellDeclarations(ends.Builds)
		return nil
	}
	receipt, err := w.Overlay.Commit(ctx, w.newest, overlay.End(ends), overlay.Retire(retired...))
	if err != nil {
		return err
	}
	w.newest = receipt.Version
	if w.versions, err = w.Overlay.Versions(ctx); err != nil {
		return err
	}
	ends.Builds = slices.DeleteFunc(ends.Builds, func(id string) bool { return !w.newest.Revoked(id) })
	for _, id := range ends.Builds {
		logTo(w.Log).DebugContext(ctx, sayRevoked, "build", id, "version", w.newest.Number())
	}
	w.report.Version, w.report.Oldest, w.report.Revoked = w.newest.Number(), w.newest.Oldest(), ends.Builds
	if err := w.name(ctx, w.newest.Oldest()); err != nil {
		return err
	}
	doomed = w.sort(ends.Builds)
	if err := w.sane(doomed); err != nil {
		return err
	}
	return w.remove(ctx, doomed, ends.Builds)
}

// look reads the clock, lists the objects, then the declarations, then the versions: in this order, since a build is declared
// before its first object and withdrawn after its commit.
func (w *cleaning) look(ctx context.Context) (err error) {
	if w.now, err = w.clock(ctx); err != nil {
		return err
	}
	if w.objects, err = listAll(ctx, w.Store, w.Overlay.Prefix()+"/"); err != nil {
		return err
	}
	if w.flights, err = w.Overlay.InFlight(ctx); err != nil {
		return err
	}
	if w.newest, err = w.whole(ctx); err != nil {
		return err
	}
	w.versions, err = w.Overlay.Versions(ctx)
	return err
}

// whole is the newest version, which must be readable as a whole. One whose parts another vacuum deleted while they were read is not
// the newest any more.
func (w *cleaning) whole(ctx context.Context) (*overlay.Version, error) {
	for last := uint64(0); ; {
		v, err := w.Overlay.Latest(ctx)
		if err != nil {
			return nil, err
		}
		if err := v.Broken(); err != nil {
			return nil, fault.About(w.Overlay.Prefix(), err)
		}
		incomplete := unread(v)
		if incomplete == nil || v.Number() == last {
			return v, incomplete
		}
		last = v.Number()
	}
}

// unread is why nobody knows what a version needs, nil where all of it could be read.
func unread(v *overlay.Version) error {
	lost := v.Warnings()
	if len(lost) == 0 {
		return nil
	}
	return fault.New(fault.Refused, lost[0].Part, "the newest version cannot be read as a whole, so that nobody knows what it needs").
		WithCause(lost[0].Reason).WithFix("skomer overlay recover TABLE")
}

// clock is the store's: the time at which it says that an object was written now.
func (w *cleaning) clock(ctx context.Context) (time.Time, error) {
	key := w.Overlay.DataKey(clockName + uuid.NewString())
	if _, err := w.Store.PutNew(ctx, key, bytes.NewReader(nil)); err != nil {
		if w.DryRun && fault.Is(err, fault.Denied) {
			return time.Now(), nil
		}
		return time.Time{}, fault.About(key, err)
	}
	at := w.Store.Stat(ctx, []string{key})[0]
	if err := w.Store.Delete(context.WithoutCancel(ctx), []string{key}); err != nil {
		w.warn("the object that told the time was not deleted: " + err.Error())
	}
	return at.Modified, fault.About(key, at.Err)
}

const (
	clockName = "clock-"
	clockLife = time.Hour // before which another vacuum may need it
)

func (w *cleaning) warn(text string) { w.report.Warnings = append(w.report.Warnings, text) }

func listAll(ctx context.Context, st store.Store, prefix string) ([]store.Info, error) {
	const page = 1000
	var out []store.Info
	for after := ""; ; {
		infos, err := st.List(ctx, prefix, after, page)
		if err != nil {
			return nil, fault.About(prefix, err)
		}
		out = append(out, infos...)
		if len(infos) < page {
			return out, nil
		}
		after = infos[len(infos)-1].Key
	}
}

// ends is which versions and builds are to end.
func (w *cleaning) ends() overlay.Ends {
	e := overlay.Ends{Oldest: w.newest.Number(), Builds: []string{}}
	spare := max(w.RetainFor, w.Grace)
	for i, v := range w.versions {
		if v.Number > w.newest.Number() {
			continue // committed since
		}
		// A version stops being the newest when the next one is written.
		if i > 0 && int(w.newest.Number()-v.Number) >= max(w.Retain, 1) && (spare == 0 || w.now.Sub(w.versions[i-1].Modified) > spare) {
			break
		}
		e.Oldest = v.Number
	}
	e.Oldest = max(e.Oldest, w.newest.Oldest())
	for _, f := range w.flights {
		if w.now.Sub(f.Renewed) > w.Abandoned {
			e.Builds = append(e.Builds, f.BuildID)
		}
	}
	return e
}

// name gathers what the versions from oldest on name. What the newest one names is in memory: no read decides about that.
func (w *cleaning) name(ctx context.Context, oldest uint64) (err error) {
	if err := unread(w.newest); err != nil {
		return err
	}
	retained := slices.DeleteFunc(slices.Clone(w.versions), func(v overlay.Object) bool { return v.Number < oldest })
	if w.names, err = w.Overlay.Names(ctx, retained, w.newest, w.newest.Purged()); err != nil {
		return err
	}
	for _, d := range w.names.Damaged {
		if text := d.Part + ": " + d.Reason.Error(); !slices.Contains(w.report.Warnings, text) {
			w.warn(text)
		}
	}
	return nil
}

// sane refuses to delete all bundles.
func (w *cleaning) sane(doomed []doom) error {
	if w.AllowEmpty || len(w.names.Bundles) > 0 {
		return nil
	}
	bundles := 0
	for _, d := range doomed {
		if d.place == "data" && d.Size > 0 {
			bundles++
		}
	}
	if bundles == 0 {
		return nil
	}
	return fault.New(fault.Refused, w.Overlay.Prefix(), "no retained version has an artifact, and there are %d bundles: deleting all of them is refused", bundles).
		WithFix("check the overlay with skomer status; --allow-empty deletes them, skomer unmount --purge everything")
}

// expired is the bodies of versions before oldest that are not stubs yet.
func (w *cleaning) expired(oldest uint64) []overlay.Object {
	return slices.DeleteFunc(slices.Clone(w.versions), func(v overlay.Object) bool { return v.Number >= oldest || v.Stub() })
}

func (w *cleaning) countExpired(oldest uint64) int {
	n := 0
	for _, v := range w.versions {
		if v.Number < oldest && v.Number >= w.newest.Oldest() {
			n++
		}
	}
	return n
}

// place is the folder of an object below the overlay's prefix; "" for one that lies in none.
func (w *cleaning) place(key string) string {
	folder, _, ok := strings.Cut(strings.TrimPrefix(key, w.Overlay.Prefix()+"/"), "/")
	if !ok {
		return ""
	}
	return folder
}

func byKey(a, b doom) int { return cmp.Compare(a.Key, b.Key) }
