package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer/internal/fault"
)

const longMount = `Creates the overlay of a table: the folder that will hold its indexes. Nothing is built yet, and nothing is ever written
to the table; read access to it is enough. The overlay must not lie inside the table's folder. Mounting twice is no error.`

func (a *app) mountCommand() *cobra.Command {
	return &cobra.Command{
		Use: "mount TABLE", Short: "Create the overlay of a table", Long: longMount,
		Example: `  skomer mount lake/flights
  skomer mount prod.web.events
  skomer mount /data/copied/metadata/v7.metadata.json --map s3://bucket/events=/data/copied
  skomer mount lake/flights --overlay /mnt/fast/flights-index`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := t.Mount(cmd.Context()); err != nil {
				return err
			}
			if err := a.showStatus(cmd.Context(), t); err != nil {
				return err
			}
			a.hint("next: skomer index add %s 'bloom(COLUMN)'", args[0])
			return nil
		},
	}
}

const longUnmount = `Stops using the indexes of a table. Nothing is deleted, and mounting again finds everything. With --purge everything that Skomer
wrote for the table is deleted, but for a record of a few hundred bytes, so that no number of a version is used twice. The
table is not touched, and every query gives the same answer as before, by scanning.

Without TABLE, --purge deletes the overlay at --overlay, whatever its table: one that was dropped from its catalog, for example.`

func (a *app) unmountCommand() *cobra.Command {
	var purge bool
	cmd := &cobra.Command{
		Use: "unmount [TABLE]", Short: "Stop using the indexes of a table", Long: longUnmount,
		Example: `  skomer unmount lake/flights
  skomer unmount lake/flights --purge
  skomer unmount --purge --overlay s3://acme-index/skomer/67c181d9-3007-4583-aabb-78b3191f43ba`,
		Args: takes(0, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.purgeOverlay(cmd.Context(), purge)
			}
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if purge {
				report, err := t.Purge(cmd.Context())
				if err != nil {
					return err
				}
				return a.showVacuum(report)
			}
			if err := t.Unmount(cmd.Context()); err != nil {
				return err
			}
			a.hint("the overlay stays at %s", t.Overlay())
			return nil
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "delete the overlay")
	return cmd
}

// purgeOverlay deletes the overlay at --overlay.
func (a *app) purgeOverlay(ctx context.Context, purge bool) error {
	if err := a.document(); err != nil {
		return err
	}
	if !purge || a.flags.overlay == "" {
		return fault.New(fault.Invalid, "unmount", "needs a table, or --purge and --overlay PLACE").WithFix("skomer unmount --help")
	}
	client, err := a.client()
	if err != nil {
		return err
	}
	report, err := client.PurgeOverlay(ctx, a.flags.overlay)
	if err != nil {
		return err
	}
	return a.showVacuum(report)
}
