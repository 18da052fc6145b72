package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/fault"
)

const longQuery = `Prints the rows that pass a filter. It works on any table, mounted or not; indexes only change the cost.

A filter is SQL text:  = != <> < <= > >=   IN  NOT IN  BETWEEN  IS [NOT] NULL  IS [NOT] NAN  AND  OR  NOT
                       LIKE  ILIKE  NOT LIKE, and regular expressions: ~ ~* !~ !~*
                       contains(list, value)  value = ANY(list)  contains_token(text, 'words')
                       payload -> '$.user.id' = '42'  attrs['key'] = 'x'
Columns of structs are dotted (user.id), names with other characters are quoted ("user id"). Texts stand in single quotes, dates
and times too: departed >= '2001-03-01'.

A filter that starts with { is Iceberg's expression JSON, with its own treatment of null.

Without --select every column is printed. _file and _pos are the data file and the row's position in it, _row_id and
_last_updated_sequence_number the row lineage of v3 tables. With --limit the first rows by (_file, _pos) are printed. JSON output is
one object a line; nested values in CSV are JSON.`

const exampleQuery = `  skomer query lake/flights --where "flight_id = '7CBWH4K3'"
  skomer query lake/flights --where "origin = 'JFK' AND delay > 600" --select departed,destination,delay
  skomer query lake/flights --where "state IS NULL" --count
  skomer query lake/flights --where "delay > 900" --stats --no-index >/dev/null
  skomer query lake/flights --at 2024-03-01T00:00:00Z --where "distance > 4500" -o parquet > long.parquet`

// queryFlags are shared by query and explain.
type queryFlags struct {
	query skomer.Query
	count bool
	stats bool
	exit  bool
}

func (f *queryFlags) add(cmd *cobra.Command) {
	p := cmd.Flags()
	p.StringVarP(&f.query.Where, "where", "w", "", "filter in SQL text, or expression JSON (default: every row)")
	p.StringSliceVarP(&f.query.Select, "select", "s", nil, "columns to print, separated by commas (default: all)")
	wholeFlag(cmd, &f.query.Limit, "limit", -1, math.MinInt64, "print the first N rows by (_file, _pos); negative: all")
	p.StringVar(&f.query.At, "at", "", "snapshot id, time (RFC 3339), branch or tag (default: the current snapshot)")
	p.BoolVar(&f.query.NoIndex, "no-index", false, "use no index; prune by Iceberg's and Parquet's own statistics alone")
	p.BoolVar(&f.query.NoPrune, "no-prune", false, "skip nothing: read every row of every file")
	p.BoolVar(&f.query.Strict, "strict", false, "check every file's tag before an index is believed (finds files overwritten in place)")
}

// check completes the query, and refuses flags that contradict each other.
func (f *queryFlags) check() error {
	if strings.HasPrefix(strings.TrimSpace(f.query.Where), "{") {
		f.query.Filter, f.query.Where = []byte(f.query.Where), ""
	}
	if f.query.NoIndex && f.query.NoPrune {
		return fault.New(fault.Invalid, "--no-index", "goes without saying with --no-prune").WithFix("give one of them")
	}
	return nil
}

func (a *app) queryCommand() *cobra.Command {
	var f queryFlags
	cmd := &cobra.Command{
		Use: "query TABLE", Short: "Print the rows that pass a filter", Long: longQuery, Example: exampleQuery,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if render.Binary(a.flags.output) && terminal(a.out) {
				return fault.New(fault.Invalid, "--output", "%s is not for a terminal", a.flags.output).WithFix("redirect standard output to a file")
			}
			t, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.query(cmd.Context(), t, &f)
		},
	}
	f.add(cmd)
	a.planningFlags(cmd)
	cmd.Flags().BoolVarP(&f.count, "count", "c", false, "print the number of rows alone")
	cmd.Flags().BoolVar(&f.stats, "stats", false, "print what the query cost, as one JSON object on standard error")
	cmd.Flags().BoolVar(&f.exit, "exit-code", false, "exit with 1 if no row passes")
	return cmd
}

func (a *app) query(ctx context.Context, t *skomer.Table, f *queryFlags) error {
	var stats skomer.Stats
	var err error
	if f.count {
		stats, err = a.count(ctx, t, f.query)
	} else {
		out := bufio.NewWriterSize(a.out, 1<<16)
		stats, err = stream(ctx, t, f.query, a.flags.output, out)
		err = errors.Join(err, out.Flush())
	}
	if err != nil {
		return err
	}
	if f.stats {
		text, err := json.Marshal(stats)
		if err != nil {
			return err
		}
		fmt.Fprintln(a.err, string(text))
	}
	if f.exit && stats.Rows == 0 {
		return silent(exitNoMatch)
	}
	return nil
}

func (a *app) count(ctx context.Context, t *skomer.Table, q skomer.Query) (skomer.Stats, error) {
	rows, err := t.Query(ctx, q)
	if err != nil {
		return skomer.Stats{}, err
	}
	n, err := rows.Count(ctx)
	if err != nil {
		return skomer.Stats{}, err
	}
	_, err = fmt.Fprintln(a.out, n)
	return rows.Stats(), err
}

// stream writes the answer to a query in a format.
func stream(ctx context.Context, t *skomer.Table, q skomer.Query, format string, w io.Writer) (skomer.Stats, error) {
	rows, err := t.Query(ctx, q)
	if err != nil {
		return skomer.Stats{}, err
	}
	names, types := rows.Columns()
	fields := make([]skomer.Field, len(names))
	for i := range names {
		fields[i] = skomer.Field{Name: names[i], Type: types[i]}
	}
	sink, err := render.New(format, w, fields)
	if err != nil {
		return skomer.Stats{}, err
	}
	if err := rows.Each(ctx, sink.Write); err != nil {
		return skomer.Stats{}, err
	}
	return rows.Stats(), sink.Close()
}
