package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
)

// TestRepairScrubReindex goes through the commands that look after what a sync has built.
func TestRepairScrubReindex(t *testing.T) {
	s := newShell(t)
	s.run("mount", "TABLE", "--overlay", "over")
	s.run("index", "add", "TABLE", "--overlay", "over", "ordered(delay)")
	require.Contains(t, s.run("sync", "TABLE", "--overlay", "over", "--sweep", "--until", "100%", "--max-cost", "5", "--workers", "1"), "swept")
	require.Contains(t, s.run("repair", "TABLE", "--overlay", "over"), "nothing to repair")
	require.Contains(t, s.run("scrub", "TABLE", "--overlay", "over", "--max-bytes", "5GB"), "all of them were seen")
	require.Contains(t, s.run("reindex", "TABLE", "--overlay", "over"), "artifacts")

	var gone string
	require.NoError(t, filepath.WalkDir(filepath.Join("over", "data"), func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".puffin") && !strings.Contains(path, "-map") {
			gone = path
		}
		return err
	}))
	require.NoError(t, os.Remove(gone))
	require.Contains(t, s.run("repair", "TABLE", "--overlay", "over", "--dry-run"), "to withdraw and build anew: unreadable")
	r := s.try("scrub", "TABLE", "--overlay", "over", "-o", "json")
	require.Equal(t, exitUnhealthy, r.code)
	var report skomer.ScrubReport
	require.NoError(t, json.Unmarshal([]byte(r.out), &report))
	require.NotEmpty(t, report.Findings)
	s.run("sync", "TABLE", "--overlay", "over")
	require.Contains(t, s.run("repair", "TABLE", "--overlay", "over"), "nothing to repair")
	require.Equal(t, exitOK, s.try("status", "TABLE", "--overlay", "over", "--fail-on", "coverage<100").code)
}

// TestSyncFlagsContradict: flags that mean nothing together, or nothing at all, are refused before anything is opened.
func TestSyncFlagsContradict(t *testing.T) {
	s := newShell(t)
	for _, flags := range [][]string{
		{"sync", "TABLE", "--once", "--follow", "1m"},
		{"sync", "TABLE", "--follow", "0s"},
		{"sync", "TABLE", "--sweep-every", "1h"},
		{"sync", "TABLE", "--until", "0"},
		{"sync", "TABLE", "--until", "most"},
		{"sync", "TABLE", "--max-cost", "-1"},
		{"sync", "TABLE", "--workers", "-1"},
		{"scrub", "TABLE", "--sample", "0"},
		{"scrub", "TABLE", "--sample", "101%"},
		{"scrub", "TABLE", "--max-bytes", "many"},
		{"scrub", "TABLE", "--max-bytes", "5XB"},
	} {
		require.Equal(t, exitUsage, s.try(flags...).code, flags)
	}
}

func TestSizesAreRead(t *testing.T) {
	for text, want := range map[string]int64{"12": 12, "500MB": 5e8, "1.5 GB": 15e8, "2kb": 2000, "1TB": 1e12} {
		n, err := parseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, n)
	}
}

// TestRepairSaysWhatItCouldNotCheck: it does not claim that there is nothing to repair where data files cannot be looked at.
func TestRepairSaysWhatItCouldNotCheck(t *testing.T) {
	s := newShell(t)
	s.run("mount", "TABLE")
	s.run("index", "add", "TABLE", "bloom(flight_id)")
	s.run("sync", "TABLE")
	require.Contains(t, s.run("repair", "TABLE"), "nothing to repair")
	data := filepath.Join(s.flights, "data")
	require.NoError(t, os.Rename(data, data+".away"))
	for _, args := range [][]string{{"repair", "TABLE"}, {"repair", "TABLE", "--dry-run"}} {
		r := s.try(args...)
		require.NotContains(t, r.out+r.err, "nothing to repair")
		require.Contains(t, r.out+r.err, "not checked: ")
		require.Contains(t, s.run(append(args, "-o", "json")...), `"unchecked"`)
	}
}

// TestASweepThatComparedNothingIsNoSuccess: the sync is made, and its report and exit code tell that no tag could be looked up.
func TestASweepThatComparedNothingIsNoSuccess(t *testing.T) {
	s := newShell(t)
	s.run("mount", "TABLE")
	s.run("index", "add", "TABLE", "bloom(flight_id)")
	s.run("sync", "TABLE")
	swept := func(args ...string) (r skomer.SyncReport, got result) {
		got = s.try(append([]string{"sync", "TABLE", "--sweep", "-o", "json"}, args...)...)
		require.NoError(t, json.Unmarshal([]byte(got.out), &r), got.err)
		return r, got
	}
	r, got := swept()
	require.Equal(t, exitOK, got.code)
	require.Positive(t, r.Swept.Files)
	require.Zero(t, r.Swept.Unchecked)
	data := filepath.Join(s.flights, "data")
	require.NoError(t, os.Rename(data, data+".away"))
	require.NoError(t, os.Symlink(strings.Repeat("x", 300), data)) // no name may be so long: nothing below it can be looked at
	r, got = swept()
	require.Equal(t, exitUnhealthy, got.code)
	require.Contains(t, got.err, "not one entity tag")
	require.Equal(t, r.Swept.Files, r.Swept.Unchecked)
	require.Positive(t, r.Swept.Unchecked)
	text := s.try("sync", "TABLE", "--sweep")
	require.Equal(t, exitUnhealthy, text.code)
	require.Contains(t, text.out, "could not be looked up")
	require.NoError(t, os.Remove(data))
	require.NoError(t, os.Rename(data+".away", data))
	r, got = swept()
	require.Equal(t, exitOK, got.code)
	require.Zero(t, r.Swept.Unchecked)
}

// TestDamagedListsAreToldWithTheWayOut: a status says what to do about a damaged list, and a scrub does not claim to have withdrawn it.
func TestDamagedListsAreToldWithTheWayOut(t *testing.T) {
	s, answer, where := indexed(t)
	lists, err := filepath.Glob(filepath.Join(where, "chunks", "*"))
	require.NoError(t, err)
	for _, path := range lists {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		raw[len(raw)/3] ^= 0x55
		require.NoError(t, os.WriteFile(path, raw, 0o600))
	}
	require.Contains(t, s.run("status", "TABLE"), "try: skomer repair TABLE")
	require.Contains(t, s.try("scrub", "TABLE").out+s.try("scrub", "TABLE").err, "left to skomer repair")
	s.run("repair", "TABLE")
	s.run("sync", "TABLE")
	require.NotContains(t, s.run("status", "TABLE"), "warning")
	require.Equal(t, exitOK, s.try("scrub", "TABLE").code)
	s.same(answer, "repaired")
}
