package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/skomerdb/skomer/internal/cli/render"
)

// say writes one line of the answer.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.out, format+"\n", render.PrintableArgs(args)...)
}

// hint writes one line that is no part of the answer.
func (a *app) hint(format string, args ...any) {
	if !a.flags.quiet {
		fmt.Fprintf(a.err, format+"\n", render.PrintableArgs(args)...)
	}
}

// json writes the answer as an indented document.
func (a *app) json(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// pairs writes names and values in two columns.
func (a *app) pairs(rows ...[2]string) error {
	tw := render.Plain()
	for _, r := range rows {
		tw.AppendRow(table.Row{r[0], r[1]})
	}
	return render.Print(a.out, tw)
}

// blocks writes the tables that have rows, each after an empty line.
func (a *app) blocks(tables ...table.Writer) error {
	for _, tw := range tables {
		if tw.Length() == 0 {
			continue
		}
		a.say("")
		if err := render.Print(a.out, tw); err != nil {
			return err
		}
	}
	return nil
}

// number is n with thousands marked, as people read it.
func number[T int | int64 | uint64](n T) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// counted is so many of a thing: 1 file, 2,000 files.
func counted[T int | int64 | uint64](n T, one string) string {
	return number(n) + " " + render.Plural(n, one)
}

// size is n bytes in the largest unit of 1000 that leaves a number of at least one.
func size(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB"}
	f, unit := float64(n), 0
	for f >= 1000 && unit < len(units)-1 {
		f, unit = f/1000, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[unit])
}

// share is part of whole in percent; all of nothing is everything. Less than everything never shows as 100%.
func share(part, whole int64) string {
	if whole == 0 || part == whole {
		return "100%"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", min(99.9, 100*float64(part)/float64(whole))), ".0") + "%"
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}
