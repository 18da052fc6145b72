package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/fault"
)

const longSync = `Brings the indexes of a table to its present snapshot: builds what is missing, one data file or segment at a time, and
publishes in batches, as a rule every ten seconds at the latest, once a data file is finished. A sync that is interrupted loses nothing that
was published; run it again and it goes on. Several at
once, on one host or many, share the work. Queries work all the time: files without an index are scanned.

--follow syncs again and again, about that long apart, until the process gets SIGINT or SIGTERM; trouble that may pass is
reported and tried again. A table opened by its metadata.json is pinned to it; catalogs and table folders move on.

--sweep first compares the entity tags of all indexed files with the store's, by listing where that is allowed: indexes of a file
that was overwritten in place are withdrawn and built anew. --follow sweeps once a day. Where no tag could be looked up at all, the
exit code is 8, and --follow sweeps again with the next sync.

Where the last sync found every file covered, and since then files only came to the table, a sync looks at these alone: it costs about
the same whatever the size of the table. --whole looks at every file, as each sync does once a day, and heals what was lost or damaged.

--max-cost ends the sync before the next unit would exceed so many US dollars, estimated by requests and bytes at the list
prices of S3, reads at those between regions. --until ends it when every index covers so many percent of the rows.

PATTERN is namespace.* or catalog.namespace.*: the tables of the namespace that match and are mounted are synced one after another. One
that fails does not keep the others from it; the exit code is that of the first failure. --max-cost bounds them together.`

// syncFlags are the flags of sync.
type syncFlags struct {
	once          bool
	follow, every time.Duration
	until         string
	options       skomer.SyncOptions
	spent         bool // nothing is left of --max-cost, of several tables
}

func (a *app) syncCommand() *cobra.Command {
	var f syncFlags
	cmd := &cobra.Command{
		Use: "sync TABLE|PATTERN", Short: "Build what the indexes of a table lack", Long: longSync,
		Example: `  skomer sync lake/flights
  skomer sync prod.web.events --follow 1m --workers 4
  skomer sync prod.web.events --sweep --max-cost 2.50 --until 95 -o json
  skomer sync 'prod.web.*'`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.document(); err != nil {
				return err
			}
			if err := f.check(cmd.Flags().Changed); err != nil {
				return err
			}
			if skomer.IsPattern(args[0]) {
				return a.syncAll(cmd.Context(), args[0], f)
			}
			t, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if f.follow > 0 {
				return a.follow(cmd.Context(), t, f)
			}
			report, err := a.sync(cmd.Context(), t, f.options)
			if err != nil {
				return err
			}
			if err := a.synced(report); err != nil {
				return err
			}
			if err := blind(args[0], report); err != nil || a.flags.output == "json" || report.Artifacts == 0 {
				return err
			}
			indexes, err := t.Indexes(cmd.Context())
			if err != nil {
				return err
			}
			a.sayCapped(indexes)
			return nil
		},
	}
	p := cmd.Flags()
	p.BoolVar(&f.once, "once", false, "sync once and end; the default")
	p.Var((*age)(&f.follow), "follow", "sync again and again, about this long apart, such as 1m")
	p.BoolVar(&f.options.Sweep, "sweep", false, "look for data files that were overwritten in place first")
	p.BoolVar(&f.options.Whole, "whole", false, "look at every file of the table, not at those alone that came since the last sync")
	p.Var((*age)(&f.every), "sweep-every", "with --follow: time between sweeps; 0: never (default 1d)")
	wholeFlag(cmd, &f.options.Workers, "workers", 0, 0, "units to build side by side (default: one a core)")
	p.Var(&amount{&f.options.MaxCost}, "max-cost", "end before the sync costs more than so many US dollars (default: no limit)")
	p.StringVar(&f.until, "until", "", "end when every index covers so many percent of the rows, such as 95 (default: all that can be built)")
	return cmd
}

// check refuses flags that contradict each other.
func (f *syncFlags) check(given func(string) bool) error {
	switch {
	case given("follow") && (f.once || f.follow <= 0):
		return fault.New(fault.Invalid, "--follow", "needs a time above 0 and no --once")
	case given("sweep-every") && f.follow == 0:
		return fault.New(fault.Invalid, "--sweep-every", "is about --follow").WithFix("pass --sweep to sweep once")
	case given("max-cost") && f.options.MaxCost <= 0:
		return fault.New(fault.Invalid, "--max-cost", "must be above 0 US dollars")
	}
	if given("sweep-every") && f.every == 0 {
		f.every = -1
	}
	if f.until == "" {
		return nil
	}
	until, ok := percentage(f.until)
	if !ok {
		return fault.New(fault.Invalid, "--until", "%q is not a percentage", f.until)
	}
	f.options.Until = until
	return nil
}

// follow syncs until the command is interrupted.
func (a *app) follow(ctx context.Context, t *skomer.Table, f syncFlags) error {
	last := ""
	if !a.flags.quiet && a.flags.output != "json" {
		f.options.Progress = spoken(a.err, progressEvery)
	}
	return t.Follow(ctx, skomer.FollowOptions{
		SyncOptions: f.options, Every: f.follow, SweepEvery: f.every,
		Synced: func(r *skomer.SyncReport, err error) {
			switch {
			case err != nil:
				printError(a.err, err, a.flags.output == "json")
			case a.flags.output == "json":
				_ = a.json(r) // a reader that went away is told of by the shell
			default:
				if line := followed(r); line != last || r.FilesIndexed > 0 {
					a.say("%s  %s", moment(time.Now()), line)
					last = line
				}
			}
		},
	})
}

