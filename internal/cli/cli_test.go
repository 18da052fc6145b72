package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/demo"
	"github.com/skomerdb/skomer/internal/cli/verify"
	"github.com/skomerdb/skomer/internal/store/local"
)

// shell runs skomer in an environment of its own, over the flights.
type shell struct {
	t       *testing.T
	flights string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Chdir(dir)
	s := &shell{t: t, flights: filepath.Join(dir, "flights")}
	require.NoError(t, demo.Write(t.Context(), local.New(), s.flights))
	return s
}

// result is what one command did.
type result struct {
	code     int
	out, err string
}

func (s *shell) try(args ...string) result {
	s.t.Helper()
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Minute) // only a hang takes so long
	defer cancel()
	for i, arg := range args {
		if arg == "TABLE" {
			args[i] = s.flights
		}
	}
	code := Run(ctx, args, &out, &errs)
	return result{code, out.String(), errs.String()}
}

// run is try for commands that must succeed; it returns standard output.
func (s *shell) run(args ...string) string {
	s.t.Helper()
	r := s.try(args...)
	require.Zero(s.t, r.code, "skomer %s\n%s", strings.Join(args, " "), r.err)
	return r.out
}

func TestCountStandsAlone(t *testing.T) {
	s := newShell(t)
	require.Equal(t, "600000\n", s.run("query", "TABLE", "--count"))
	require.Equal(t, "4\n", s.run("query", "TABLE", "-c", "-w", "destination = 'GST'", "-o", "json"))
}

func TestFiltersInExpressionJSON(t *testing.T) {
	s := newShell(t)
	where := func(filter string) string { return s.run("query", "TABLE", "-c", "-w", filter) }
	require.Equal(t, where("destination = 'GST'"), where(` {"type": "eq", "term": "destination", "value": "GST"}`))
	// In expression JSON a negated comparison keeps nulls.
	require.Equal(t, where("state <> 'CA' OR state IS NULL"), where(`{"type": "not-eq", "term": "state", "value": "CA"}`))
	require.NotEqual(t, where("state <> 'CA'"), where(`{"type": "not-eq", "term": "state", "value": "CA"}`))
}

func TestStatsIsOneObjectOnStandardError(t *testing.T) {
	s := newShell(t)
	r := s.try("query", "TABLE", "--where", "destination = 'GST'", "--stats", "-o", "csv")
	require.Zero(t, r.code)
	require.Equal(t, 5, strings.Count(r.out, "\n"))
	require.Equal(t, 1, strings.Count(r.err, "\n"))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.err), &got))
	for _, key := range []string{
		"files_total", "files_opened", "row_groups", "pages", "requests", "bytes", "waves", "indexes_used", "indexes_missing", "rejected", "seconds",
	} {
		require.Contains(t, got, key)
	}
	require.EqualValues(t, 60, got["files_total"])
}

func TestFormatsHoldTheSameRows(t *testing.T) {
	s := newShell(t)
	query := func(format string) string {
		return s.run("query", "TABLE", "-w", "delay BETWEEN 400 AND 405", "-s", "flight_id,departed,delay,state,_pos", "-o", format)
	}
	want, err := csv.NewReader(strings.NewReader(query("csv"))).ReadAll()
	require.NoError(t, err)
	require.Len(t, want, 8)
	require.Equal(t, []string{"flight_id", "departed", "delay", "state", "_pos"}, want[0])

	lines := strings.Split(strings.TrimSpace(query("json")), "\n")
	require.Len(t, lines, 7)
	var first struct {
		ID    string `json:"flight_id"`
		Delay int
	}
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &first))
	require.Equal(t, want[1][0], first.ID)

	require.Equal(t, 9, strings.Count(query("table"), "\n"))

	arrow, err := ipc.NewReader(strings.NewReader(query("arrow")))
	require.NoError(t, err)
	rows := int64(0)
	for arrow.Next() {
		rows += arrow.RecordBatch().NumRows()
	}
	require.NoError(t, arrow.Err())
	require.EqualValues(t, 7, rows)

	parquet, err := file.NewParquetReader(strings.NewReader(query("parquet")))
	require.NoError(t, err)
	require.EqualValues(t, 7, parquet.NumRows())
}

