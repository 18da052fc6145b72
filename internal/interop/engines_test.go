package interop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/interop"
)

// TestInteropSpark: what Spark writes, copy-on-write and merge-on-read, through every change of schema and partitioning, is read
// as Spark reads it.
func TestInteropSpark(t *testing.T) {
	sum := compareAll(t, skomer.Config{}, interop.Cases(t, interop.Folder(t, "spark")))
	require.GreaterOrEqual(t, sum.tables, 17)
	require.Greater(t, sum.asked, 800)
	require.Greater(t, sum.deletes, 100)
	requireIndexes(t, sum)
}

// TestInteropEqualityDeletes: equality deletes that Iceberg's Java library writes hide the rows that they hide from its own
// reader, whatever their keys, scope and sequence, and whatever became of the keys.
func TestInteropEqualityDeletes(t *testing.T) {
	sum := compareAll(t, skomer.Config{}, interop.Cases(t, interop.Folder(t, "equality")))
	require.GreaterOrEqual(t, sum.tables, 8)
	require.Greater(t, sum.deletes, 60)
	requireIndexes(t, sum)
}

// TestInteropPyIceberg: what PyIceberg writes, found through its SQL catalog, is read as PyIceberg reads it.
func TestInteropPyIceberg(t *testing.T) {
	dir := interop.Folder(t, "pyiceberg")
	config := skomer.Config{Catalogs: map[string]map[string]string{"local": {"type": "sql", "uri": "sqlite:///" + dir + "/catalog.db"}}}
	sum := compareAll(t, config, interop.Cases(t, dir))
	require.GreaterOrEqual(t, sum.tables, 6)
	require.Greater(t, sum.asked, 120)
	requireIndexes(t, sum)
}

// requireIndexes: answers must have come through indexes, and files must have been ruled out. Zone maps are left out: of files of one page they
// say no more than the manifests, and an index counts as used where it changed the verdict.
func requireIndexes(t *testing.T, sum tally) {
	t.Helper()
	for _, kind := range []string{"bloom", "ordered"} {
		require.Positive(t, sum.used[kind], kind)
	}
	require.Less(t, sum.opened, sum.files*2/3)
}
