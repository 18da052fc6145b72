package skomer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
)

// TestExplainTellsWhyAnIndexIsOfNoUse: whether the filter does not test its column or tests it in another way, and which tests
// no index answers.
func TestExplainTellsWhyAnIndexIsOfNoUse(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	s.add(t, 1, 2, 3)
	s.mount(t, "bloom(v)", "ordered(id)")
	table := s.open(t)
	synced(t, table, skomer.SyncOptions{})
	reasons := func(where string) (string, string, []string) {
		t.Helper()
		e, err := table.Explain(ctx, skomer.Query{Where: where}, false)
		require.NoError(t, err)
		return e.Indexes[0].Reason, e.Indexes[1].Reason, e.Unindexed
	}
	bloom, ordered, none := reasons("v > 2")
	require.Equal(t, "does not answer v > 2; bloom is for = and IN on columns with many values", bloom)
	require.Equal(t, "the filter does not test id", ordered)
	require.Equal(t, []string{"v > 2"}, none)
	bloom, _, none = reasons("v = 2 AND id > 0")
	require.NotContains(t, bloom, "does not")
	require.Empty(t, none)
}

// TestExplainTellsWhatMetadataSettles: an index whose side of an OR is settled by bounds is not said to wait for the other side.
func TestExplainTellsWhatMetadataSettles(t *testing.T) {
	table, _ := orTable(t, 3, "bloom(part)")
	x, err := table.Explain(context.Background(), skomer.Query{Where: "part = 5000 OR other = 3"}, false)
	require.NoError(t, err)
	require.Equal(t, "not asked", x.Indexes[0].Use)
	require.Contains(t, x.Indexes[0].Reason, "the table's metadata settles what it could tell")
}
