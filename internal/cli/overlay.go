package cli

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/fault"
)

const longOverlay = `The overlay is where everything lies that Skomer derived for a table. Each change makes a new version of it; old ones can be gone
back to until a vacuum ends them.`

func (a *app) overlayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "overlay", Short: "Look after the versions of a table's overlay", Long: longOverlay,
		Example: `  skomer overlay versions lake/flights
  skomer overlay rollback lake/flights --to 4
  skomer overlay copy lake/flights --to s3://acme-index/flights
  skomer overlay recover lake/flights
  skomer overlay sign lake/flights`,
	}
	cmd.AddCommand(a.overlayVersions(), a.overlayRollback(), a.overlayRecover(), a.overlaySign(), a.overlayCopy(), a.overlayUpgrade(), a.overlayLegacy())
	return cmd
}

func (a *app) overlayVersions() *cobra.Command {
	limit := 20
	cmd := &cobra.Command{
		Use: "versions TABLE", Short: "List the versions of the overlay, the newest first",
		Example: `  skomer overlay versions lake/flights
  skomer overlay versions lake/flights --limit 0 -o json`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			versions, err := t.Versions(cmd.Context(), limit)
			if err != nil {
				return err
			}
			if a.flags.output == "json" {
				return a.json(versions)
			}
			tw := render.Plain()
			tw.AppendHeader(table.Row{"version", "state", "committed", "snapshot", "indexes", "artifacts", "derived"})
			for _, v := range versions {
				tw.AppendRow(table.Row{v.Version, v.State, moment(v.Committed), v.SnapshotID, number(v.Indexes), number(v.Artifacts), number(v.Derived)})
			}
			return render.Print(a.out, tw)
		},
	}
	wholeFlag(cmd, &limit, "limit", limit, 0, "list so many; 0: all")
	return cmd
}

const longRollback = `Brings back the indexes and artifacts of an earlier version, in a new version: nothing is lost, and it can be undone in the same way.
Versions that a vacuum ended cannot be gone back to, nor any from before values were erased. The table is not touched.`

func (a *app) overlayRollback() *cobra.Command {
	var to uint64
	cmd := &cobra.Command{
		Use: "rollback TABLE --to VERSION", Short: "Go back to an earlier version of the overlay", Long: longRollback,
		Example: `  skomer overlay rollback lake/flights --to 4`,
		Args:    takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.document(); err != nil {
				return err
			}
			if to == 0 {
				return fault.New(fault.Invalid, subject(cmd), "needs --to VERSION").WithFix("skomer overlay versions %s", args[0])
			}
			t, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			status, err := t.Rollback(cmd.Context(), to)
			if err != nil {
				return err
			}
			if err := a.printStatus(status); err != nil {
				return err
			}
			a.hint("next: skomer sync %s", args[0])
			return nil
		},
	}
	wholeFlag(cmd, &to, "to", 0, 1, "the version, as skomer overlay versions lists it")
	return cmd
}

const longRecover = `Makes an overlay usable again whose newest version is damaged, or of which a list of artifacts is lost: the newest readable state
becomes the newest version. What was lost is scanned until the next sync builds it again. Answers were right all the time.`

func (a *app) overlayRecover() *cobra.Command {
	return &cobra.Command{
		Use: "recover TABLE", Short: "Make a damaged overlay usable again", Long: longRecover,
		Example: `  skomer overlay recover lake/flights`,
		Args:    takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			status, err := t.Recover(cmd.Context())
			if err != nil {
				return err
			}
			if err := a.printStatus(status); err != nil {
				return err
			}
			a.hint("next: skomer sync %s", args[0])
			return nil
		},
	}
}

const longSign = `Signs the newest version of the overlay with overlay-key of the configuration, or SKOMER_OVERLAY_KEY, as it is: you say that you trust
what is there. Whoever has the key then ignores every version that is not signed with it, and makes signed ones; whoever has not can still
read the overlay, and not change it. Sign again to change the key.`

func (a *app) overlaySign() *cobra.Command {
	return &cobra.Command{
		Use: "sign TABLE", Short: "Sign the overlay as it is", Long: longSign,
		Example: `  SKOMER_OVERLAY_KEY=... skomer overlay sign lake/flights`,
		Args:    takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			status, err := t.SignOverlay(cmd.Context())
			if err != nil {
				return err
			}
			return a.printStatus(status)
		},
	}
}

const longCopy = `Copies the newest version of the overlay to another place, which must be empty, and checks on the way every checksum that the version
holds. There is no overlay at the target until all of it is there. Run it again after an interruption and it goes on.`

func (a *app) overlayCopy() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "copy TABLE --to PLACE", Short: "Copy the overlay to another place", Long: longCopy,
		Example: `  skomer overlay copy lake/flights --to s3://acme-index/flights
  skomer query lake/flights --overlay s3://acme-index/flights --where "flight_id = '7CBWH4K3'"`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.document(); err != nil {
				return err
			}
			if to == "" {
				return fault.New(fault.Invalid, subject(cmd), "needs --to PLACE")
			}
			t, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			r, err := t.CopyOverlay(cmd.Context(), to)
			if err != nil {
				return err
			}
			if a.flags.output == "json" {
				return a.json(r)
			}
			err = a.pairs(
				[2]string{"overlay version", fmt.Sprint(r.Version)}, [2]string{"objects", number(r.Objects)}, [2]string{"bytes", size(r.Bytes)},
				[2]string{"there already", number(r.Present)},
			)
			a.hint("next: skomer query %s --overlay %s", args[0], to)
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "where to: a folder or a URI")
	return cmd
}
