package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
)

const longStatus = `Shows the overlay of a table against the table: which snapshot the indexes stand at, how much they cover, and what was
rejected and why.

--fail-on takes conditions separated by commas and exits with 8 if one of them holds: coverage<PERCENT is about the least covered
index, lag>DURATION about the time since the first snapshot that was not synced, backlog>N about data files that an index lacks,
rejected>N about artifacts that are not believed. A table that is not mounted fails any of
them, and so does one whose overlay cannot be used. They are meant for monitors.

Without a table, every overlay below the overlay root is listed with its table. One is stranded whose table is not found any more, or is
another one now: skomer unmount --purge --overlay PLACE deletes it. With --fail-on, overlays that are stranded, unusable or unknown fail, too;
unmounted ones do not.`

func (a *app) statusCommand() *cobra.Command {
	var failOn string
	cmd := &cobra.Command{
		Use: "status [TABLE]", Short: "Show how the indexes stand against the table", Long: longStatus,
		Example: `  skomer status lake/flights
  skomer status prod.web.events --fail-on 'lag>1h,coverage<95,rejected>0' -q
  skomer status --fail-on 'lag>1h'`,
		Args: takes(0, 1, "one table, or none for all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.document(); err != nil {
				return err
			}
			conditions, err := parseConditions(failOn)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.statusOfAll(cmd.Context(), conditions)
			}
			t, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			status, err := t.Status(cmd.Context())
			if err != nil {
				return err
			}
			if err := a.printStatus(status); err != nil {
				return err
			}
			trouble := failing(conditions, status)
			if len(trouble) == 0 {
				return nil
			}
			a.hint("unhealthy: %s", strings.Join(trouble, ", "))
			return silent(exitUnhealthy)
		},
	}
	cmd.Flags().StringVar(&failOn, "fail-on", "", "exit with 8 if a condition holds, such as 'lag>1h,coverage<95,rejected>0'")
	return cmd
}

func (a *app) showStatus(ctx context.Context, t *skomer.Table) error {
	status, err := t.Status(ctx)
	if err != nil {
		return err
	}
	return a.printStatus(status)
}

func (a *app) printStatus(s *skomer.Status) error {
	if a.flags.output == "json" {
		return a.json(s)
	}
	overlay := s.Overlay
	if !s.Mounted {
		overlay += " (not mounted)"
	}
	rows := [][2]string{
		{"table", s.Table},
		{"uuid", s.TableUUID},
		{"snapshot", fmt.Sprint(s.SnapshotID)},
		{"files", number(s.Files)},
		{"rows", number(s.Rows)},
		{"overlay", overlay},
	}
	if s.Mounted {
		rows = append(rows,
			[2]string{"overlay version", fmt.Sprint(s.OverlayVersion)},
			[2]string{"last sync", moment(s.LastSync)},
		)
		if s.SyncedSnapshot > 0 && s.SyncedSnapshot != s.SnapshotID {
			rows = append(rows, [2]string{"synced snapshot", fmt.Sprint(s.SyncedSnapshot)})
		}
	}
	rows = append(rows, standing(s)...)
	for _, reason := range slices.Sorted(maps.Keys(s.Rejected)) {
		rows = append(rows, [2]string{"rejected", fmt.Sprintf("%s: %s", counted(s.Rejected[reason], "artifact"), reason)})
	}
	for _, w := range s.Warnings {
		rows = append(rows, [2]string{"warning", w})
	}
	if err := a.pairs(rows...); err != nil {
		return err
	}
	if len(s.Indexes) == 0 {
		return nil
	}
	a.say("")
	return a.showIndexes(s.Indexes)
}

// standing is how far the indexes are behind, and what they take.
func standing(s *skomer.Status) (rows [][2]string) {
	if s.LagSeconds > 0 && !s.LastSync.IsZero() {
		rows = append(rows, [2]string{"lag", seconds(s.LagSeconds)})
	}
	for _, x := range s.Indexes {
		for _, row := range troubles(x) {
			rows = append(rows, [2]string{row[0], x.Expr + ": " + row[1]})
		}
	}
	if b := s.Backlog; b.Files > 0 && len(s.Indexes) > 0 {
		rows = append(rows, [2]string{"backlog", fmt.Sprintf("%s, %s, %s: about %s to sync, %s",
			counted(b.Files, "file"), counted(b.Rows, "row"), size(b.Bytes), between(took(b.Seconds.Low), took(b.Seconds.High)), paceOf(b.Pace))})
	}
	if s.Bundles > 0 {
		rows = append(rows, [2]string{"objects", objects(s.Objects)})
		rows = append(rows, [2]string{"bundles", fmt.Sprintf("%s, with %s of indexes", number(s.Bundles), size(s.Bytes))})
	}
	return rows
}

