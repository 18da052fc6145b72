package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
)

func TestConditionsOfStatus(t *testing.T) {
	s := &skomer.Status{
		LagSeconds: 3700, Rejected: map[string]int64{"tag_mismatch": 2, "from_future": 1}, Backlog: skomer.Backlog{Files: 4},
		Indexes: []skomer.Index{{Covered: 100, Total: 100}, {Covered: 94, Total: 100}},
	}
	for text, holds := range map[string]bool{
		"lag>1h": true, "lag > 1h5m": false, "coverage<95": true, "coverage<94%": false, "rejected>2": true, "rejected>3": false,
		"backlog>3": true, "backlog>4": false,
	} {
		c, err := parseConditions(text)
		require.NoError(t, err)
		require.Equal(t, holds, c[0].holds(s), text)
	}
	c, err := parseConditions("lag>1h, coverage<95,rejected>3,")
	require.NoError(t, err)
	require.Len(t, c, 3)
	require.Equal(t, []string{"not mounted"}, failing(c[2:], s))
	require.Empty(t, failing(nil, s))
	s.Mounted, s.Unusable = true, "damaged"
	require.Equal(t, []string{"the overlay cannot be used"}, failing(c[2:], s))
	s.Unusable = ""
	require.Equal(t, []string{"lag>1h", "coverage<95"}, failing(c, s))
	for _, bad := range []string{"lag", "lag<1h", "lag>soon", "coverage<much", "rejected>some", "backlog>x", ">3"} {
		_, err := parseConditions(bad)
		require.ErrorContains(t, err, "--fail-on", bad)
	}
}

// TestProgressWithoutATerminal: a long sync tells logs how far it is, and does not flood them.
func TestProgressWithoutATerminal(t *testing.T) {
	var out bytes.Buffer
	tell := spoken(&out, time.Hour)
	tell(skomer.SyncProgress{FilesDone: 1, FilesTotal: 9})
	require.Empty(t, out.String())
	tell = spoken(&out, 0)
	tell(skomer.SyncProgress{FilesDone: 1, FilesTotal: 9, Left: -1})
	tell(skomer.SyncProgress{FilesDone: 2, FilesTotal: 9, Left: 90*time.Second + time.Millisecond})
	require.Regexp(t, `(?m)\A\S+  indexing: 1 of 9 files\n\S+  indexing: 2 of 9 files, about 1m30s left\n\z`, out.String())
}
