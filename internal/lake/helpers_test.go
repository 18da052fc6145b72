package lake

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/realdata"
)

// tableDirs is every real table folder.
func tableDirs(t testing.TB) []string {
	t.Helper()
	var dirs []string
	for _, pattern := range []string{
		"duckdb-iceberg/*/metadata", "duckdb-iceberg/*/*/metadata", "duckdb-iceberg/*/*/*/metadata", "duckdb-iceberg/*/*/*/*/metadata",
		"icebird/hyperparam-iceberg/*/*/metadata",
		"impala/iceberg/*/metadata", "impala/iceberg/*/*/metadata", "impala/iceberg/*/*/*/metadata", "impala/iceberg/*/*/*/*/metadata",
	} {
		for _, hit := range realdata.Glob(t, pattern) {
			dirs = append(dirs, filepath.Dir(hit))
		}
	}
	return dirs
}

// metadataFiles is every metadata.json of a table folder.
func metadataFiles(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "metadata"))
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		if isMetadataFile(e.Name()) {
			out = append(out, filepath.Join(dir, "metadata", e.Name()))
		}
	}
	return out
}

// openReal opens a table folder or metadata.json below dir with its stated location mapped to dir.
func openReal(t testing.TB, dir, name string) (*Lake, *Table) {
	t.Helper()
	ctx := context.Background()
	first, err := New(Options{}).Open(ctx, name)
	require.NoError(t, err)
	l := New(Options{Mapping: mappingFor(t, dir, first.Location())})
	table, err := l.Open(ctx, name)
	require.NoError(t, err)
	return l, table
}

// mappingFor brings the paths of a real table home: its location, and the other roots that its writers used.
func mappingFor(t testing.TB, dir, location string) Mapping {
	m := Mapping{{From: location, To: dir}}
	if _, path, ok := strings.Cut(location, "://"); ok {
		if i := strings.IndexByte(path, '/'); i >= 0 {
			m = append(m, Rule{From: path[i:], To: dir})
		}
	}
	root := realdata.Root(t)
	m = append(m, Rule{From: filepath.Base(dir), To: dir})
	return append(m,
		Rule{From: "data/persistent", To: filepath.Join(root, "duckdb-iceberg")},
		Rule{From: "/test-warehouse/iceberg_test", To: filepath.Join(root, "impala/iceberg")},
		Rule{From: "hdfs://localhost:20500/test-warehouse/iceberg_test", To: filepath.Join(root, "impala/iceberg")},
	)
}

func snapshotOf(t testing.TB, table *Table, sel Selector) *facts.Snapshot {
	t.Helper()
	s, err := table.Snapshot(context.Background(), sel)
	require.NoError(t, err)
	checkShape(t, s)
	return s
}

// checkShape asserts that all columns of the facts run parallel.
func checkShape(t testing.TB, s *facts.Snapshot) {
	t.Helper()
	f, n := s.Files, s.Files.Len()
	for _, got := range []int{len(f.Stated), len(f.Format), len(f.Size), len(f.Records), len(f.SpecID), len(f.Sequence), len(f.FirstRowID), len(f.Snapshot), len(f.Encrypted), len(f.Manifest)} {
		require.Equal(t, n, got)
	}
	for id, c := range f.Columns {
		for _, got := range []int{len(c.Lower), len(c.Upper), len(c.Values), len(c.Nulls), len(c.NaNs)} {
			require.Equal(t, n, got, "column %d", id)
		}
	}
	for id, c := range f.Partition {
		for _, got := range []int{len(c.Known), len(c.Null), len(c.Value)} {
			require.Equal(t, n, got, "partition field %d", id)
		}
	}
	d, m := s.Deletes, s.Deletes.Len()
	for _, got := range []int{len(d.Kind), len(d.Stated), len(d.Format), len(d.Size), len(d.Records), len(d.SpecID), len(d.Partition), len(d.Sequence), len(d.FieldIDs), len(d.Encrypted), len(d.Referenced), len(d.Offset), len(d.Length)} {
		require.Equal(t, m, got)
	}
}
