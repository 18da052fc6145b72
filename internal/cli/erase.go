package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/fault"
)

const longErase = `Makes the indexes of a table forget values that were deleted from it, at once and for good. Delete the rows in the table first: the
table is only ever read, and erase refuses while it still shows a row that matches.

With --where, every data file is forgotten that has a row that matches, deleted or not, and every one that no snapshot of the table has any
more. With --snapshot-gone, only the latter. What was built from such a file leaves the newest overlay version, all older versions end, builds
under way that may have read one are revoked, and everything that is not needed any more is deleted without a grace period: a query that runs
meanwhile may have to scan. Answers stay the same. The files are scanned until the table rewrites them; the next sync builds the rest.

The report lists every object that held such values, and what became of it. Builds that do not end within --deadline are reported, and the
exit code is 8. Run it again to go on. Without the flag, erase: {deadline: 12h} in skomer.yaml tells it; without both it is 3d.`

// erasing is the erase key of skomer.yaml.
type erasing struct {
	Deadline *age `yaml:"deadline"`
}

func (a *app) eraseCommand() *cobra.Command {
	var o skomer.EraseOptions
	deadline := age(72 * time.Hour)
	report := ""
	cmd := &cobra.Command{
		Use: "erase TABLE (--where FILTER | --snapshot-gone)", Short: "Make indexes forget values that were deleted from the table", Long: longErase,
		Example: `  skomer erase lake/flights --where "flight_id = '7CBWH4K3'" --dry-run
  skomer erase lake/flights --where "flight_id = '7CBWH4K3'" --deadline 72h --report erased.json
  skomer erase lake/flights --snapshot-gone`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if d := a.erasing.Deadline; d != nil && !cmd.Flags().Changed("deadline") {
				deadline = *d
			}
			o.Deadline = time.Duration(deadline)
			r, err := t.Erase(cmd.Context(), o)
			if r != nil && report != "" {
				if failed := writeReport(report, r); err == nil {
					err = failed
				}
			}
			if err != nil {
				return err
			}
			if err := a.showErase(r, args[0]); err != nil {
				return err
			}
			if !r.DryRun && !r.Complete {
				return silent(exitUnhealthy)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Where, "where", "w", "", "filter that the deleted rows match")
	f.BoolVar(&o.GoneOnly, "snapshot-gone", false, "erase what was built from data files that no snapshot has any more")
	f.Var(&deadline, "deadline", "wait so long for builds under way, such as 30m or 3d")
	f.StringVar(&report, "report", "", "also write the report, as JSON, to this file")
	f.BoolVar(&o.DryRun, "dry-run", false, "show what would be erased")
	return cmd
}

func writeReport(path string, r *skomer.EraseReport) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(raw, '\n'), 0o644)
	}
	return fault.Wrap(fault.Denied, path, err)
}

func (a *app) showErase(r *skomer.EraseReport, name string) error {
	if a.flags.output == "json" {
		return a.json(r)
	}
	state := "complete"
	switch {
	case r.DryRun:
		state = "dry run"
	case !r.Complete:
		state = "not complete"
	}
	err := a.pairs(
		[2]string{"erasure", state}, [2]string{"overlay version", fmt.Sprint(r.Version)},
		[2]string{"data files forgotten", number(r.Marked)}, [2]string{"artifacts withdrawn", number(r.Retired)},
		[2]string{"of these, of other files", number(r.Others)},
	)
	if err != nil {
		return err
	}
	if err := a.blocks(erasedObjects(r.Objects), unfinished(r.Left), stillShown(r.TableHas)); err != nil {
		return err
	}
	for _, d := range r.Declarations {
		a.hint("stays: the declaration %s, with what was typed there; if that has to go, drop the index (skomer index drop %s) and erase again", d, name)
	}
	for _, c := range r.Caches {
		a.hint("cache: %s: %s", c.Cache, c.State)
	}
	if r.Retired > 0 && !r.DryRun {
		a.hint("next: skomer sync %s", name)
	}
	return nil
}

func erasedObjects(all []skomer.ErasedObject) table.Writer {
	tw := render.Plain()
	if len(all) == 0 {
		return tw
	}
	tw.AppendHeader(table.Row{"object", "kind", "index", "data files", "bytes", "action", "why"})
	for _, x := range all {
		tw.AppendRow(table.Row{x.Key, x.Kind, strings.Join(x.Index, ", "), number(len(x.Files)), size(x.Bytes), x.Action, x.Why})
	}
	return tw
}

func unfinished(all []skomer.Unerased) table.Writer {
	tw := render.Plain()
	if len(all) == 0 {
		return tw
	}
	tw.AppendHeader(table.Row{"left: build", "what"})
	for _, x := range all {
		tw.AppendRow(table.Row{x.Build, x.What})
	}
	return tw
}

func stillShown(all []skomer.TableHolds) table.Writer {
	tw := render.Plain()
	if len(all) == 0 {
		return tw
	}
	tw.AppendHeader(table.Row{"the table still has it: snapshot", "rows"})
	for _, x := range all {
		tw.AppendRow(table.Row{x.SnapshotID, number(x.Rows)})
	}
	return tw
}
