package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNumbersAreRead: what a flag with a number cannot mean is refused by the flag's name, in plain words and with what can be written.
func TestNumbersAreRead(t *testing.T) {
	s := newShell(t)
	s.run("mount", "TABLE")
	for _, c := range []struct{ line, says string }{
		{"vacuum TABLE --retain -1", `--retain: "-1" is less than 1`},
		{"vacuum TABLE --retain 0", `--retain: "0" is less than 1`},
		{"vacuum TABLE --retain 7x", `--retain: "7x" is neither a number of versions nor a length of time`},
		{"vacuum TABLE --retain 7d --retain-for 7d", "--retain: is a length of time, and so is --retain-for"},
		{"vacuum TABLE --retain-for -1h", `--retain-for: "-1h" is no length of time`},
		{"vacuum TABLE --grace 1", `--grace: "1" is no length of time`},
		{"status TABLE --timeout -1s", `--timeout: "-1s" is no length of time`},
		{"status TABLE --fail-on lag>-1h", `--fail-on: "-1h" is not a duration`},
		{"status TABLE --fail-on coverage<NaN", `--fail-on: "NaN" is not a percentage`},
		{"status TABLE --fail-on rejected>-1", `--fail-on: "-1" is not a number of 0 or more`},
		{"sync TABLE --follow -1m", `--follow: "-1m" is no length of time`},
		{"sync TABLE --follow 0", "--follow: needs a time above 0"},
		{"sync TABLE --follow 1m --sweep-every -1h", `--sweep-every: "-1h" is no length of time`},
		{"sync TABLE --workers -1", `--workers: "-1" is no whole number of 0 or more`},
		{"sync TABLE --workers 1.5", `--workers: "1.5" is no whole number of 0 or more`},
		{"sync TABLE --max-cost NaN", `--max-cost: "NaN" is no number of 0 or more`},
		{"sync TABLE --max-cost 0", "--max-cost: must be above 0"},
		{"sync TABLE --until NaN", `--until: "NaN" is not a percentage`},
		{"scrub TABLE --sample -1%", `--sample: "-1%" is not a percentage`},
		{"scrub TABLE --max-bytes NaN", `--max-bytes: "NaN" is no size`},
		{"scrub TABLE --max-bytes -1GB", `--max-bytes: "-1GB" is no size`},
		{"overlay versions TABLE --limit -1", `--limit: "-1" is no whole number of 0 or more`},
		{"overlay rollback TABLE --to -1", `--to: "-1" is no whole number of 1 or more`},
		{"verify TABLE --answers 0", `--answers: "0" is no whole number of 1 or more`},
		{"query TABLE --limit ten", `--limit: "ten" is no whole number`},
		{"query TABLE --min-selectivity -1", `--min-selectivity: "-1" is no number of 0 or more`},
		{"query TABLE --min-planned-scan-bytes -1", `--min-planned-scan-bytes: "-1" is no whole number of 0 or more`},
		{"query TABLE --min-planned-file-count x", `--min-planned-file-count: "x" is no whole number of 0 or more`},
		{"erase TABLE --snapshot-gone --deadline -3d", `--deadline: "-3d" is no length of time`},
	} {
		r := s.try(strings.Fields(c.line)...)
		require.Equal(t, exitUsage, r.code, "%s\n%s", c.line, r.err)
		require.Contains(t, r.err, c.says, c.line)
		require.NotContains(t, r.err, "strconv", c.line)
	}
	for _, line := range []string{
		"vacuum TABLE --retain 7d", "vacuum TABLE --retain 3", "vacuum TABLE --retain 2 --retain-for 1d", "status TABLE --timeout 1d",
		"overlay versions TABLE --limit 0", "query TABLE --limit -1 --count", "query TABLE --count --min-selectivity 0 --min-planned-scan-bytes 0",
		"sync TABLE --workers 0 --max-cost 1.5 --until 95%",
	} {
		s.run(strings.Fields(line)...)
	}
	help := s.run("sync", "--help") + s.run("vacuum", "--help") + s.run("overlay", "rollback", "--help")
	require.NotContains(t, help, "default 0")
}

// TestRetainIsACountOrATime: a count alone keeps no others, a time keeps those that were the newest within it.
func TestRetainIsACountOrATime(t *testing.T) {
	s := newShell(t)
	s.run("mount", "TABLE")
	for _, x := range []string{"bloom(flight_id)", "bloom(origin)", "bloom(state)"} {
		s.run("index", "add", "TABLE", x)
	}
	kept := func(args ...string) string {
		out := s.run(append([]string{"vacuum", "TABLE", "--dry-run", "--grace", "0"}, args...)...)
		for line := range strings.Lines(out) {
			if rest, ok := strings.CutPrefix(line, "oldest version kept"); ok {
				return strings.TrimSpace(rest)
			}
		}
		return out
	}
	require.Equal(t, "3", kept("--retain", "2"))
	require.Equal(t, "1", kept("--retain", "7d"))
	require.Equal(t, "1", kept("--retain", "2", "--retain-for", "12h"))
	require.Equal(t, "4", kept("--retain", "1"))
}
