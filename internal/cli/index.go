package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
)

const longIndex = `An index is written kind(columns) key=value. The kinds of this version:

  zonemap(COLUMN)   smallest and largest value of each row group and page: ranges on columns that follow the row order
  bloom(COLUMN)     Bloom filters of each row group: = and IN on columns, contains on lists, with many distinct values
  valueset(COLUMN)  distinct values of each row group: any test, LIKE '%x%' and contains too, on columns with few values
  bitmap(COLUMN)    rows of each value of a file: any test, LIKE '%x%' and contains too, exact rows, on columns with few values
  ordered(COLUMN)   sorted values with their rows: = IN and ranges, exact rows, on columns in any order; ordered(A, B) sorts by both
  ngram(COLUMN)     pieces of three bytes with their rows: LIKE '%x%', ILIKE and regular expressions on any text
  sketch(COLUMN)    distinct values and quantiles: rules nothing out, but stats, advise and the cost rule know more

COLUMN may be a column, a field of a struct (address.city), of structs in a list (items.sku), the keys or values of a map (map_keys(m),
map_values(m)), or an expression: tokens(text) for the words of a text, payload -> '$.user.id' for a path in JSON, m['key'] for a
value of a map. A filter uses the index when it asks the same: payload -> '$.user.id' = '42', contains_token(text, 'error').

Adding and dropping are one small commit each, whatever the size of the table. skomer sync builds what was added.`

func (a *app) indexCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "index", Short: "Add, list, show, pause and drop indexes", Long: longIndex,
		Example: `  skomer index add lake/flights 'bloom(flight_id)' 'ordered(delay)'
  skomer index list lake/flights
  skomer index drop lake/flights 'ordered(delay)'`,
	}
	cmd.AddCommand(a.indexAdd(), a.indexList(), a.indexShow(), a.indexDrop(), a.indexPause(), a.indexResume())
	return cmd
}

func (a *app) indexAdd() *cobra.Command {
	return &cobra.Command{
		Use: "add TABLE KIND(COLUMNS)...", Short: "Declare indexes", Long: longIndex,
		Example: `  skomer index add lake/flights 'bloom(flight_id)' 'ordered(delay)'`,
		Args:    takes(2, -1, "a table and one or more indexes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var added []skomer.Index
			for _, expr := range args[1:] {
				x, err := t.AddIndex(cmd.Context(), expr)
				if err != nil {
					return err
				}
				added = append(added, *x)
			}
			if err := a.showIndexes(added); err != nil {
				return err
			}
			a.hint("next: skomer sync %s", args[0])
			return nil
		},
	}
}

func (a *app) indexList() *cobra.Command {
	return &cobra.Command{
		Use: "list TABLE", Short: "List the indexes of a table and how much of it they cover",
		Example: `  skomer index list lake/flights`,
		Args:    takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			indexes, err := t.Indexes(cmd.Context())
			if err != nil {
				return err
			}
			return a.showIndexes(indexes)
		},
	}
}

