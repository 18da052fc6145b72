package cli

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
)

const longStats = `Shows rows, nulls, distinct values, quantiles and clustering of every column. Distinct values and quantiles come from sketches
(skomer index add TABLE 'sketch(COLUMN)' && skomer sync TABLE); without one the table's own metadata says what it can, and a
question mark stands for what nobody knows. Numbers of columns are about the rows in data files, deleted ones included.

Clustering tells how many of the files, and of the row groups in a few of them, a test for one value must read because their
bounds do not rule it out: 1 of 100 is sorted, 100 of 100 is random.`

func (a *app) statsCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use: "stats TABLE", Short: "Show rows, nulls, distinct values, quantiles and clustering per column", Long: longStats,
		Example: `  skomer stats lake/flights
  skomer stats prod.web.events --at audit-2024 -o json`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			s, err := t.Stats(cmd.Context(), at)
			if err != nil {
				return err
			}
			if a.flags.output == "json" {
				return a.json(s)
			}
			return a.showStats(s)
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "snapshot id, time (RFC 3339), branch or tag (default: the current snapshot)")
	return cmd
}

func (a *app) showStats(s *skomer.TableStats) error {
	rows := [][2]string{
		{"table", s.Table},
		{"snapshot", fmt.Sprint(s.SnapshotID)},
		{"data files", fmt.Sprintf("%s, %s", number(s.Files), size(s.Bytes))},
		{"rows", number(s.Rows)},
	}
	if s.Deleted > 0 {
		rows = append(rows, [2]string{"  deleted", number(s.Deleted)}, [2]string{"  live", number(s.Live)})
	}
	if err := a.pairs(rows...); err != nil {
		return err
	}
	counts, spread := render.Plain(), render.Plain()
	counts.AppendHeader(table.Row{"column", "type", "from", "nulls", "distinct", "files a value keeps", "row groups"})
	spread.AppendHeader(table.Row{"column", "min", "1%", "25%", "50%", "75%", "99%", "max"})
	for _, c := range s.Columns {
		from := c.Source
		if c.Rows < s.Rows && c.Source == "sketch" {
			from += " of " + share(c.Rows, s.Rows)
		}
		counts.AppendRow(table.Row{c.Name, c.Type, from, orUnknown(c.Nulls), distinct(c.Distinct), kept(c.Files), kept(c.Groups)})
		spread.AppendRow(quantiles(&c))
	}
	return a.blocks(counts, spread)
}

func orUnknown(n *int64) string {
	if n == nil {
		return "?"
	}
	return number(*n)
}

// distinct is an estimate with its error, or exact.
func distinct(d *skomer.Distinct) string {
	switch {
	case d == nil:
		return "?"
	case d.Low == d.High:
		return number(d.Estimate)
	default:
		return fmt.Sprintf("~%s (%s to %s)", number(d.Estimate), number(d.Low), number(d.High))
	}
}

func kept(c *skomer.Clusteredness) string {
	if c == nil {
		return "?"
	}
	text := strings.TrimSuffix(fmt.Sprintf("%.1f", c.Kept), ".0") + " of " + number(c.Of)
	if c.Unbounded > 0 {
		text += fmt.Sprintf(", %s without bounds", number(c.Unbounded))
	}
	return text
}

// quantiles is a row: seven values, or what bounds say of the ends.
func quantiles(c *skomer.ColumnStats) table.Row {
	row := table.Row{c.Name}
	if len(c.Quantile) == 7 {
		for _, q := range c.Quantile {
			row = append(row, q.Value)
		}
		return row
	}
	end := func(v *string, sign string) string {
		if v == nil {
			return "?"
		}
		return sign + " " + *v
	}
	return append(row, end(c.Min, "≥"), "?", "?", "?", "?", "?", end(c.Max, "≤"))
}
