package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
)

const longRepair = `Looks at every artifact of the present snapshot's files: the lineage check, the bundle, its root and lineage record, and the entity
tags of the files; and the roots and heads of what is about the table as a whole. What is not believed is withdrawn and built anew, and
nothing else. Files that got another tag and have the content that was indexed are recorded under the new one. Damaged lists of the
overlay itself are taken out; the next sync builds what only they knew of. Index bodies are not read; skomer scrub does that.`

func (a *app) repairCommand() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "repair TABLE", Short: "Build anew what the checks reject", Long: longRepair,
		Example: `  skomer repair prod.web.events --dry-run
  skomer repair lake/flights -o json`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			r, err := t.Repair(cmd.Context(), dryRun)
			if err != nil {
				return err
			}
			if a.flags.output == "json" {
				return a.json(r)
			}
			for _, file := range slices.Sorted(maps.Keys(r.Unchecked)) {
				a.say("not checked: %s: %s", file, r.Unchecked[file])
			}
			if len(r.Findings) == 0 {
				if len(r.Unchecked) == 0 {
					a.say("nothing to repair")
				}
				return nil
			}
			verb := "withdrawn and built anew"
			if dryRun {
				verb = "to withdraw and build anew"
			}
			a.showFindings(r.ByReason, r.Findings, verb)
			if r.Sync == nil {
				return nil
			}
			return a.showSync(r.Sync)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only tell what would be repaired")
	return cmd
}

// showFindings writes how many findings there are of each reason, and each.
func (a *app) showFindings(byReason map[string]int, found []skomer.Finding, verb string) {
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		a.say("%s %s: %s", number(byReason[reason]), verb, reason)
	}
	for _, f := range found {
		what := f.Index + " of " + strings.Join(f.Files, ", ")
		if f.Kind != "" {
			what = f.Kind + " in " + f.Bundle
		}
		a.say("  %s: %s: %s", what, f.Reason, f.Detail)
	}
}

const longScrub = `Reads everything that the overlay names, and the data files under it, again and compares it with the checksums that were recorded when it
was written: bodies, roots, lineage records, file maps, facts of manifests, sketches, lists, footers and indexed columns. What differs is
withdrawn at once; the next sync builds it anew. Only the overlay's own lists are left to skomer repair.

--sample takes a share of the artifacts and objects, other ones each time; --max-bytes ends the run, and the next one goes on there. Exit code 8
means that something differed.`

func (a *app) scrubCommand() *cobra.Command {
	var sample, most string
	cmd := &cobra.Command{
		Use: "scrub TABLE", Short: "Read indexes and their sources again and compare checksums", Long: longScrub,
		Example: `  skomer scrub lake/flights
  skomer scrub prod.web.events --sample 10% --max-bytes 50GB`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.document(); err != nil {
				return err
			}
			options, err := scrubOptions(sample, most)
			if err != nil {
				return err
			}
			t, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			r, err := t.Scrub(cmd.Context(), options)
			if err != nil {
				return err
			}
			return a.scrubbed(r)
		},
	}
	cmd.Flags().StringVar(&sample, "sample", "100%", "share of the artifacts and objects to check, such as 10%")
	cmd.Flags().StringVar(&most, "max-bytes", "", "end when so much was read, such as 50GB (default: no limit)")
	return cmd
}

func scrubOptions(sample, most string) (o skomer.ScrubOptions, err error) {
	percent, ok := percentage(sample)
	if !ok {
		return o, fault.New(fault.Invalid, "--sample", "%q is not a percentage above 0", sample)
	}
	o.Sample = percent / 100
	if most == "" {
		return o, nil
	}
	if o.MaxBytes, err = parseSize(most); err != nil {
		return o, fault.New(fault.Invalid, "--max-bytes", "%q is no size", most).WithFix("write it like 500MB or 50GB")
	}
	return o, nil
}

// parseSize reads a number of bytes with a unit of 1000.
func parseSize(text string) (int64, error) {
	digits := strings.TrimRight(text, " kKMGTBb")
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0, err
	}
	units := map[string]float64{"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
	unit, ok := units[strings.ToUpper(strings.TrimSpace(text[len(digits):]))]
	if !ok || !(f > 0 && f*unit <= 1e18) {
		return 0, fmt.Errorf("unit %q", text[len(digits):])
	}
	return int64(f * unit), nil
}

func (a *app) scrubbed(r *skomer.ScrubReport) error {
	if a.flags.output == "json" {
		if err := a.json(r); err != nil {
			return err
		}
	} else {
		end := "all of them were seen"
		if !r.Complete {
			end = "the next scrub goes on"
		}
		err := a.pairs(
			[2]string{"artifacts", number(r.Artifacts) + ", " + end},
			[2]string{"other parts", number(r.Derived)},
			[2]string{"data files", number(r.Sources)},
			[2]string{"read", size(r.BytesRead)},
		)
		if err != nil {
			return err
		}
		verb := "withdrawn"
		if slices.ContainsFunc(r.Findings, func(f skomer.Finding) bool { return f.Kind == "list" }) {
			verb = "withdrawn, or, where it is a list, left to skomer repair"
		}
		a.showFindings(r.ByReason, r.Findings, verb)
	}
	if len(r.Findings) > 0 {
		return silent(exitUnhealthy)
	}
	return nil
}

const longReindex = `Builds anew the artifacts that an older format of their kind made, or that were made with other parameters than their index has now. The
old ones answer until they are replaced. INDEX is an id or an expression; without it every index is looked at. An INDEX that was paused, or
quarantined by a shadow check, is built anew as a whole and speaks again.`

func (a *app) reindexCommand() *cobra.Command {
	var all bool
	from := ""
	cmd := &cobra.Command{
		Use: "reindex TABLE [INDEX]", Short: "Build anew what an older format or analyzer made", Long: longReindex,
		Example: `  skomer reindex prod.web.events
  skomer reindex lake/flights 'bloom(flight_id)' --all
  skomer reindex lake/flights --from s3://acme-index/sidecars`,
		Args: takes(1, 2, "a table and perhaps an index"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			name := ""
			if len(args) > 1 {
				name = args[1]
			}
			var options skomer.SyncOptions
			end := a.progress(&options)
			defer end()
			if from != "" {
				return a.migrate(cmd.Context(), t, name, from, options)
			}
			r, err := t.Reindex(cmd.Context(), name, all, options)
			if err != nil {
				return err
			}
			return a.synced(r)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "build every artifact anew, whatever made it")
	cmd.Flags().StringVar(&from, "from", "", "declare and build the indexes that the loose sidecars at this place held")
	return cmd
}
