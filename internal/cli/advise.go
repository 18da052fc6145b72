package cli

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/fault"
)

const longAdvise = `Says which index would pay on which column, what it costs to build and keep, what an average query then takes, and when writing the
table in another order would do better than any index. It measures clustering by the bounds of files and row groups, distinct values by
sketches or a sample, and what builders make of a few row groups. Nothing is written.

--queries FILE (- for standard input) holds one filter a line, SQL text as of --where or expression JSON; a filter that is asked
more often stands there more often. Empty lines and lines that start with # are passed over. Filters on words, JSON
paths, map values and lists are weighed like those on columns, and so are ordered indexes of two columns. Without queries, a test for one
value of each column is assumed. What would save less than a millisecond, or less than 1 % of an average query, is not advised. Costs are counted as on object storage, where requests are dear.`

func (a *app) adviseCommand() *cobra.Command {
	var file, prices string
	cmd := &cobra.Command{
		Use: "advise TABLE", Short: "Say which indexes would pay, and when sorting does better", Long: longAdvise,
		Example: `  skomer advise lake/flights
  skomer advise lake/flights --queries filters.txt
  skomer advise prod.web.events --queries - -o json`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.document(); err != nil {
				return err
			}
			p, err := price(prices)
			if err != nil {
				return err
			}
			filters, err := readFilters(file, cmd.InOrStdin())
			if err != nil {
				return err
			}
			t, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			advice, err := t.Advise(cmd.Context(), filters, p)
			if err != nil {
				return err
			}
			if a.flags.output == "json" {
				return a.json(advice)
			}
			return a.showAdvice(args[0], advice)
		},
	}
	cmd.Flags().StringVar(&file, "queries", "", "file of filters, one a line; - is standard input")
	priceFlag(cmd, &prices, "s3")
	return cmd
}

// readFilters reads one filter a line; none without a file.
func readFilters(file string, stdin io.Reader) ([]string, error) {
	in := stdin
	switch file {
	case "":
		return nil, nil
	case "-":
	default:
		f, err := os.Open(file)
		if err != nil {
			return nil, fault.Wrap(fault.NotFound, file, err)
		}
		defer f.Close()
		in = f
	}
	var out []string
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSuffix(strings.TrimSpace(lines.Text()), ";")
		if line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fault.Wrap(fault.Invalid, file, err)
	}
	if len(out) == 0 {
		return nil, fault.New(fault.Invalid, "--queries", "%s holds no filter", file).WithFix("write one filter a line, such as: user_id = 42")
	}
	return out, nil
}

func (a *app) showAdvice(name string, x *skomer.Advice) error {
	queries := counted(x.Queries, "filter")
	if x.Assumed {
		queries = "none given: a test for one value of each column is assumed"
	}
	if err := a.pairs([2]string{"table", x.Table}, [2]string{"queries", queries}, [2]string{"counted as on", x.Store}); err != nil {
		return err
	}
	indexes := render.Plain()
	indexes.AppendHeader(table.Row{"index", "helps", "requests", "bytes", "saves", "size", "build", "keep, a month", "why"})
	for _, v := range x.Indexes {
		indexes.AppendRow(table.Row{
			v.Expr, fmt.Sprintf("%.0f%%", 100*v.Helped), fmt.Sprintf("%.0f → %.0f", v.Plain.Requests, v.Indexed.Requests),
			size(int64(v.Plain.Bytes)) + " → " + size(int64(v.Indexed.Bytes)), took(v.Saved), sizes(v.Size), dollars(v.Build), dollars(v.PerMonth), v.Why,
		})
	}
	sorting := render.Plain()
	sorting.AppendHeader(table.Row{"sorted by", "requests", "bytes", "saves", "why"})
	for _, s := range x.Sorting {
		sorting.AppendRow(table.Row{
			s.Column, fmt.Sprintf("%.0f → %.0f", s.Plain.Requests, s.Sorted.Requests),
			size(int64(s.Plain.Bytes)) + " → " + size(int64(s.Sorted.Bytes)), took(s.Saved), s.Why,
		})
	}
	none := render.Plain()
	none.AppendHeader(table.Row{"no index for", "why"})
	for _, column := range slices.Sorted(maps.Keys(x.None)) {
		none.AppendRow(table.Row{column, x.None[column]})
	}
	if err := a.blocks(indexes, sorting, none); err != nil {
		return err
	}
	if len(x.Indexes) == 0 {
		a.say("\nno index pays: none would save a millisecond and 1 %% of the time of an average query")
	} else {
		a.hint("next: skomer estimate %s '%s'", name, strings.ReplaceAll(x.Indexes[0].Expr, "'", `'\''`))
	}
	return nil
}