// hidden is what differs from run to run: ids, times, places.
var hidden = regexp.MustCompile(`[0-9a-f]{10,}|/\S*|\d+\.\d+ (s|ms)\b|\d{4}-\d\d-\d\dT[0-9:]+Z|[0-9.]+ (B|kB|MB)\b`)

func TestLifeOfAnOverlay(t *testing.T) {
	s := newShell(t)
	const filter = "flight_id = '7CBWH4K3' OR delay > 1200"
	untouched := everythingBelow(t, s.flights)
	before := s.run("query", "TABLE", "-w", filter, "-o", "json")
	require.NotEmpty(t, before)

	require.Equal(t, exitNotFound, s.try("index", "list", "TABLE").code, "not mounted yet")
	require.Equal(t, exitNotFound, s.try("sync", "TABLE").code, "not mounted yet")
	require.Contains(t, s.run("status", "TABLE"), "(not mounted)")

	s.run("mount", "TABLE")
	s.run("mount", "TABLE")
	require.Contains(t, s.run("index", "add", "TABLE", "bloom(flight_id)", "ordered(delay)"), "0%")
	require.Equal(t, exitUnhealthy, s.try("status", "TABLE", "--fail-on", "coverage<95").code)
	require.Equal(t, before, s.run("query", "TABLE", "-w", filter, "-o", "json"), "declared and not built")

	s.run("sync", "TABLE")
	require.Equal(t, exitOK, s.try("status", "TABLE", "--fail-on", "coverage<100,rejected>0").code)
	require.Equal(t, before, s.run("query", "TABLE", "-w", filter, "-o", "json"), "built")
	r := s.try("query", "TABLE", "-c", "-w", "flight_id = '7CBWH4K3'", "--stats")
	require.Contains(t, r.err, `"indexes_used":["bloom(flight_id)"]`)
	require.Less(t, statOf(t, r.err, "files_opened"), 30.0)

	golden(t, "status", s.run("status", "TABLE"))
	golden(t, "show", s.run("index", "show", "TABLE", " ordered( delay ) "))
	golden(t, "explain", s.run("explain", "TABLE", "-w", "NOT (delay <= 1200) AND origin = 'JFK'"))
	golden(t, "describe", s.run("describe", "TABLE"))

	s.run("index", "drop", "TABLE", "bloom(flight_id)")
	require.NotContains(t, s.run("index", "list", "TABLE"), "bloom")
	require.Equal(t, exitNotFound, s.try("index", "show", "TABLE", "bloom(flight_id)").code)
	require.Equal(t, before, s.run("query", "TABLE", "-w", filter, "-o", "json"), "one dropped")

	s.run("unmount", "TABLE")
	require.Equal(t, before, s.run("query", "TABLE", "-w", filter, "-o", "json"), "unmounted")
	s.run("mount", "TABLE")
	require.Contains(t, s.run("index", "list", "TABLE"), "ordered(delay)")
	require.Equal(t, untouched, everythingBelow(t, s.flights), "a mounted table is never written")
}

// everythingBelow is the name, size and time of change of every file and folder.
func everythingBelow(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			out = append(out, fmt.Sprint(path, info.Size(), info.Mode(), info.ModTime()))
		}
		return err
	}))
	return out
}

func statOf(t *testing.T, text, key string) float64 {
	t.Helper()
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	return got[key].(float64)
}

