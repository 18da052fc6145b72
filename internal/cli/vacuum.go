package cli

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/fault"
)

const longVacuum = `Deletes what the indexes of a table no longer need: what only old overlay versions name, what a build left that died, and
what is about data files that no snapshot of the table has any more. Nothing of the table is touched.

A version is kept if it is one of the newest --retain, or was the newest within --retain-for; --retain 7d is the same as
--retain-for 7d. What was written, or went out of use, within --grace stays in any case, so that queries and builds that are under way
are not disturbed. Time is the store's. A vacuum that finds nothing in use, but bundles, refuses to delete them all.`

func (a *app) vacuumCommand() *cobra.Command {
	var o skomer.VacuumOptions
	retain, retainFor, grace := retention{count: 1}, age(7*24*time.Hour), age(time.Hour)
	cmd := &cobra.Command{
		Use: "vacuum TABLE", Short: "Delete what no index needs any more", Long: longVacuum,
		Example: `  skomer vacuum lake/flights --dry-run
  skomer vacuum lake/flights --retain 7d
  skomer vacuum lake/flights --retain 10 --retain-for 12h`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if retain.timed && cmd.Flags().Changed("retain-for") {
				return fault.New(fault.Invalid, "--retain", "is a length of time, and so is --retain-for").WithFix("give one of them, or a number of versions with --retain")
			}
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			o.Retain, o.RetainFor, o.Grace = retain.count, time.Duration(retainFor), time.Duration(grace)
			switch given := cmd.Flags().Changed; {
			case retain.timed:
				o.RetainFor = time.Duration(retain.within)
			case given("retain") && !given("retain-for"):
				o.RetainFor = 0
			}
			if o.Grace == 0 {
				o.Grace = -1
			}
			report, err := t.Vacuum(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.showVacuum(report)
		},
	}
	f := cmd.Flags()
	f.Var(&retain, "retain", "keep so many of the newest overlay versions, such as 10, and only these without --retain-for; or a time, as --retain-for does, such as 7d")
	f.Var(&retainFor, "retain-for", "keep the versions that were the newest within this time, such as 12h or 7d")
	f.Var(&grace, "grace", "keep what was written or went out of use within this time")
	f.BoolVar(&o.DryRun, "dry-run", false, "show what would be deleted")
	f.BoolVar(&o.AllowEmpty, "allow-empty", false, "delete all bundles, if no version needs one")
	return cmd
}

func (a *app) showVacuum(r *skomer.VacuumReport) error {
	if a.flags.output == "json" {
		return a.json(r)
	}
	deleted, expired := "deleted", "expired versions"
	if r.DryRun {
		deleted, expired = "would be deleted", "versions that would expire"
	}
	err := a.pairs(
		[2]string{"overlay version", fmt.Sprint(r.Version)},
		[2]string{"oldest version kept", fmt.Sprint(r.Oldest)},
		[2]string{expired, number(r.Expired)},
		[2]string{"artifacts of files that are gone", number(r.Retired)},
		[2]string{"dead builds", number(len(r.Revoked))},
	)
	if err != nil {
		return err
	}
	if err := a.blocks(tallies(deleted, r.Deleted), tallies("kept", r.Kept)); err != nil {
		return err
	}
	for _, w := range r.Warnings {
		a.hint("warning: %s", w)
	}
	return nil
}

// tallies is objects and bytes by reason.
func tallies(what string, by map[string]skomer.Tally) table.Writer {
	tw := render.Plain()
	if len(by) == 0 {
		return tw
	}
	tw.AppendHeader(table.Row{what, "objects", "bytes"})
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		tw.AppendRow(table.Row{reason, number(by[reason].Objects), size(by[reason].Bytes)})
	}
	return tw
}