// followed is one sync in one line.
func followed(r *skomer.SyncReport) string {
	line := fmt.Sprintf("snapshot %d, overlay version %d, %s indexed", r.SnapshotID, r.OverlayVersion, counted(r.FilesIndexed, "file"))
	if s := r.Swept; s != nil && s.Withdrawn > 0 {
		line += fmt.Sprintf(", %s of overwritten files withdrawn", counted(s.Withdrawn, "artifact"))
	}
	if s := r.Swept; s != nil && s.Unchecked > 0 {
		line += fmt.Sprintf(", tags of %s could not be looked up", counted(s.Unchecked, "file"))
	}
	if len(r.Skipped) > 0 {
		line += fmt.Sprintf(", %s cannot be indexed", counted(len(r.Skipped), "file"))
	}
	if r.Stopped != "" {
		line += ", ended early: " + r.Stopped
	}
	return line
}

// blind is the failure of a sweep that could not look up a single tag. The sync was made all the same.
func blind(name string, r *skomer.SyncReport) error {
	if !r.Swept.Blind() {
		return nil
	}
	return fault.New(fault.Unreachable, name, "the sweep compared nothing: not one entity tag of %s could be looked up", counted(r.Swept.Unchecked, "file")).
		WithFix("skomer doctor %s", name)
}

func (a *app) synced(r *skomer.SyncReport) error {
	if a.flags.output == "json" {
		return a.json(r)
	}
	return a.showSync(r)
}

// sync runs with a progress bar where standard error is a terminal.
func (a *app) sync(ctx context.Context, t *skomer.Table, options skomer.SyncOptions) (*skomer.SyncReport, error) {
	end := a.progress(&options)
	defer end()
	return t.Sync(ctx, options)
}

// progressEvery is how far lines of progress lie apart where there is no terminal for a bar.
const progressEvery = 30 * time.Second

// spoken writes a line about progress now and then, for logs.
func spoken(w io.Writer, every time.Duration) func(skomer.SyncProgress) {
	var mu sync.Mutex
	last := time.Now()
	return func(p skomer.SyncProgress) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) < every {
			return
		}
		last = time.Now()
		_, _ = fmt.Fprintf(w, "%s  %s\n", moment(last), soFar(p)) // a log that cannot be written is no reason to stop
	}
}

// soFar is how far a sync is, and how long it may take on.
func soFar(p skomer.SyncProgress) string {
	left := ""
	if p.Left > 0 {
		left = fmt.Sprintf(", about %s left", p.Left.Round(time.Second))
	}
	return fmt.Sprintf("indexing: %d of %d %s%s", p.FilesDone, p.FilesTotal, render.Plural(p.FilesTotal, "file"), left)
}

// progress draws a progress bar where standard error is a terminal, else it writes a line now and then; end removes the bar.
func (a *app) progress(options *skomer.SyncOptions) (end func()) {
	end = func() {}
	switch {
	case a.flags.quiet:
	case !terminal(a.err) && a.flags.output != "json": // errors are JSON there
		options.Progress = spoken(a.err, progressEvery)
	case terminal(a.err):
		bar := progressbar.NewOptions64(1,
			progressbar.OptionSetWriter(a.err), progressbar.OptionSetDescription("indexing"), progressbar.OptionSetWidth(30),
			progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish(),
		)
		end = func() { _ = bar.Finish() }
		options.Progress = func(p skomer.SyncProgress) {
			bar.ChangeMax64(max(p.RowsTotal, 1))
			bar.Describe(soFar(p))
			_ = bar.Set64(p.RowsDone) // a terminal that cannot be drawn on is no reason to stop
		}
	}
	return end
}

func swept(s *skomer.Swept) string {
	line := fmt.Sprintf("%s, %s with another tag: %s with the same content, %s withdrawn",
		counted(s.Files, "file"), number(s.Changed), number(s.Restamped), counted(s.Withdrawn, "artifact"))
	if s.Unchecked > 0 {
		line += fmt.Sprintf("; tags of %s could not be looked up", number(s.Unchecked))
	}
	return line
}

func (a *app) showSync(r *skomer.SyncReport) error {
	rows := [][2]string{
		{"snapshot", fmt.Sprint(r.SnapshotID)},
		{"overlay version", fmt.Sprint(r.OverlayVersion)},
		{"files indexed", number(r.FilesIndexed)},
		{"artifacts", number(r.Artifacts)},
		{"bundles", number(r.Bundles)},
	}
	if r.Carried > 0 {
		rows = append(rows, [2]string{"carried over", number(r.Carried)})
	}
	if len(r.Released) > 0 {
		rows = append(rows, [2]string{"speaks again", strings.Join(r.Released, ", ")})
	}
	if s := r.Swept; s != nil {
		rows = append(rows, [2]string{"swept", swept(s)})
	}
	rows = append(rows,
		[2]string{"read", size(r.BytesRead)},
		[2]string{"written", size(r.BytesWritten)},
		[2]string{"time", fmt.Sprintf("%.2f s", r.Seconds)},
	)
	if r.Stopped != "" {
		rows = append(rows, [2]string{"ended early", r.Stopped})
	}
	if err := a.pairs(rows...); err != nil {
		return err
	}
	for _, file := range slices.Sorted(maps.Keys(r.Skipped)) {
		a.say("not indexed: %s: %s", file, r.Skipped[file])
	}
	for _, id := range slices.Sorted(maps.Keys(r.Declined)) {
		a.say("not kept: index %s: %s", id, r.Declined[id])
	}
	return nil
}