// paceOf is by what the time of a sync is estimated.
func paceOf(p *skomer.Pace) string {
	if p == nil {
		return "by times of another machine"
	}
	return fmt.Sprintf("by the last builds (%s of data in %s of a worker)", size(p.Bytes), took(p.Seconds))
}

// objects is how many objects an overlay's newest version names, by sort.
func objects(all map[string]skomer.Tally) string {
	var parts []string
	n, bytes := 0, int64(0)
	for _, sort := range slices.Sorted(maps.Keys(all)) {
		n, bytes = n+all[sort].Objects, bytes+all[sort].Bytes
		parts = append(parts, fmt.Sprintf("%s %s", number(all[sort].Objects), sort))
	}
	return fmt.Sprintf("%s, %s: %s", number(n), size(bytes), strings.Join(parts, ", "))
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// condition is one part of --fail-on.
type condition struct {
	text  string
	holds func(*skomer.Status) bool
}

// failing is the conditions that hold. A table that is not mounted, or whose overlay cannot be used, passes none.
func failing(conditions []condition, s *skomer.Status) (out []string) {
	switch {
	case len(conditions) > 0 && !s.Mounted:
		return []string{"not mounted"}
	case len(conditions) > 0 && s.Unusable != "":
		return []string{"the overlay cannot be used"}
	}
	for _, c := range conditions {
		if c.holds(s) {
			out = append(out, c.text)
		}
	}
	return out
}

func parseConditions(text string) ([]condition, error) {
	var out []condition
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		holds, err := parseCondition(part)
		if err != nil {
			return nil, err
		}
		out = append(out, condition{part, holds})
	}
	return out, nil
}

func parseCondition(part string) (func(*skomer.Status) bool, error) {
	at := strings.IndexAny(part, "<>")
	if at < 0 {
		return nil, unknownCondition(part)
	}
	name, bound := strings.TrimSpace(part[:at]), strings.TrimSpace(part[at+1:])
	switch name + part[at:at+1] {
	case "coverage<":
		least, ok := percentage(bound)
		if !ok {
			return nil, fault.New(fault.Invalid, "--fail-on", "%q is not a percentage", bound)
		}
		return func(s *skomer.Status) bool { return leastCoverage(s) < least }, nil
	case "lag>":
		var most age
		if err := most.Set(bound); err != nil {
			return nil, fault.New(fault.Invalid, "--fail-on", "%q is not a duration", bound).WithFix("write it as 90s, 1h30m or 2d")
		}
		return func(s *skomer.Status) bool { return s.LagSeconds > time.Duration(most).Seconds() }, nil
	case "rejected>", "backlog>":
		most, err := strconv.ParseInt(bound, 10, 64)
		if err != nil || most < 0 {
			return nil, fault.New(fault.Invalid, "--fail-on", "%q is not a number of 0 or more", bound)
		}
		if name == "backlog" {
			return func(s *skomer.Status) bool { return int64(s.Backlog.Files) > most }, nil
		}
		return func(s *skomer.Status) bool { return rejected(s) > most }, nil
	default:
		return nil, unknownCondition(part)
	}
}

func unknownCondition(part string) error {
	return fault.New(fault.Invalid, "--fail-on", "%q is not a condition", part).
		WithFix("use lag>DURATION, coverage<PERCENT, backlog>FILES or rejected>N")
}

// leastCoverage is the percentage of rows that the least covered index covers; a table without indexes is covered by none.
func leastCoverage(s *skomer.Status) float64 {
	if len(s.Indexes) == 0 {
		return 0
	}
	least := 100.0
	for _, x := range s.Indexes {
		if x.Total > 0 {
			least = min(least, 100*float64(x.Covered)/float64(x.Total))
		}
	}
	return least
}

func rejected(s *skomer.Status) int64 {
	var n int64
	for _, count := range s.Rejected {
		n += count
	}
	return n
}
