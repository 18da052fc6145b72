package maintain

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/overlay"
)

// DataFile is one incarnation of a data file as a manifest states it.
type DataFile struct {
	Path          string
	Size, Records int64
}

// Erase makes an overlay forget the values of data files: what was built from them leaves the newest version, all earlier versions end, and
// every object that the newest one does not name is deleted at once. Its fields are set once.
//
// It works in passes. A pass lists the objects, then the declarations of builds, then reads the newest version and what its bundles say
// of themselves, and commits before it deletes anything, like a vacuum. Passes are repeated until one that began after the last build
// had ended that may have read one of the files finds nothing left. Each can be repeated and interrupted anywhere.
type Erase struct {
	Vacuum *Vacuum // of it Overlay, Store, DryRun and Snapshots count
	// Known is the data files of all snapshots that the table retains, and whether each is to be forgotten. One that is not
	// listed is.
	Known map[DataFile]bool
	// Refresh adds to Known what the table got since. It is called in each pass after the newest version was read; nil: Known is final.
	Refresh func(context.Context) error
	// Deadline is how long builds under way are waited for.
	Deadline time.Duration
}

// Forgotten is an object that held values of the files, or may have, and what became of it.
type Forgotten struct {
	Key    string    `json:"key"`
	Kind   string    `json:"kind"`            // artifacts, file map, refusals, facts, sketch, roll, list, version, head, masks, other
	Index  []string  `json:"index,omitempty"` // ids
	Files  []string  `json:"data_files,omitempty"`
	Bytes  int64     `json:"bytes"`
	Action string    `json:"action"` // deleted, rewritten, kept, or to be deleted in a dry run
	Why    string    `json:"why"`
	When   time.Time `json:"when"`
}

// Unfinished is what an erasure could not end.
type Unfinished struct {
	Build string `json:"build"` // its id; "" where it is about something else
	What  string `json:"what"`
}

// EraseReport is what an erasure did, or would do.
type EraseReport struct {
	DryRun  bool         `json:"dry_run"`
	Version uint64       `json:"overlay_version"`
	Marked  int          `json:"marked"`  // data files of which nothing is built any more with their deleted rows
	Retired int          `json:"retired"` // artifacts that the newest version had and has no more
	Others  int          `json:"others"`  // of these, those about other files alone, which lay in the same bundles
	Objects []Forgotten  `json:"objects"`
	Left    []Unfinished `json:"left"`
	Passes  int          `json:"passes"`
}

const (
	actionDeleted   = "deleted"
	actionRewritten = "rewritten"
	actionKept      = "kept"
	actionWould     = "to be deleted"

	erasePoll = 500 * time.Millisecond
	maxPasses = 1000
)

// Run erases. After an error the report says what was done, and running again goes on.
func (c *Erase) Run(ctx context.Context) (*EraseReport, error) {
	e := &erasing{Erase: c, report: &EraseReport{DryRun: c.Vacuum.DryRun, Objects: []Forgotten{}, Left: []Unfinished{}}, watched: map[string]bool{}}
	return e.report, e.run(ctx)
}

// erasing is one run of an erasure.
type erasing struct {
	*Erase
	report  *EraseReport
	watched map[string]bool // builds that may have read one of the files
	*cleaning
}

func (e *erasing) run(ctx context.Context) error {
	until := time.Now().Add(e.Deadline)
	for quiet := false; ; {
		e.report.Passes++
		did, under, err := e.pass(ctx)
		if err != nil {
			return err
		}
		switch {
		case e.report.DryRun:
			return nil
		case !did && len(under) == 0 && quiet:
			return e.tellKept(ctx)
		case e.report.Passes == maxPasses || len(under) > 0 && !time.Now().Before(until):
			e.report.Left = under
			return e.tellKept(ctx)
		}
		quiet = !did && len(under) == 0 // what was declared before the commit may have ended since the listing
		if len(under) > 0 && !did && !pause(ctx, min(erasePoll, max(time.Until(until), time.Millisecond))) {
			return context.Cause(ctx)
		}
	}
}

