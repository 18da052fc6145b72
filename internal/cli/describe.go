package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
)

const longDescribe = `Shows what a table is, from its metadata alone: columns, partitioning, snapshots and, with --files, every data file. No data
file is opened.`

func (a *app) describeCommand() *cobra.Command {
	var at string
	var files, snapshots bool
	cmd := &cobra.Command{
		Use: "describe TABLE", Short: "Show a table's columns, snapshots and files", Long: longDescribe,
		Example: `  skomer describe lake/flights
  skomer describe prod.web.events --snapshots
  skomer describe lake/flights --at audit-2024 --files -o json`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			d, err := t.Describe(cmd.Context(), at)
			if err != nil {
				return err
			}
			if !files {
				d.DataFiles = nil
			}
			if !snapshots {
				d.Snapshots = slices.DeleteFunc(d.Snapshots, func(s skomer.SnapshotInfo) bool { return s.ID != d.SnapshotID })
			}
			if a.flags.output == "json" {
				return a.json(d)
			}
			return a.showDescription(d)
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "snapshot id, time (RFC 3339), branch or tag (default: the current snapshot)")
	cmd.Flags().BoolVar(&files, "files", false, "list the data files")
	cmd.Flags().BoolVar(&snapshots, "snapshots", false, "list all snapshots, not only the described one")
	return cmd
}

func (a *app) showDescription(d *skomer.Description) error {
	rows := [][2]string{
		{"table", d.Table},
		{"uuid", d.TableUUID},
		{"location", d.Location},
		{"metadata", d.Metadata},
		{"format version", fmt.Sprint(d.FormatVersion)},
		{"data files", fmt.Sprintf("%s, %s", number(d.Files), size(d.Bytes))},
		{"rows", number(d.Rows)},
	}
	if d.DeleteFiles > 0 {
		rows = append(rows, [2]string{"delete files", number(d.DeleteFiles)})
	}
	if len(d.Partitioning) > 0 {
		rows = append(rows, [2]string{"partitioned by", strings.Join(d.Partitioning, ", ")})
	}
	for _, key := range slices.Sorted(maps.Keys(d.Properties)) {
		rows = append(rows, [2]string{"property", key + "=" + d.Properties[key]})
	}
	if err := a.pairs(rows...); err != nil {
		return err
	}
	columns := render.Plain()
	columns.AppendHeader(table.Row{"id", "column", "type", ""})
	for _, c := range d.Columns {
		required := ""
		if c.Required {
			required = "required"
		}
		columns.AppendRow(table.Row{c.ID, c.Name, c.Type, required})
	}
	snapshots := render.Plain()
	snapshots.AppendHeader(table.Row{"snapshot", "parent", "time", "operation", "refs"})
	for _, s := range d.Snapshots {
		snapshots.AppendRow(table.Row{s.ID, s.Parent, moment(s.Time), s.Operation, strings.Join(s.Refs, ", ")})
	}
	files := render.Plain()
	files.AppendHeader(table.Row{"file", "rows", "bytes"})
	for _, f := range d.DataFiles {
		files.AppendRow(table.Row{f.Path, f.Records, f.Bytes})
	}
	return a.blocks(columns, snapshots, files)
}
