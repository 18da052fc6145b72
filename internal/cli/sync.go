package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
)

const longSync = `Brings the indexes of a table to its present snapshot: builds what is missing, one data file or segment at a time, and
publishes in batches. A sync that is interrupted loses nothing that was published; run it again and it goes on. Queries
work all the time: files without an index are scanned.`

func (a *app) syncCommand() *cobra.Command {
	return &cobra.Command{
		Use: "sync TABLE", Short: "Build what the indexes of a table lack", Long: longSync,
		Example: `  skomer sync lake/flights
  skomer sync prod.web.events --timeout 1h -o json`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.document(); err != nil {
				return err
			}
			t, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			report, err := a.sync(cmd.Context(), t)
			if err != nil {
				return err
			}
			if a.flags.output == "json" {
				return a.json(report)
			}
			return a.showSync(report)
		},
	}
}

// sync runs with a progress bar where standard error is a terminal.
func (a *app) sync(ctx context.Context, t *skomer.Table) (*skomer.SyncReport, error) {
	var options skomer.SyncOptions
	if terminal(a.err) && !a.flags.quiet {
		bar := progressbar.NewOptions64(1,
			progressbar.OptionSetWriter(a.err), progressbar.OptionSetDescription("indexing"), progressbar.OptionSetWidth(30),
			progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish(),
		)
		defer func() { _ = bar.Finish() }()
		options.Progress = func(p skomer.SyncProgress) {
			bar.ChangeMax64(max(p.RowsTotal, 1))
			left := ""
			if p.Left > 0 {
				left = fmt.Sprintf(", about %s left", p.Left.Round(1e9))
			}
			bar.Describe(fmt.Sprintf("indexing: %d of %d files%s", p.FilesDone, p.FilesTotal, left))
			_ = bar.Set64(p.RowsDone) // a terminal that cannot be drawn on is no reason to stop
		}
	}
	return t.Sync(ctx, options)
}

func (a *app) showSync(r *skomer.SyncReport) error {
	err := a.pairs(
		[2]string{"snapshot", fmt.Sprint(r.SnapshotID)},
		[2]string{"overlay version", fmt.Sprint(r.OverlayVersion)},
		[2]string{"files indexed", number(r.FilesIndexed)},
		[2]string{"artifacts", number(r.Artifacts)},
		[2]string{"bundles", number(r.Bundles)},
		[2]string{"read", size(r.BytesRead)},
		[2]string{"written", size(r.BytesWritten)},
		[2]string{"time", fmt.Sprintf("%.2f s", r.Seconds)},
	)
	if err != nil {
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
