package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
)

const longPause = `INDEX is an id or the index as it was declared. Queries do as if it were not there until it is resumed; sync goes on building it. A
shadow check that found other rows than a scan pauses every index of the kind by itself.`

func (a *app) indexPause() *cobra.Command {
	var reason string
	cmd := a.voiceCommand("pause TABLE INDEX...", "Silence indexes without dropping them", longPause,
		func(ctx context.Context, t *skomer.Table, name string) (*skomer.Index, error) {
			return t.PauseIndex(ctx, name, reason)
		})
	cmd.Example = `  skomer index pause lake/flights 'bloom(flight_id)' --reason 'compare without it'`
	cmd.Flags().StringVar(&reason, "reason", "paused by hand", "what status shows")
	return cmd
}

func (a *app) indexResume() *cobra.Command {
	cmd := a.voiceCommand("resume TABLE INDEX...", "Let paused or quarantined indexes speak again",
		"INDEX is an id or the index as it was declared.",
		func(ctx context.Context, t *skomer.Table, name string) (*skomer.Index, error) {
			return t.ResumeIndex(ctx, name)
		})
	cmd.Example = `  skomer index resume lake/flights 'bloom(flight_id)'`
	return cmd
}

func (a *app) voiceCommand(use, short, long string, do func(context.Context, *skomer.Table, string) (*skomer.Index, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: takes(2, -1, "a table and one or more indexes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reported(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var all []skomer.Index
			for _, name := range args[1:] {
				x, err := do(cmd.Context(), t, name)
				if err != nil {
					return err
				}
				all = append(all, *x)
			}
			return a.showIndexes(all)
		},
	}
}
