package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/page"
	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/fault"
)

const longExplain = `Shows how a query is answered and why: which files are ruled out and by what, what each index contributes, which artifacts were not
believed, what the cost rule expected, and what planning cost. With --analyze the query runs too. --files lists the decision for every
file. --html writes all of it as one page, with the waterfall of reads that waited for each other. --price-profile adds money.`

func (a *app) explainCommand() *cobra.Command {
	var f queryFlags
	var analyze, files bool
	var file, prices string
	cmd := &cobra.Command{
		Use: "explain TABLE", Short: "Show which files a query reads, and why", Long: longExplain,
		Example: `  skomer explain lake/flights --where "flight_id = '7CBWH4K3'"
  skomer explain lake/flights --where "origin = 'JFK' AND delay > 600" --analyze --files
  skomer explain lake/flights --where "delay > 600" --analyze --html explain.html --price-profile s3`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(a.document(), f.check()); err != nil {
				return err
			}
			t, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			e, err := t.Explain(cmd.Context(), f.query, analyze)
			if err != nil {
				return err
			}
			if prices != "" {
				p, err := price(prices)
				if err != nil {
					return err
				}
				e.At(p)
			}
			if file != "" {
				if err := writePage(file, e); err != nil {
					return err
				}
				a.hint("wrote %s", file)
			}
			if !files {
				e.Files = nil
			}
			if a.flags.output == "json" {
				return a.json(e)
			}
			return a.showExplanation(e)
		},
	}
	f.add(cmd)
	a.planningFlags(cmd)
	cmd.Flags().BoolVar(&analyze, "analyze", false, "run the query too")
	cmd.Flags().BoolVar(&files, "files", false, "list the decision for every data file")
	cmd.Flags().StringVar(&file, "html", "", "also write the explanation to this file, as an HTML page")
	priceFlag(cmd, &prices, "")
	return cmd
}

// writePage writes an explanation as a page; a page that could not be finished does not stay.
func writePage(name string, e *skomer.Explanation) error {
	var b bytes.Buffer
	if err := page.Write(&b, e); err != nil {
		return err
	}
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		return fault.Wrap(fault.Denied, name, err)
	}
	return nil
}

func (a *app) showExplanation(e *skomer.Explanation) error {
	cost := fmt.Sprintf("%s in %s, %s, %.1f ms",
		counted(e.Stats.Requests, "request"), counted(e.Stats.Waves, "wave"), size(e.Stats.Bytes), 1000*e.Stats.Seconds)
	rows := [][2]string{
		{"filter", e.Predicate},
		{"snapshot", fmt.Sprintf("%d, overlay version %d", e.SnapshotID, e.OverlayVersion)},
		{"files", number(e.FilesTotal)},
		{"  ruled out by the table's metadata", number(e.FilesPruned)},
		{"  ruled out by indexes", number(e.FilesRuledOut)},
		{"  left to read", fmt.Sprintf("%s, %s of %s", number(e.FilesKept), size(e.KeptBytes), size(e.ScanBytes))},
		{"rows that may match", mayMatch(e)},
	}
	if e.RowsDeleted > 0 {
		rows = append(rows, [2]string{"  hidden by deletes beside them", number(e.RowsDeleted)})
	}
	if len(e.Unindexed) > 0 && e.FilesKept > 0 {
		rows = append(rows, [2]string{"no index answers", strings.Join(e.Unindexed, " or ") + "; skomer advise tells whether one pays"})
	}
	if e.CostRule != "" {
		rows = append(rows, [2]string{"indexes were not asked", e.CostRule})
	}
	if x := e.Estimate; x != nil && x.Selectivity >= 0 {
		rows = append(rows, [2]string{"expected to match", fmt.Sprintf("%.2g%% of the rows left", 100*x.Selectivity)})
	}
	what := "planning cost"
	if e.Analyzed {
		what = "planning and reading cost"
		rows = append(rows, [2]string{"answer", fmt.Sprintf("%s from %s", counted(e.Stats.Rows, "row"), counted(e.Stats.FilesOpened, "file"))})
	}
	rows = append(rows, [2]string{what, cost})
	if x := e.Estimate; x != nil {
		rows = append(rows, [2]string{"  a plain scan, estimated", fmt.Sprintf("%.0f requests, %s, %.1f ms of one core", x.Scan.Requests, size(int64(x.Scan.Bytes)), 1000*x.Scan.Seconds)})
	}
	if m := e.Money; m != nil {
		rows = append(rows, [2]string{"money, at " + m.Profile + " prices", fmt.Sprintf("$%.3g, a plain scan about $%.3g", m.Query, m.Scan)})
	}
	if err := a.pairs(rows...); err != nil {
		return err
	}
	indexes := render.Plain()
	indexes.AppendHeader(table.Row{"index", "", "why"})
	for _, x := range e.Indexes {
		indexes.AppendRow(table.Row{x.Expr, x.Use, x.Reason})
	}
	files := render.Plain()
	files.AppendHeader(table.Row{"file", "", "rows", "may", "must", "why"})
	for _, f := range e.Files {
		kept := "out"
		if f.Kept {
			kept = "read"
		}
		files.AppendRow(table.Row{f.Path, kept, f.Records, f.May, f.Must, f.By})
	}
	return a.blocks(indexes, rejections(e.Rejected), files)
}

// mayMatch is how many rows are left, and how many of them are to be looked at.
func mayMatch(e *skomer.Explanation) string {
	switch {
	case e.RowsMay == 0:
		return "none"
	case e.RowsMust == 0:
		return number(e.RowsMay) + ", each to be checked"
	case e.RowsMust == e.RowsMay:
		return number(e.RowsMay) + ", all of them surely"
	default:
		return fmt.Sprintf("%s, %s of them surely; the others are to be checked", number(e.RowsMay), number(e.RowsMust))
	}
}

// rejections counts artifacts that were not believed, by index and reason.
func rejections(all []skomer.RejectedIndex) table.Writer {
	tw := render.Plain()
	tw.AppendHeader(table.Row{"not believed", "artifacts", "reason", "for example"})
	counts := map[[2]string]int{}
	first := map[[2]string]skomer.RejectedIndex{}
	for _, r := range all {
		key := [2]string{r.Index, r.Reason}
		if counts[key]++; counts[key] == 1 {
			first[key] = r
		}
	}
	keys := make([][2]string, 0, len(counts))
	for key := range counts {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(x, y [2]string) int { return strings.Compare(x[0]+x[1], y[0]+y[1]) })
	for _, key := range keys {
		tw.AppendRow(table.Row{key[0], counts[key], key[1], first[key].Detail})
	}
	return tw
}