// pass erases what there is, and tells whether there was anything and which builds may still write.
func (e *erasing) pass(ctx context.Context) (did bool, under []Unfinished, err error) {
	v := *e.Erase.Vacuum
	v.Grace = -clockLife // what was written while the objects were listed is not younger than that
	w := v.begin()
	e.cleaning = w
	if err := w.look(ctx); err != nil {
		return false, nil, err
	}
	if e.Refresh != nil { // what the version has of files that came meanwhile, or builds under way are about, is known then
		if err := e.Refresh(ctx); err != nil {
			return false, nil, err
		}
	}
	found, err := e.find(ctx)
	if err != nil {
		return false, nil, err
	}
	builds, ended, under := e.builds()
	w.unnamed(ctx) // masks of files that are gone
	if err := w.name(ctx, w.newest.Number()); err != nil {
		return false, nil, err
	}
	revoked := append(slices.Clone(builds), ended...)
	doomed, old := w.sort(revoked), w.expired(w.newest.Number())
	e.report.Version = w.newest.Number()
	if e.report.Passes == 1 || !found.empty() {
		e.report.Marked += len(found.marks)
	}
	if w.DryRun {
		e.preview(found, doomed, old)
		return false, under, nil
	}
	if found.empty() && len(doomed)+len(old)+len(builds)+len(ended) == 0 {
		return false, under, nil
	}
	return true, under, e.commit(ctx, found, builds, ended)
}

// commit ends what was found, and deletes what the new version does not name.
func (e *erasing) commit(ctx context.Context, found *traces, builds, ended []string) error {
	w := e.cleaning
	receipt, err := w.Overlay.Commit(ctx, w.newest,
		overlay.Retire(found.artifacts...), overlay.End(overlay.Ends{Oldest: math.MaxUint64, Builds: append(slices.Clone(builds), ended...)}),
		overlay.Erase(found.marks, found.derived))
	if err != nil {
		return err
	}
	w.newest = receipt.Version
	e.report.Version = w.newest.Number()
	e.report.Retired += len(found.artifacts)
	e.report.Others += found.others
	if w.versions, err = w.Overlay.Versions(ctx); err != nil {
		return err
	}
	if err := w.name(ctx, w.newest.Oldest()); err != nil {
		return err
	}
	revoked := slices.DeleteFunc(append(slices.Clone(builds), ended...), func(id string) bool { return !w.newest.Revoked(id) })
	doomed, old := w.sort(revoked), w.expired(w.newest.Oldest())
	err = w.remove(ctx, doomed, ended)
	now := time.Now().UTC()
	if err == nil {
		e.tell(found, doomed, old, actionDeleted, now)
	}
	return err
}

// builds tells which builds under way are to be revoked, which of them have ended without withdrawing, and what of the others to tell.
func (e *erasing) builds() (revoke, ended []string, under []Unfinished) {
	kept := map[string]bool{}
	for f, forget := range e.Known {
		if hash := fileHash(f.Path); forget {
			kept[hash] = false
		} else if _, known := kept[hash]; !known {
			kept[hash] = true
		}
	}
	for _, f := range e.flights {
		reads := len(f.Files) == 0 || slices.ContainsFunc(f.Files, func(h string) bool { return !kept[h] })
		switch {
		case e.over(f):
			ended = append(ended, f.BuildID)
			continue
		case !reads && !e.watched[f.BuildID]:
			continue
		case e.report.Passes <= 2: // later ones began with the marks before them
			e.watched[f.BuildID] = true
		case !e.watched[f.BuildID]:
			continue
		}
		if !e.newest.Revoked(f.BuildID) {
			revoke = append(revoke, f.BuildID)
		}
		what := "is under way"
		if !alive(f, e.now) {
			what = "has not been heard of since " + f.Renewed.UTC().Format(time.RFC3339)
		}
		if f.Host != "" {
			what += " on " + f.Host
		}
		under = append(under, Unfinished{f.BuildID, what + ": its artifacts will not be published, but it may still write an object"})
	}
	return revoke, ended, under
}

// over tells that the writer of a declaration certainly ended.
func (e *erasing) over(f overlay.InFlight) bool {
	switch {
	case f.Process == process.id:
		_, active := process.active.Load(f.BuildID)
		return !active
	case f.Host != "" && f.Host == process.host && f.PID > 0 && f.PID != process.pid:
		return !running(f.PID)
	}
	return false
}

// tell reports objects that are gone, with what the bundles among them said of themselves.
func (e *erasing) tell(found *traces, doomed []doom, old []overlay.Object, action string, when time.Time) {
	add := func(key, kind, why string, size int64) {
		f := Forgotten{Key: key, Kind: kind, Bytes: size, Action: action, Why: why, When: when}
		if t, ok := found.objects[key]; ok {
			f.Kind, f.Index, f.Files, f.Why = t.kind, t.indexes, t.files, t.why
		}
		e.report.Objects = append(e.report.Objects, f)
	}
	for _, d := range doomed {
		if strings.HasPrefix(d.Key, e.Overlay.DataKey(clockName)) {
			continue
		}
		add(d.Key, kindOfPlace(d), "no version names it any more", d.Size)
	}
	for _, v := range old {
		if !v.Stub() {
			add(v.Key, "version", "ended: it named what is gone", v.Size)
		}
	}
}