// golden compares an output with testdata/<name>.txt; SKOMER_GOLDEN=write writes it anew.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = hidden.ReplaceAllString(got, "…")
	got = regexp.MustCompile(` *…`).ReplaceAllString(got, " …")
	got = regexp.MustCompile(`─+`).ReplaceAllString(got, "─")
	_, self, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(self), "testdata", name+".txt")
	if os.Getenv("SKOMER_GOLDEN") == "write" {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestExitCodesAndErrors(t *testing.T) {
	s := newShell(t)
	put(t, "notes.txt", "not a table")
	put(t, "bad.yaml", "nonsense: 1")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"query", "TABLE", "-w", "delay > 5000", "-c"}, exitOK, ""},
		{[]string{"query", "TABLE", "-w", "delay > 5000", "-c", "--exit-code"}, exitNoMatch, ""},
		{[]string{"query", "TABLE", "-w", "delay > 1000", "-c", "--exit-code"}, exitOK, ""},
		{[]string{"query"}, exitUsage, "takes one table"},
		{[]string{"query", "TABLE", "--wher", "x"}, exitUsage, "unknown flag: --wher"},
		{[]string{"query", "TABLE", "--no-index", "--no-prune"}, exitUsage, "no-index"},
		{[]string{"query", "TABLE", "-w", "dealy = 1"}, exitUsage, "delay"},
		{[]string{"query", "TABLE", "-w", "delay = "}, exitUsage, "column 9"},
		{[]string{"query", "TABLE", "-o", "xml"}, exitUsage, "xml"},
		{[]string{"query", "TABLE", "--map", "nothing"}, exitUsage, "FROM=TO"},
		{[]string{"query", "TABLE", "--limit", "0"}, exitUsage, "limit"},
		{[]string{"status", "TABLE", "-o", "csv"}, exitUsage, "no rows"},
		{[]string{"status", "TABLE", "--fail-on", "mood<3"}, exitUsage, "mood<3"},
		{[]string{"version", "--config", "x", "y"}, exitUsage, "no arguments"},
		{[]string{"query", "TABLE", "--config", "bad.yaml"}, exitUsage, "nonsense"},
		{[]string{"dance"}, exitUsage, "dance"},
		{[]string{"query", "./no-table"}, exitNotFound, "no-table"},
		{[]string{"query", "TABLE", "--at", "424242"}, exitNotFound, "424242"},
		{[]string{"query", "TABLE", "--config", "none.yaml"}, exitNotFound, "none.yaml"},
		{[]string{"inspect", "none.puffin"}, exitNotFound, "none.puffin"},
		{[]string{"inspect", "notes.txt"}, exitRefused, "notes.txt"},
		{[]string{"mount", "TABLE", "--overlay", "flights/overlay"}, exitRefused, "inside the table"},
		{[]string{"query", "TABLE", "--timeout", "1ns"}, exitLimit, "timeout"},
	} {
		r := s.try(c.args...)
		require.Equal(t, c.code, r.code, "skomer %s\n%s", strings.Join(c.args, " "), r.err)
		require.Contains(t, r.err, c.says, "skomer %s", strings.Join(c.args, " "))
	}
}

func TestErrorsAsJSON(t *testing.T) {
	s := newShell(t)
	r := s.try("query", "./no-table", "-o", "json")
	require.Equal(t, exitNotFound, r.code)
	require.Empty(t, r.out)
	var f failure
	require.NoError(t, json.Unmarshal([]byte(r.err), &f))
	require.Equal(t, exitNotFound, f.Code)
	require.Equal(t, "not found", f.Kind)
	require.NotEmpty(t, f.Subject)
	require.NotEmpty(t, f.Reason)
	require.NotEmpty(t, f.Fix)
}