func (a *app) indexShow() *cobra.Command {
	return &cobra.Command{
		Use: "show TABLE INDEX", Short: "Show one index", Long: "INDEX is an id or the index as it was declared.",
		Example: `  skomer index show lake/flights 'bloom(flight_id)'`,
		Args:    takes(2, 2, "a table and an index"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			x, err := t.ShowIndex(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			return a.showIndex(x)
		},
	}
}

const longDrop = `INDEX is an id or the index as it was declared. Queries stop using it at once. Its bytes stay until a vacuum; with --purge what only
it needs is deleted now, from earlier versions of the overlay too. Bundles that hold other indexes as well stay until they are consolidated.`

func (a *app) indexDrop() *cobra.Command {
	var purge bool
	cmd := &cobra.Command{
		Use: "drop TABLE INDEX...", Short: "Drop indexes", Long: longDrop,
		Example: `  skomer index drop lake/flights 'ordered(delay)'
  skomer index drop lake/flights 'ordered(delay)' --purge`,
		Args: takes(2, -1, "a table and one or more indexes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var dropped []skomer.Index
			for _, name := range args[1:] {
				x, err := a.drop(cmd.Context(), t, name, purge)
				if err != nil {
					return err
				}
				dropped = append(dropped, *x)
			}
			return a.showIndexes(dropped)
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "delete at once what only the index needs")
	return cmd
}

func (a *app) drop(ctx context.Context, t *skomer.Table, name string, purge bool) (*skomer.Index, error) {
	if !purge {
		return t.DropIndex(ctx, name)
	}
	x, r, err := t.PurgeIndex(ctx, name)
	if err != nil {
		return nil, err
	}
	var gone, kept skomer.Tally
	for _, n := range r.Deleted {
		gone.Objects, gone.Bytes = gone.Objects+n.Objects, gone.Bytes+n.Bytes
	}
	for _, n := range r.Kept {
		kept.Objects, kept.Bytes = kept.Objects+n.Objects, kept.Bytes+n.Bytes
	}
	a.hint("%s: %s deleted, %s", x.Expr, counted(gone.Objects, "object"), size(gone.Bytes))
	if kept.Objects > 0 {
		a.hint("%s stay in %s that other indexes share, until skomer consolidate", size(kept.Bytes), counted(kept.Objects, "bundle"))
	}
	return x, nil
}

func (a *app) showIndexes(indexes []skomer.Index) error {
	if a.flags.output == "json" {
		return a.json(indexes)
	}
	tw := render.Plain()
	tw.AppendHeader(table.Row{"index", "id", "covers", "artifacts", "bytes"})
	for _, x := range indexes {
		tw.AppendRow(table.Row{x.Expr, x.ID, share(x.Covered, x.Total), number(x.Artifacts), size(x.Bytes)})
	}
	if err := render.Print(a.out, tw); err != nil {
		return err
	}
	a.sayCapped(indexes)
	return nil
}

// sayCapped names the indexes that gave up on values.
func (a *app) sayCapped(indexes []skomer.Index) {
	for _, x := range indexes {
		if x.Capped > 0 {
			a.say("capped: %s: %s", x.Expr, cappedText(x))
		}
	}
}

// cappedText is how much of an index gave up on values, and what to do.
func cappedText(x skomer.Index) string {
	fix := map[string]string{
		"bitmap":   "declare it with a higher cap=, up to 16384, or ordered or bloom instead",
		"valueset": "declare it with a higher cap=, up to 16384, or bloom or ordered instead",
		"bloom":    "declare it with a higher fpp=, or ordered instead",
	}[x.Kind]
	return fmt.Sprintf("%s of %s left out the values of a whole file or row group, which has too many; %s", number(x.Capped), counted(x.Artifacts, "artifact"), fix)
}

func (a *app) showIndex(x *skomer.Index) error {
	if a.flags.output == "json" {
		return a.json(x)
	}
	rows := [][2]string{
		{"index", x.Expr},
		{"id", x.ID},
		{"kind", x.Kind},
		{"columns", strings.Join(x.Columns, ", ")},
		{"covers", fmt.Sprintf("%s of %s (%s)", number(x.Covered), counted(x.Total, "row"), share(x.Covered, x.Total))},
		{"artifacts", number(x.Artifacts)},
		{"bytes", size(x.Bytes)},
	}
	if m := x.FileMap; m != nil {
		values := ""
		switch {
		case m.Values > 0:
			values = fmt.Sprintf(", %s by file", counted(m.Values, "value"))
		case x.Kind == "bitmap" || x.Kind == "valueset":
			values = ", no list of values by file: too many"
		}
		rows = append(rows, [2]string{"file map", fmt.Sprintf("%s of %s (%s), %s in %s%s, %s",
			number(m.Rows), counted(x.Total, "row"), share(m.Rows, x.Total), counted(m.Keys, "key"), counted(m.Runs, "run"), values, size(m.Bytes))})
	}
	if x.Capped > 0 {
		rows = append(rows, [2]string{"capped", cappedText(*x)})
	}
	return a.pairs(append(rows, troubles(*x)...)...)
}

// troubles is why an index is silent or cannot be built.
func troubles(x skomer.Index) (rows [][2]string) {
	if x.Paused != "" {
		rows = append(rows, [2]string{"paused", x.Paused})
	}
	if x.Problem != "" {
		rows = append(rows, [2]string{"cannot be built", x.Problem})
	}
	if x.Outdated > 0 {
		rows = append(rows, [2]string{"older format", counted(x.Outdated, "artifact") + "; skomer reindex renews them, and they answer meanwhile"})
	}
	return rows
}
