package cli

import (
	"github.com/spf13/cobra"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
)

// planning is the knobs of the cost rule, of skomer.yaml's planning key and of flags. What is not set keeps the library's default.
type planning struct {
	Bytes       *int64   `yaml:"min_planned_scan_bytes"`
	Files       *int     `yaml:"min_planned_file_count"`
	Selectivity *float64 `yaml:"min_selectivity"`
}

// planningFlags adds the knobs to a command that plans queries.
func (a *app) planningFlags(cmd *cobra.Command) {
	p := cmd.Flags()
	bytes, files, selectivity := new(int64), new(int), new(float64)
	wholeFlag(cmd, bytes, "min-planned-scan-bytes", 256<<10, 0, "with fewer bytes and no more files left after pruning, scan without asking an index; 0: always ask")
	wholeFlag(cmd, files, "min-planned-file-count", 1, 0, "see --min-planned-scan-bytes")
	*selectivity = 0.5
	p.Var(&amount{selectivity}, "min-selectivity", "share of the rows, 0 to 1, above which a filter is scanned without asking an index; 0: ask whatever it costs")
	cmd.PreRun = func(*cobra.Command, []string) {
		if p.Changed("min-planned-scan-bytes") {
			a.flags.planning.Bytes = bytes
		}
		if p.Changed("min-planned-file-count") {
			a.flags.planning.Files = files
		}
		if p.Changed("min-selectivity") {
			a.flags.planning.Selectivity = selectivity
		}
	}
}

// apply sets the knobs that are set. The library's zero is its default, and its negative numbers are "always ask".
func (p *planning) apply(c *skomer.Config) error {
	if p.Bytes != nil && *p.Bytes < 0 || p.Files != nil && *p.Files < 0 || p.Selectivity != nil && !(*p.Selectivity >= 0 && *p.Selectivity <= 1) {
		return fault.New(fault.Invalid, "planning", "min_planned_scan_bytes and min_planned_file_count are not negative, and min_selectivity is from 0 to 1")
	}
	if p.Bytes != nil {
		c.MinPlannedScanBytes = *p.Bytes
		if *p.Bytes == 0 {
			c.MinPlannedScanBytes = -1
		}
	}
	if p.Files != nil {
		c.MinPlannedFiles = *p.Files
		if *p.Files == 0 {
			c.MinPlannedFiles = -1
		}
	}
	if p.Selectivity != nil {
		c.MinSelectivity = *p.Selectivity
		if *p.Selectivity == 0 {
			c.MinSelectivity = -1
		}
	}
	return nil
}
