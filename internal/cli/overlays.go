package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/fault"
)

// statusOfAll lists the overlays below the overlay root.
func (a *app) statusOfAll(ctx context.Context, conditions []condition) error {
	if a.flags.overlay != "" {
		return fault.New(fault.Invalid, "--overlay", "is about one table").WithFix("name the table, or set overlay-root to list what is below it")
	}
	options, err := a.tableOptions()
	if err != nil {
		return err
	}
	client, err := a.client()
	if err != nil {
		return err
	}
	all, err := client.Overlays(ctx, options)
	if err != nil {
		return err
	}
	if err := a.showOverlays(all); err != nil {
		return err
	}
	trouble := 0
	for _, s := range all {
		if fails := troubled(conditions, &s); len(fails) > 0 {
			trouble++
			a.hint("unhealthy: %s: %s", tableOr(s), strings.Join(fails, ", "))
		}
	}
	if trouble > 0 {
		return silent(exitUnhealthy)
	}
	return nil
}

// troubled is the conditions that an overlay fails; without conditions there is no trouble.
func troubled(conditions []condition, s *skomer.OverlayState) []string {
	switch {
	case len(conditions) == 0 || s.State == skomer.OverlayUnmounted:
		return nil
	case s.State != skomer.OverlayMounted:
		return []string{s.State}
	}
	return failing(conditions, s.Status)
}

// tableOr is the name of an overlay's table, or else the overlay's place.
func tableOr(s skomer.OverlayState) string {
	if s.Table == "" {
		return s.Overlay
	}
	return s.Table
}

func (a *app) showOverlays(all []skomer.OverlayState) error {
	if a.flags.output == "json" {
		return a.json(all)
	}
	if len(all) == 0 {
		a.hint("no overlay lies below the overlay root")
		return nil
	}
	tw, reasons := render.Plain(), render.Plain()
	tw.AppendHeader(table.Row{"table", "state", "coverage", "lag", "indexes", "bytes", "overlay"})
	for _, s := range all {
		row := table.Row{tableOr(s), s.State, "", "", "", "", s.Overlay}
		if st := s.Status; st != nil {
			row[2], row[3], row[4], row[5] = covered(st), seconds(st.LagSeconds), number(len(st.Indexes)), size(st.Bytes)
		}
		tw.AppendRow(row)
		if s.Reason != "" {
			reasons.AppendRow(table.Row{tableOr(s), s.Reason})
		}
	}
	if err := render.Print(a.out, tw); err != nil {
		return err
	}
	return a.blocks(reasons)
}

// covered is the share of the rows that the least covered index covers.
func covered(s *skomer.Status) string {
	if len(s.Indexes) == 0 {
		return "no index"
	}
	least := leastCoverage(s)
	if least < 100 { // less than everything never shows as 100%
		return fmt.Sprintf("%.1f%%", min(least, 99.9))
	}
	return "100%"
}
