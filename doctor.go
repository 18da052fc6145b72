package skomer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/store/probe"
)

// Verdict is how a check went.
type Verdict string

// The verdicts. A warning is about what can be done without.
const (
	Well    Verdict = "ok"
	Warning Verdict = "warn"
	Failed  Verdict = "fail"
)

// Check is one thing that was looked at.
type Check struct {
	Name    string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"` // what was found, or what is wrong
	Fix     string  `json:"fix,omitempty"`
}

// Health is what Doctor found.
type Health struct {
	Checks []Check `json:"checks"`
	// Table is the places that a table's files lie in, as its store is asked for them; Overlay is that of its overlay. Both are
	// empty as far as they could not be found out.
	Table   []string `json:"table,omitempty"`
	Overlay string   `json:"overlay,omitempty"`
}

// Healthy reports whether no check has failed.
func (h *Health) Healthy() bool {
	return !slices.ContainsFunc(h.Checks, func(c Check) bool { return c.Verdict == Failed })
}

const (
	soon      = 10 * time.Minute // credentials that end within it are told of
	skewed    = time.Minute      // clocks further apart are told of
	mostRoots = 20               // of places that a table's files lie in
)

// Doctor checks, one after another, what a table and its overlay need: the catalog, the table's files, and that the overlay can be
// written safely, with objects of its own that it removes again. Without a table it checks the catalogs and the overlay root.
func (c *Client) Doctor(ctx context.Context, table string, o TableOptions) *Health {
	d := &doctor{client: c}
	if table == "" {
		d.catalogs(ctx)
		d.root(ctx)
		return &d.Health
	}
	d.table(ctx, table, o)
	return &d.Health
}

type doctor struct {
	Health
	client *Client
}

// say adds a check: well with a note, or with an error whose verdict is otherwise.
func (d *doctor) say(name, note string, err error, otherwise Verdict) bool {
	c := Check{Name: name, Verdict: Well, Reason: note}
	if err != nil {
		c = Check{Name: name, Verdict: otherwise, Reason: err.Error(), Fix: fault.FixOf(err)}
	}
	d.Checks = append(d.Checks, c)
	return err == nil
}

// findings adds those of a probe.
func (d *doctor) findings(of string, all ...probe.Finding) {
	for _, f := range all {
		d.say(of+": "+f.Name, f.Note, f.Err, Failed)
	}
}

func (d *doctor) catalogs(ctx context.Context) {
	for _, name := range d.client.stores.known.Names() {
		d.catalog(ctx, name)
	}
}

func (d *doctor) catalog(ctx context.Context, name string) {
	note, err := d.client.stores.catalogs.Check(ctx, name)
	d.say("catalog "+name, note, err, Failed)
}

// root checks the overlay root as overlays that are yet to be made would meet it.
func (d *doctor) root(ctx context.Context) {
	root, err := d.client.overlayRoot()
	if d.say("overlay root", root, err, Failed) {
		d.writable(ctx, "", strings.TrimRight(root, "/"))
	}
}

func (d *doctor) table(ctx context.Context, name string, o TableOptions) {
	if of := d.client.stores.known.Of(name); lake.Named(name) && of != "" {
		d.catalog(ctx, of)
	}
	t, err := d.client.Open(ctx, name, o)
	if !d.say("table", "its metadata was read", err, Failed) {
		d.root(ctx)
		return
	}
	defer t.Close()
	path := t.metadata().MetadataPath()
	d.Checks[len(d.Checks)-1].Reason = path
	s, key, err := d.client.stores.table(name)(path)
	if d.say("table store", "", err, Failed) {
		d.identity(ctx, "table store", s, path)
		d.findings("table", probe.Reads(ctx, s, key)...)
	}
	d.files(ctx, t, s)
	listed := probe.Lists(ctx, s, strings.TrimSuffix(key, key[strings.LastIndex(key, "/")+1:]))
	d.say("table: list", listed.Note, listed.Err, Warning)
	d.Overlay = t.Overlay()
	if !d.say("overlay", d.Overlay, overlay.CheckApart(d.Overlay, t.Location()), Failed) {
		return
	}
	if d.writable(ctx, name, d.Overlay) {
		d.mounted(ctx, t)
	}
}

