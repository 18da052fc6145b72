package cli

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer/internal/cli/verify"
)

const longVerify = `Draws random filters from the values of the table and asks each twice: with the indexes, and reading every row of every file.
The answers must be the same, row by row and value by value; if one is not, the exit code is 8. The first filters are such that one
index after the other can answer one, on words, paths in JSON, values of maps, lists and several columns too: ask for at least as many
as the table has indexes. The seed is printed, and --seed repeats a run. A table of any size can be verified, but every filter reads all of it.`

func (a *app) verifyCommand() *cobra.Command {
	options := verify.Options{}
	cmd := &cobra.Command{
		Use: "verify TABLE", Short: "Prove on random filters that indexes change no answer", Long: longVerify,
		Example: `  skomer verify lake/flights
  skomer verify lake/flights --answers 500 --seed 42`,
		Args: takes(1, 1, "one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.document(); err != nil {
				return err
			}
			if !cmd.Flags().Changed("seed") {
				options.Seed = rand.Uint64() >> 1
			}
			t, err := a.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if terminal(a.err) && !a.flags.quiet {
				bar := progressbar.NewOptions(options.Answers, progressbar.OptionSetWriter(a.err),
					progressbar.OptionSetDescription("verifying"), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish())
				defer func() { _ = bar.Finish() }()
				options.Progress = func(done int) { _ = bar.Set(done) } // a terminal that cannot be drawn on is no reason to stop
			}
			report, err := verify.Run(cmd.Context(), t, options)
			if err != nil {
				return err
			}
			return a.showVerified(report)
		},
	}
	wholeFlag(cmd, &options.Answers, "answers", 25, 1, "how many filters to ask")
	wholeFlag(cmd, &options.Seed, "seed", 0, 0, "repeat the filters of an earlier run (default: random)")
	cmd.Flags().StringVar(&options.At, "at", "", "snapshot id, time (RFC 3339), branch or tag (default: the current snapshot)")
	return cmd
}

func (a *app) showVerified(r *verify.Report) error {
	if a.flags.output == "json" {
		if err := a.json(r); err != nil {
			return err
		}
	} else {
		used := strings.Join(r.IndexesUsed, ", ")
		if used == "" {
			used = "none"
		}
		err := a.pairs(
			[2]string{"filters", fmt.Sprintf("%s, %s of them with rows (seed %d)", number(r.Answers), number(r.NonEmpty), r.Seed)},
			[2]string{"files skipped", share(r.FilesSkipped, r.FilesTotal)},
			[2]string{"indexes used", used},
			[2]string{"differences", number(len(r.Differences))},
		)
		if err != nil {
			return err
		}
		for _, d := range r.Differences {
			a.say("differs: %s: %s with indexes, %s without", d.Filter, counted(d.RowsIndexed, "row"), number(d.RowsScanned))
		}
	}
	if len(r.Differences) > 0 {
		return silent(exitUnhealthy)
	}
	return nil
}
