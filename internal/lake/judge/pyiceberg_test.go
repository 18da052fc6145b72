package judge

import (
	"context"
	"fmt"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/interop"
	"github.com/skomerdb/skomer/internal/lake"
)

// TestInteropPyIcebergPlansWrittenTables: PyIceberg plans the tables that lakewrite writes as lake does.
func TestInteropPyIcebergPlansWrittenTables(t *testing.T) {
	python := interop.Python(t)
	r := random(t)
	ctx := context.Background()
	args, want := []string{"testdata/plan.py"}, []string{}
	for range 6 {
		w := written(t, r)
		args = append(args, w.MetadataPath())
		table, err := lake.New(lake.Options{}).Open(ctx, w.Location())
		require.NoError(t, err)
		for _, info := range table.Snapshots() {
			s, err := table.Snapshot(ctx, lake.Selector{ID: info.ID})
			require.NoError(t, err)
			for i, path := range s.Files.Path {
				want = append(want, fmt.Sprintf("%s\t%d\t%s\t%d\t%d\t%d", w.MetadataPath(), info.ID, path, s.Files.Records[i], s.Files.Size[i], len(partitions)))
			}
		}
	}
	got := interop.Lines(t, python, args...)
	sort.Strings(got)
	sort.Strings(want)
	require.Equal(t, want, got)
}
