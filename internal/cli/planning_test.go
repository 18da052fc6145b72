package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKnobsOfTheCostRule: skomer.yaml sets them, flags override, and what is out of range is refused.
func TestKnobsOfTheCostRule(t *testing.T) {
	s := newShell(t)
	put(t, "skomer.yaml", "planning: {min_planned_scan_bytes: 100000000, min_planned_file_count: 1000}\n")
	s.run("mount", "TABLE")
	s.run("index", "add", "TABLE", "ordered(delay)", "sketch(delay)")
	s.run("sync", "TABLE")
	require.Contains(t, s.run("explain", "TABLE", "-w", "delay > 1200"), "a scan is cheaper")
	require.Contains(t, s.run("explain", "TABLE", "-w", "delay > 1200", "--min-planned-scan-bytes", "0"), "ruled out files, or rows of files")
	broad := s.run("explain", "TABLE", "-w", "delay > -1000", "--min-planned-scan-bytes", "0")
	require.Contains(t, broad, "more than 50 %: a scan is cheaper")
	require.NotContains(t, s.run("explain", "TABLE", "-w", "delay > -1000", "--min-planned-scan-bytes", "0", "--min-selectivity", "0"), "a scan is cheaper")
	r := s.try("query", "TABLE", "--min-selectivity", "1.5")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "min_selectivity is from 0 to 1")
}
