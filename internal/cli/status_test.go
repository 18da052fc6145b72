package cli

import (
	"testing"

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
	s.Mounted = true
	require.Equal(t, []string{"lag>1h", "coverage<95"}, failing(c, s))
	for _, bad := range []string{"lag", "lag<1h", "lag>soon", "coverage<much", "rejected>some", "backlog>x", ">3"} {
		_, err := parseConditions(bad)
		require.ErrorContains(t, err, "--fail-on", bad)
	}
}