// files reads of a data file of the current snapshot, and finds out where all of them lie.
func (d *doctor) files(ctx context.Context, t *Table, s store.Store) {
	d.Table = []string{t.Location()}
	if where := t.metadata().MetadataPath(); strings.Contains(where, "/metadata/") {
		d.Table[0] = where[:strings.LastIndex(where, "/metadata/")]
	}
	now, err := t.snapshot(ctx, "")
	if err != nil {
		d.say("snapshot", "", err, Failed)
		return
	}
	d.say("snapshot", fmt.Sprintf("%d with %d data files", now.ID, now.Files.Len()), nil, Failed)
	for _, path := range now.Files.Path {
		within := func(root string) bool { return strings.HasPrefix(path, root+"/") }
		if len(d.Table) < mostRoots && !slices.ContainsFunc(d.Table, within) {
			d.Table = append(d.Table, rootOf(path))
		}
	}
	if now.Files.Len() > 0 {
		d.findings("data file", probe.Reads(ctx, s, now.Files.Path[0])...)
	}
}

// rootOf is the place that files beside a data file lie in: the folder above data, else its own.
func rootOf(path string) string {
	if at := strings.Index(path, "/data/"); at > 0 {
		return path[:at]
	}
	return path[:strings.LastIndex(path, "/")]
}

// identity tells who a store is spoken to as, and warns of credentials that end soon.
func (d *doctor) identity(ctx context.Context, name string, s store.Store, location string) bool {
	check := &d.Checks[len(d.Checks)-1]
	if check.Name != name {
		d.say(name, "", nil, Failed)
		check = &d.Checks[len(d.Checks)-1]
	}
	if !lake.Remote(location) {
		check.Reason = "local files"
		return true
	}
	id, known, err := store.IdentityOf(ctx, s)
	switch {
	case err != nil:
		*check = Check{Name: name, Verdict: Failed, Reason: err.Error(), Fix: fault.FixOf(err)}
		return false
	case !known:
		return true
	}
	check.Reason = strings.TrimSpace(id.Name + " " + id.Source)
	if id.Expires.IsZero() {
		return true
	}
	check.Reason += ", until " + id.Expires.UTC().Format(time.RFC3339)
	if time.Until(id.Expires) < soon {
		check.Verdict, check.Fix = Warning, "long work needs credentials that are renewed"
	}
	return true
}

// writable checks that an overlay can be written at a place.
func (d *doctor) writable(ctx context.Context, table, at string) bool {
	s, key, err := d.client.stores.overlay(table)(at)
	if !d.say("overlay store", "", err, Failed) || !d.identity(ctx, "overlay store", s, at) {
		return false
	}
	if !lake.Remote(at) {
		s = local.New(local.Under(existing(key))) // removes the folders that the check made, too
	}
	w := probe.Writes(ctx, s, strings.TrimRight(key, "/")+"/doctor/")
	d.findings("overlay", w.Findings...)
	for i := range d.Checks {
		if c := &d.Checks[i]; c.Name == "overlay: delete" && c.Verdict == Failed {
			c.Verdict, c.Fix = Warning, strings.TrimPrefix(c.Fix+"; without it nothing of an overlay can be removed", "; ")
		}
	}
	if w.Known {
		d.clock(w.Skew)
	}
	return !slices.ContainsFunc(w.Findings, func(f probe.Finding) bool { return f.Err != nil && f.Name != "delete" })
}

// existing is the folder itself, or the nearest one above it that exists.
func existing(folder string) string {
	for {
		if info, err := os.Stat(folder); err == nil && info.IsDir() || filepath.Dir(folder) == folder {
			return folder
		}
		folder = filepath.Dir(folder)
	}
}

func (d *doctor) clock(skew time.Duration) {
	var err error
	if skew.Abs() > skewed {
		err = fault.New(fault.Invalid, "", "the store's clock and this machine's are %s apart", skew.Abs().Round(time.Second)).
			WithFix("set this machine's clock: requests are signed by it")
	}
	d.say("clock", "the store's and this machine's agree", err, Warning)
}

func (d *doctor) mounted(ctx context.Context, t *Table) {
	v, err := t.current(ctx)
	switch {
	case err != nil:
		d.say("mount", "", err, Failed)
	case v == nil:
		d.say("mount", "", fault.New(fault.NotFound, "", "not mounted").WithFix("skomer mount %s", t.name), Warning)
	case v.Broken() != nil:
		d.say("mount", "", v.Broken(), Failed)
	case t.same(v.Table()) != nil:
		d.say("mount", "", t.same(v.Table()), Failed)
	default:
		d.say("mount", fmt.Sprintf("version %d, %d indexes", v.Number(), len(v.Indexes())), nil, Failed)
	}
}
