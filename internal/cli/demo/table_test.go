package demo

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/interop"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/store/local"
)

func TestTheTableIsWhatItsReadmeSays(t *testing.T) {
	location := filepath.Join(t.TempDir(), "flights")
	require.NoError(t, Write(t.Context(), local.New(), location))
	table, err := lake.New(lake.Options{}).Open(t.Context(), location)
	require.NoError(t, err)
	snapshot, err := table.Snapshot(t.Context(), lake.Current())
	require.NoError(t, err)
	require.Equal(t, 60, snapshot.Files.Len())
	var rows, bytes, nulls int64
	states := snapshot.Files.Columns[8]
	for i := range snapshot.Files.Len() {
		require.EqualValues(t, 10_000, snapshot.Files.Records[i])
		rows += snapshot.Files.Records[i]
		bytes += snapshot.Files.Size[i]
		nulls += states.Nulls[i]
	}
	require.EqualValues(t, 600_000, rows)
	require.Positive(t, nulls)
	require.Less(t, bytes, int64(12<<20))
	// Only the time of departure is clustered: files do not overlap in it by more than a minute, and do in the rest.
	departed, ids := snapshot.Files.Columns[2], snapshot.Files.Columns[1]
	for i := 1; i < snapshot.Files.Len(); i++ {
		last, next := decode(Schema().Fields[1].Type, departed.Upper[i-1]), decode(Schema().Fields[1].Type, departed.Lower[i])
		require.LessOrEqual(t, last.Int64(), next.Int64())
		require.Less(t, string(ids.Lower[i]), string(ids.Upper[i-1]))
	}
}

// TestInteropOtherReadersOpenTheDemo asks DuckDB and PyIceberg for the same sums.
func TestInteropOtherReadersOpenTheDemo(t *testing.T) {
	python := interop.Python(t)
	location := filepath.Join(t.TempDir(), "flights")
	require.NoError(t, Write(t.Context(), local.New(), location))
	const script = `
import json, sys, duckdb
from pyiceberg.table import StaticTable
table = StaticTable.from_metadata(sys.argv[1] + "/metadata/v2.metadata.json")
arrow = table.scan().to_arrow()
late = table.scan(row_filter="delay > 1000").to_arrow()
duck = duckdb.sql(f"SELECT count(*), count(state), sum(delay), min(flight_id), max(departed)::VARCHAR FROM '{sys.argv[1]}/data/*.parquet'").fetchone()
ice = duckdb.sql("SELECT count(*), count(state), sum(delay), min(flight_id), max(departed)::VARCHAR FROM arrow").fetchone()
print(json.dumps({"duck": duck, "iceberg": ice, "late": late.num_rows}))
`
	out, err := exec.CommandContext(t.Context(), python, "-c", script, location).CombinedOutput()
	require.NoError(t, err, "%s", out)
	var got struct {
		Duck, Iceberg []any
		Late          int
	}
	require.NoError(t, json.Unmarshal(out, &got), "%s", out)
	require.Equal(t, got.Duck, got.Iceberg)
	require.EqualValues(t, 600_000, got.Iceberg[0])
	require.Positive(t, got.Late)
	t.Log(string(out))
}
