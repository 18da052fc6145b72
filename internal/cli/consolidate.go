package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
)

const longConsolidate = `Merges the bundles of a table's indexes, so that there are few large ones instead of many small. Segments of several data files
become one, indexes of single data files are put beside each other, and what is about files that no snapshot of the table has any
more is left behind. No data file is read.

Bundles are merged in tiers: sixteen of one size make one of the next, up to 4 million rows or 256 files. Syncs do this too,
whenever a tier is full. Queries work all the time; old bundles stay for readers until a vacuum.`

func (a *app) consolidateCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "consolidate TABLE", Short: "Merge many small bundles of indexes into few", Long: longConsolidate,
		Example: `  skomer consolidate lake/flights
  skomer consolidate prod.web.events --dry-run -o json`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			report, err := t.Consolidate(cmd.Context(), dry)
			if err != nil {
				return err
			}
			if a.flags.output == "json" {
				return a.json(report)
			}
			return a.showConsolidation(report)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only tell what would be merged")
	return cmd
}

func (a *app) showConsolidation(r *skomer.ConsolidateReport) error {
	err := a.pairs(
		[2]string{"overlay version", fmt.Sprint(r.OverlayVersion)},
		[2]string{"bundles", fmt.Sprintf("%s, were %s", number(r.BundlesAfter), number(r.BundlesBefore))},
		[2]string{"merges", number(r.Merges)},
		[2]string{"segments merged", number(r.Segments)},
		[2]string{"artifacts copied", number(r.Copied)},
		[2]string{"files left out", number(r.DroppedFiles)},
		[2]string{"artifacts retired", number(r.Retired)},
		[2]string{"read", size(r.BytesRead)},
		[2]string{"written", size(r.BytesWritten)},
		[2]string{"time", fmt.Sprintf("%.2f s", r.Seconds)},
	)
	if err != nil {
		return err
	}
	for _, bundle := range slices.Sorted(maps.Keys(r.PassedOver)) {
		a.say("stays as it is: %s: %s", bundle, r.PassedOver[bundle])
	}
	for _, id := range slices.Sorted(maps.Keys(r.Unmerged)) {
		a.say("not merged: index %s: %s", id, r.Unmerged[id])
	}
	return nil
}
