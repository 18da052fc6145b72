package cli

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
)

const longEstimate = `Measures on a few row groups of the table what building indexes would take, before anything is written: bytes and requests, time with
the workers of this machine, memory, the size of the indexes, and money at a price profile. The table need not be mounted. Every
figure is a range; what the sample did not show may lie outside it.`

func (a *app) estimateCommand() *cobra.Command {
	var prices string
	cmd := &cobra.Command{
		Use: "estimate TABLE KIND(COLUMNS)...", Short: "Estimate what building indexes would take and cost", Long: longEstimate,
		Example: `  skomer estimate lake/flights 'bloom(flight_id)' 'ordered(delay)'
  skomer estimate prod.web.events 'ordered(user_id)' --price-profile gcs -o json`,
		Args: takes(2, -1, "a table and one or more indexes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.document(); err != nil {
				return err
			}
			p, err := price(prices)
			if err != nil {
				return err
			}
			t, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			e, err := t.Estimate(cmd.Context(), args[1:], p)
			if err != nil {
				return err
			}
			if a.flags.output == "json" {
				return a.json(e)
			}
			return a.showEstimate(e)
		},
	}
	priceFlag(cmd, &prices, "s3")
	return cmd
}

func (a *app) showEstimate(e *skomer.Estimate) error {
	err := a.pairs(
		[2]string{"table", fmt.Sprintf("%s: %s in %s", e.Table, counted(e.Rows, "row"), counted(e.Files, "file"))},
		[2]string{"measured on", fmt.Sprintf("%s of %s", counted(e.SampledRows, "row"), counted(e.SampledGroups, "row group"))},
		[2]string{"to read", sizes(e.BytesRead)},
		[2]string{"requests", fmt.Sprintf("%s reads, %s writes", numbers(e.Gets), numbers(e.Puts))},
		[2]string{fmt.Sprintf("time, %d workers", e.Workers), times(e.Seconds)},
		[2]string{"memory", sizes(e.Memory)},
		[2]string{"indexes", sizes(e.Size)},
		[2]string{"to build, at " + e.Price + " prices", dollars(e.Build)},
		[2]string{"to keep", dollars(e.PerMonth) + " a month"},
	)
	if err != nil {
		return err
	}
	tw := render.Plain()
	tw.AppendHeader(table.Row{"index", "size", "time of one core", ""})
	for _, x := range e.Indexes {
		note := ""
		if x.Declined != "" {
			note = "would not be kept: " + x.Declined
		}
		tw.AppendRow(table.Row{x.Expr, sizes(x.Size), times(x.Seconds), note})
	}
	return a.blocks(tw)
}

func sizes(r skomer.Range) string { return between(size(int64(r.Low)), size(int64(r.High))) }

func numbers(r skomer.Range) string { return between(number(int64(r.Low)), number(int64(r.High))) }

func times(r skomer.Range) string { return between(took(r.Low), took(r.High)) }

func dollars(r skomer.Range) string {
	return between(fmt.Sprintf("$%.2g", r.Low), fmt.Sprintf("$%.2g", r.High))
}

func between(low, high string) string {
	if low == high {
		return low
	}
	return low + " to " + high
}

// took is seconds for people.
func took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Millisecond).String()
	}
}