func kindOfPlace(d doom) string {
	switch d.place {
	case "data":
		return "artifacts"
	case "chunks":
		return "list"
	case "stats":
		return "sketch"
	case "masks":
		return "masks"
	}
	return "other"
}

// preview reports what a dry run found.
func (e *erasing) preview(found *traces, doomed []doom, old []overlay.Object) {
	e.report.Retired, e.report.Others = len(found.artifacts), found.others
	for _, in := range e.objects {
		_, hit := found.objects[in.Key]
		list := kindOfPlace(doom{place: e.place(in.Key)}) == "list" && !found.empty()
		if (hit || list) && !slices.ContainsFunc(doomed, func(d doom) bool { return d.Key == in.Key }) {
			doomed = append(doomed, doom{in, e.place(in.Key), ""})
		}
	}
	if !found.empty() {
		old = e.versions
	}
	e.tell(found, doomed, old, actionWould, time.Time{})
}

// tellKept reports what stays and is about the files all the same, because it holds no value.
func (e *erasing) tellKept(ctx context.Context) error {
	now := time.Now().UTC()
	newest, err := e.Overlay.Latest(ctx)
	if err != nil {
		return err
	}
	masks := Tally{}
	for _, in := range e.objects {
		if e.place(in.Key) == "masks" && !e.masks[in.Key] {
			masks = Tally{masks.Objects + 1, masks.Bytes + in.Size}
		}
	}
	if masks.Objects > 0 {
		e.report.Objects = append(e.report.Objects, Forgotten{
			Key: e.Overlay.Prefix() + "/masks/", Kind: "masks", Bytes: masks.Bytes, Action: actionKept, Why: "positions of deleted rows, no values", When: now,
		})
	}
	e.report.Version = newest.Number()
	return e.head(ctx, newest, now)
}

// headWait is how long the readable head is waited for: a process that is paused may have it locked.
const headWait = 5 * time.Second

// head makes sure that the readable head, which may repeat lists of its version, is not of one from before. It is written and not deleted,
// so that nobody who was about to write an older one can.
func (e *erasing) head(ctx context.Context, newest *overlay.Version, now time.Time) error {
	f := Forgotten{
		Key: e.Overlay.Prefix() + "/" + overlay.HeadName, Kind: "head", Action: actionRewritten, Why: "repeats the newest version alone", When: now,
	}
	e.Overlay.Close() // it is written behind commits
	ctx, cancel := context.WithTimeout(ctx, headWait)
	defer cancel()
	switch h, err := e.Overlay.ReadHead(ctx); {
	case fault.Is(err, fault.NotFound) && newest.ErasedIn() == 0:
		return nil
	case err != nil && !fault.Is(err, fault.Corrupt) && !fault.Is(err, fault.NotFound):
		return err
	case err != nil || h.OverlayVersion < newest.ErasedIn():
		if err := e.Overlay.PutHead(ctx, newest); err != nil {
			e.report.Left = append(e.report.Left, Unfinished{What: f.Key + " is of a version from before, and cannot be written: " + err.Error()})
			return nil
		}
	}
	e.report.Objects = append(e.report.Objects, f)
	return nil
}

// traces is what of the newest version holds values of the files.
type traces struct {
	marks     []overlay.Identity
	artifacts []overlay.Key
	others    int // artifacts of other files alone
	derived   []overlay.DerivedKey
	objects   map[string]*trace // by key
	fresh     bool              // a mark is new
}

type trace struct {
	kind, why      string
	indexes, files []string
}

func (t *traces) empty() bool { return !t.fresh && len(t.artifacts)+len(t.derived) == 0 }

func (t *traces) note(key, kind, why, index string, files ...string) {
	x := t.objects[key]
	if x == nil {
		x = &trace{kind: kind, why: why}
		t.objects[key] = x
	}
	if index != "" && !slices.Contains(x.indexes, index) {
		x.indexes = append(x.indexes, index)
	}
	for _, f := range files {
		if !slices.Contains(x.files, f) {
			x.files = append(x.files, f)
		}
	}
}

// forgets tells whether the values of a data file are to be forgotten.
func (e *erasing) forgets(f DataFile) bool {
	forget, known := e.Known[f]
	return forget || !known
}
