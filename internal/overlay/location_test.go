package overlay

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
)

func TestLocate(t *testing.T) {
	require.Equal(t, "s3://i/skomer/abc", Locate("s3://i/skomer/", Table{UUID: "ABC"}))
	v1 := Locate("/o", Table{Location: "s3://lake/t/"})
	require.Equal(t, v1, Locate("/o/", Table{Location: "s3://lake/t"}))
	require.Len(t, v1, len("/o/")+64)
	require.NotEqual(t, v1, Locate("/o", Table{Location: "s3://lake/u"}))
}

func TestOverlaysStayOutsideOfTheTable(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "t")
	require.NoError(t, os.Mkdir(table, 0o755))
	require.NoError(t, os.Symlink(table, filepath.Join(dir, "link")))
	cases := []struct {
		overlay, table string
		refused        bool
	}{
		{"s3://lake/t/x", "s3://lake/t", true},
		{"s3://lake/t", "s3://lake/t/", true},
		{"s3a://lake/t/x", "s3://lake/t", true},
		{"s3://lake/wh", "s3://lake/wh/t", true},
		{"s3://lake/a/../t/x", "s3://lake/t", true},
		{"s3://lake", "s3://lake/t", true},
		{"s3://lake/t2", "s3://lake/t", false},
		{"s3://lake/t-index/x", "s3://lake/t", false},
		{"s3://lake2/t/x", "s3://lake/t", false},
		{"gs://lake/t/x", "s3://lake/t", false},
		{"/lake/t/x", "s3://lake/t", false},
		{"wasbs://lake@acc.blob.core.windows.net/t/x", "abfss://lake@acc.dfs.core.windows.net/t", true},
		{"az://lake/t/x", "abfss://lake@acc.dfs.core.windows.net/t", true},
		{"abfss://lake@acc.dfs.core.windows.net/t/x", "az://lake/t", true},
		{"abfss://lake@other.dfs.core.windows.net/t/x", "abfss://lake@acc.dfs.core.windows.net/t", false},
		{"abfss://index@acc.dfs.core.windows.net/t/x", "abfss://lake@acc.dfs.core.windows.net/t", false},
		{"az://lake/t2", "abfss://lake@acc.dfs.core.windows.net/t", false},
		{table + "/x", table, true},
		{table + "/x", "file://" + table, true},
		{"file:" + table + "/x", "file://" + table, true},
		{table + "2", table, false},
		{filepath.Join(dir, "link", "not", "yet"), table, true},
		{filepath.Join(dir, "o", "..", "t", "x"), table, true},
		{filepath.Join(dir, "o"), table, false},
	}
	for _, c := range cases {
		err := CheckApart(c.overlay, c.table)
		require.Equal(t, c.refused, fault.Is(err, fault.Refused), "%s in %s: %v", c.overlay, c.table, err)
	}
}

// TestO49OverlaysAreNoFilesOfTheTable: what removes a table's orphan files looks below its location and at its data and metadata
// folders, and never sees an overlay there.
func TestO49OverlaysAreNoFilesOfTheTable(t *testing.T) {
	table := filepath.Join(t.TempDir(), "t")
	for _, at := range []string{"", "/metadata", "/data/skomer", "/x/../data"} {
		require.True(t, fault.Is(CheckApart(table+at, table), fault.Refused), at)
		require.True(t, fault.Is(CheckApart("s3a://lake/t"+at, "s3://lake/t/"), fault.Refused), at)
	}
	require.NoError(t, CheckApart(Locate(filepath.Join(filepath.Dir(table), "overlays"), Table{UUID: "abc"}), table))
}
