package cli

import (
	"bytes"
	"encoding/json"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/leastpolicy"
	"github.com/skomerdb/skomer/internal/cli/render"
	"github.com/skomerdb/skomer/internal/fault"
)

const longDoctor = `Checks what skomer needs, one line a check: the configuration, the catalog, the table's metadata and a data file, credentials and
when they end, reads by range and under If-Match, and that the overlay's storage creates an object once, replaces it only for who
knows it, shows at once what was written, and lets it be removed. For that it writes a few small objects below doctor/ in the overlay
and removes them again. Nothing is ever written to the table.

What can be done without is a warning. If a check fails, the exit code is 8. Without TABLE the catalogs and the overlay root are
checked. --print-iam prints the least policies for the identities of the table and of the overlay, with their real buckets and
prefixes.`

// diagnosis is what doctor answers.
type diagnosis struct {
	Healthy  bool                 `json:"healthy"`
	Checks   []skomer.Check       `json:"checks"`
	Policies []leastpolicy.Policy `json:"policies,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	var printIAM bool
	cmd := &cobra.Command{
		Use: "doctor [TABLE]", Short: "Check the configuration, credentials and storage", Long: longDoctor,
		Example: `  skomer doctor lake/flights
  skomer doctor prod.web.events --print-iam
  skomer doctor -o json`,
		Args: takes(0, 1, "at most one table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.document(); err != nil {
				return err
			}
			d, err := a.diagnose(cmd, append(args, "")[0], printIAM)
			if err != nil {
				return err
			}
			if err := a.showDiagnosis(d); err != nil {
				return err
			}
			if !d.Healthy {
				return silent(exitUnhealthy)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&printIAM, "print-iam", false, "print the least policies for the table and the overlay")
	return cmd
}

func (a *app) diagnose(cmd *cobra.Command, name string, printIAM bool) (*diagnosis, error) {
	d := &diagnosis{Checks: []skomer.Check{{
		Name: "version", Verdict: skomer.Well, Reason: Version + " (" + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")",
	}}}
	s, err := loadSettings(a.flags.config, a.env)
	if err == nil {
		where := s.path
		if where == "" {
			where = "no skomer.yaml, defaults apply"
		}
		d.Checks = append(d.Checks, skomer.Check{Name: "configuration", Verdict: skomer.Well, Reason: where})
	}
	options, optionsErr := a.tableOptions()
	if optionsErr != nil {
		return nil, optionsErr
	}
	client, clientErr := a.client()
	if err == nil {
		err = clientErr
	}
	if err != nil {
		d.Checks = append(d.Checks, skomer.Check{Name: "configuration", Verdict: skomer.Failed, Reason: err.Error(), Fix: fault.FixOf(err)})
		return d, nil
	}
	health := client.Doctor(cmd.Context(), name, options)
	if cmd.Context().Err() != nil {
		return nil, cmd.Context().Err()
	}
	d.Checks, d.Healthy = append(d.Checks, health.Checks...), health.Healthy()
	if printIAM {
		if d.Policies, err = leastpolicy.Of(health.Table, health.Overlay); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (a *app) showDiagnosis(d *diagnosis) error {
	if a.flags.output == "json" {
		return a.json(d)
	}
	tw := render.Plain()
	for _, c := range d.Checks {
		tw.AppendRow(table.Row{string(c.Verdict), c.Name, c.Reason})
		if c.Fix != "" {
			tw.AppendRow(table.Row{"", "", "→ " + c.Fix})
		}
	}
	if err := render.Print(a.out, tw); err != nil {
		return err
	}
	for _, p := range d.Policies {
		var text bytes.Buffer
		if err := json.Indent(&text, p.Document, "", "  "); err != nil {
			return err
		}
		a.say("\n%s (%s):\n%s", p.For, p.Kind, text.String())
	}
	return nil
}
