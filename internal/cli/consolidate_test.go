package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
)

func TestConsolidateTellsWhatItDid(t *testing.T) {
	s := newShell(t)
	require.Equal(t, exitNotFound, s.try("consolidate", "TABLE").code, "not mounted yet")
	s.run("mount", "TABLE")
	s.run("index", "add", "TABLE", "bloom(flight_id)")
	s.run("sync", "TABLE")
	for _, args := range [][]string{{"consolidate", "TABLE", "--dry-run", "-o", "json"}, {"consolidate", "TABLE", "-o", "json"}} {
		var r skomer.ConsolidateReport
		require.NoError(t, json.Unmarshal([]byte(s.run(args...)), &r))
		require.Equal(t, len(args) == 5, r.DryRun)
		require.Zero(t, r.Merges, "one bundle fills no tier")
		require.Equal(t, 1, r.BundlesBefore)
		require.Equal(t, 1, r.BundlesAfter)
	}
	require.Contains(t, s.run("consolidate", "TABLE"), "bundles")
}
