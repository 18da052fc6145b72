package lakewrite_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
)

func TestRoundTrip(t *testing.T) {
	for _, version := range []int{1, 2, 3} {
		ctx, dir := context.Background(), t.TempDir()
		schema := &column.Schema{Fields: []column.Field{
			{ID: 1, Name: "a", Type: column.Of(column.Long)}, {ID: 2, Name: "d", Type: column.DecimalOf(9, 2)},
		}}
		w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: schema, FormatVersion: version, Partition: &facts.Spec{Fields: []facts.PartitionField{{ID: 1000, SourceID: 2, Name: "d", Transform: "identity"}}}})
		require.NoError(t, err)
		_, err = w.Append(ctx, lakewrite.File{
			Path: dir + "/data/x.parquet", Records: 3, Size: 10, Partition: []facts.PartitionValue{{Value: column.DecimalValue(-1, ^uint64(4), 2)}},
			Metrics: map[int]lakewrite.Metric{1: {Nulls: lakewrite.N(0), Lower: []byte{1, 0, 0, 0, 0, 0, 0, 0}}},
		})
		require.NoError(t, err)
		table, err := lake.New(lake.Options{}).Open(ctx, dir)
		require.NoError(t, err)
		s, err := table.Snapshot(ctx, lake.Current())
		require.NoError(t, err)
		require.Equal(t, 1, s.Files.Len())
		require.Equal(t, column.DecimalValue(-1, ^uint64(4), 2), s.Files.Partition[1000].Value[0])
		require.Equal(t, int64(0), s.Files.Columns[1].Nulls[0])
		require.Equal(t, facts.Unknown, s.Files.Columns[1].NaNs[0])
	}
}
