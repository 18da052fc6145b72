package cli

import (
	"context"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/fault"
)

const longUpgrade = `Writes the newest version of the overlay, and the lists that it names, in the format of this build, in one commit. Older builds may then
not be able to read it. Artifacts stay as they are: skomer reindex builds those anew that an older format made.`

func (a *app) overlayUpgrade() *cobra.Command {
	return &cobra.Command{
		Use: "upgrade TABLE", Short: "Write the overlay in the present format", Long: longUpgrade,
		Example: `  skomer overlay upgrade lake/flights`,
		Args:    takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			r, err := t.UpgradeOverlay(cmd.Context())
			if err != nil {
				return err
			}
			if a.flags.output == "json" {
				return a.json(r)
			}
			return a.pairs([2]string{"overlay version", fmt.Sprint(r.Version)}, [2]string{"format before", fmt.Sprint(r.From)}, [2]string{"format now", fmt.Sprint(r.To)})
		},
	}
}

const longLegacy = `Lists loose sidecars of format version 1, one object for one index of one data file, by the JSON manifests at a place: a file or a
folder. Such a sidecar does not say of which bytes it was made, so that none is ever believed, with a checksum of its own or without.
skomer reindex TABLE --from PLACE declares the indexes that take their place and builds them from the table's data.`

func (a *app) overlayLegacy() *cobra.Command {
	from := ""
	cmd := &cobra.Command{
		Use: "legacy TABLE --from PLACE", Short: "List loose sidecars of an older kind", Long: longLegacy,
		Example: `  skomer overlay legacy lake/flights --from s3://acme-index/sidecars`,
		Args:    takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.document(); err != nil {
				return err
			}
			if from == "" {
				return fault.New(fault.Invalid, subject(cmd), "needs --from PLACE").WithFix("skomer overlay legacy --help")
			}
			t, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			all, err := t.LegacySidecars(cmd.Context(), from)
			if err != nil {
				return err
			}
			if a.flags.output == "json" {
				return a.json(all)
			}
			tw := render.Plain()
			tw.AppendHeader(table.Row{"sidecar", "format", "column", "algorithm", "state", "becomes"})
			for _, x := range all {
				becomes := x.Becomes
				if becomes == "" {
					becomes = "nothing: " + x.Reason
				}
				tw.AppendRow(table.Row{x.Sidecar, x.FormatVersion, x.Column, x.Algorithm, x.State, becomes})
			}
			if err := render.Print(a.out, tw); err != nil {
				return err
			}
			a.hint("next: skomer reindex %s --from %s", args[0], from)
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "where the JSON manifests lie: a file or a folder")
	return cmd
}

// migrate declares and builds what takes the place of loose sidecars.
func (a *app) migrate(ctx context.Context, t *skomer.Table, index, from string, o skomer.SyncOptions) error {
	if index != "" {
		return fault.New(fault.Invalid, "reindex", "takes either an index or --from")
	}
	all, r, err := t.MigrateLegacy(ctx, from, o)
	for _, x := range all {
		if x.Becomes == "" {
			a.hint("left out: %s of %s: %s", x.Algorithm, x.Column, x.Reason)
		}
	}
	if err != nil {
		return err
	}
	return a.synced(r)
}
