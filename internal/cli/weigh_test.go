package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
)

// TestWhatIsWeighedBeforeItIsBuilt goes through the commands that measure a table and say what an index takes, saves and did.
func TestWhatIsWeighedBeforeItIsBuilt(t *testing.T) {
	s := newShell(t)
	var e skomer.Estimate
	require.NoError(t, json.Unmarshal([]byte(s.run("estimate", "TABLE", "bloom(flight_id)", "ordered(delay)", "-o", "json")), &e))
	require.Len(t, e.Indexes, 2)
	for what, r := range map[string]skomer.Range{"read": e.BytesRead, "gets": e.Gets, "puts": e.Puts, "size": e.Size, "time": e.Seconds, "memory": e.Memory} {
		require.Positive(t, r.High, what)
		require.LessOrEqual(t, r.Low, r.High, what)
	}
	require.Contains(t, s.run("estimate", "TABLE", "bloom(flight_id)"), "bloom(flight_id)")
	require.NoDirExists(t, filepath.Join(filepath.Dir(s.flights), "data", "skomer"), "nothing is written")

	queries := filepath.Join(t.TempDir(), "queries.txt")
	require.NoError(t, os.WriteFile(queries, []byte("flight_id = '7CBWH4K3'\ndelay > 1200\n"), 0o600))
	var a skomer.Advice
	require.NoError(t, json.Unmarshal([]byte(s.run("advise", "TABLE", "--queries", queries, "-o", "json")), &a))
	require.Equal(t, 2, a.Queries)
	require.False(t, a.Assumed)
	s.run("advise", "TABLE")

	for _, column := range []string{"flight_id", "delay"} {
		require.Contains(t, s.run("stats", "TABLE"), column)
	}

	s.run("mount", "TABLE")
	s.run("index", "add", "TABLE", "bloom(flight_id)")
	s.run("sync", "TABLE")
	page := filepath.Join(t.TempDir(), "explain.html")
	require.Contains(t, s.run("explain", "TABLE", "-w", "flight_id = '7CBWH4K3'", "--analyze", "--html", page), "bloom(flight_id)")
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "bloom(flight_id)")
	require.Contains(t, string(html), `<div class="wave `, "the waterfall")
	var x map[string]any
	require.NoError(t, json.Unmarshal([]byte(s.run("explain", "TABLE", "-w", "flight_id = '7CBWH4K3'", "-o", "json")), &x))
	require.Contains(t, x, "indexes")
}