func TestInterruptedIsSaidSo(t *testing.T) {
	s := newShell(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	require.Equal(t, exitInterrupted, Run(ctx, []string{"query", s.flights, "-c"}, &out, &errs))
	require.Empty(t, out.String())
	require.Equal(t, "skomer: interrupted\n", errs.String())
}

func TestVerifyFindsNothingAndFailsOnADifference(t *testing.T) {
	s := newShell(t)
	s.run("mount", "TABLE")
	s.run("index", "add", "TABLE", "ordered(delay)", "bloom(destination)", "zonemap(distance)")
	s.run("sync", "TABLE")
	var report verify.Report
	require.NoError(t, json.Unmarshal([]byte(s.run("verify", "TABLE", "--answers", "4", "--seed", "7", "-o", "json")), &report))
	require.Equal(t, 4, report.Answers)
	require.Empty(t, report.Differences)
	require.Positive(t, report.NonEmpty)

	a := &app{out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	err := a.showVerified(&verify.Report{Differences: []verify.Difference{{Filter: "delay = 1", RowsIndexed: 1}}})
	require.Equal(t, exitUnhealthy, exitCode(err))
}

func TestInspectOpensOurBundles(t *testing.T) {
	s := newShell(t)
	s.run("mount", "TABLE", "--overlay", "over")
	s.run("index", "add", "TABLE", "zonemap(distance)", "--overlay", "over")
	s.run("sync", "TABLE", "--overlay", "over")
	var bundles []string
	require.NoError(t, filepath.WalkDir("over", func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".puffin") {
			bundles = append(bundles, path)
		}
		return err
	}))
	require.NotEmpty(t, bundles)
	require.Contains(t, s.run("inspect", bundles[0]), "skomer.zonemap.v1")
	require.Contains(t, s.run("inspect", bundles[0], "-o", "json"), `"source_snapshot_id": 1001`)
}

func TestDemoKeepsItsPromises(t *testing.T) {
	s := newShell(t)
	out := s.run("demo", "--dir", "show")
	require.Contains(t, out, "7 of 7 answers are the same")
	require.Contains(t, s.run("demo", "--dir", "show"), "7 of 7", "an earlier demo is replaced")
	require.NoError(t, os.WriteFile("show/letter.txt", nil, 0o600))
	r := s.try("demo", "--dir", "show")
	require.Equal(t, exitRefused, r.code)
	require.FileExists(t, "show/letter.txt")
	require.NoError(t, protect("show", 0, 0o200)) // so that the test can clean up
}

// TestExamplesInHelpAreCommands parses every example: command, flags and number of arguments.
func TestExamplesInHelpAreCommands(t *testing.T) {
	a := &app{out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	examples := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		require.NotEmpty(t, cmd.Short, cmd.CommandPath())
		if cmd.Name() != "version" {
			require.NotEmpty(t, cmd.Example, "%s teaches nothing", cmd.CommandPath())
		}
		for _, line := range strings.Split(cmd.Example, "\n") {
			for _, one := range strings.Split(line, "&&") {
				examples++
				checkExample(t, a, strings.TrimSpace(one))
			}
		}
		for _, kid := range cmd.Commands() {
			walk(kid)
		}
	}
	walk(a.root())
	require.Greater(t, examples, 20)
}

// assignment is a variable that a shell sets for the one command after it.
var assignment = regexp.MustCompile(`^[A-Z_]+=`)

func checkExample(t *testing.T, a *app, line string) {
	t.Helper()
	if line == "" {
		return
	}
	words := shellWords(line)
	for assignment.MatchString(words[0]) {
		words = words[1:]
	}
	require.Equal(t, "skomer", words[0], line)
	cmd, rest, err := a.root().Find(words[1:])
	require.NoError(t, err, line)
	require.NoError(t, cmd.ParseFlags(rest), line)
	require.NoError(t, cmd.ValidateArgs(cmd.Flags().Args()), line)
}

// shellWords splits a command line at spaces outside of quotes, up to a redirection.
func shellWords(line string) []string {
	var words []string
	var word strings.Builder
	quote := rune(0)
	for _, r := range line + " " {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		case quote == 0 && r == '>':
			return words
		case quote == 0 && r == ' ':
			if word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	return words
}

func TestNumbersForPeople(t *testing.T) {
	require.Equal(t, "-1,234,567", number(-1234567))
	require.Equal(t, "999", number(999))
	require.Equal(t, "1.5 MB", size(1_500_000))
	require.Equal(t, "999 B", size(999))
	require.Equal(t, "99.9%", share(999_999, 1_000_000))
	require.Equal(t, "100%", share(0, 0))
	require.Equal(t, "12.5%", share(1, 8))
	require.Equal(t, 0.0, leastCoverage(&skomer.Status{}))
}
