package skomer_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// TestRowLineage: rows of a v3 table that were never rewritten have the first row id of their file plus their position, and its
// sequence number; a v2 table has neither. What a rewrite stores is tested with
// Spark's tables.
func TestRowLineage(t *testing.T) {
	ctx := context.Background()
	for version, want := range map[int][]string{
		2: {"0 null null", "0 null null", "1 null null", "1 null null", "2 null null"},
		3: {"0 0 1", "0 3 2", "1 1 1", "1 4 2", "2 2 1"},
	} {
		dir := filepath.Join(t.TempDir(), "table")
		w, err := lakewrite.Create(ctx, local.New(), dir, lakewrite.Spec{Schema: idSchema, FormatVersion: version})
		require.NoError(t, err)
		for i, rows := range [][]tabletest.Row{longs(5, 6, 7), longs(8, 9)} {
			_, err := w.Append(ctx, plain(t, filepath.Join(dir, "data", fmt.Sprint(i, ".parquet")), rows))
			require.NoError(t, err)
		}
		got := lineageOf(t, open(t, dir, filepath.Join(t.TempDir(), "overlays")))
		slices.Sort(got)
		require.Equal(t, want, got, "version %d", version)
	}
}

func lineageOf(t *testing.T, table *skomer.Table) (out []string) {
	t.Helper()
	ctx := context.Background()
	rows, err := table.Query(ctx, skomer.Query{Select: []string{"id", "_row_id", "_last_updated_sequence_number"}, Limit: -1})
	require.NoError(t, err)
	require.NoError(t, rows.Each(ctx, func(b *skomer.Batch) error {
		for i := range b.Rows {
			line := ""
			for _, c := range b.Cols {
				text := "null"
				if v, ok := c.Value(i); ok {
					text = fmt.Sprint(v.Int64())
				}
				line += " " + text
			}
			out = append(out, line[1:])
		}
		return nil
	}))
	return out
}
