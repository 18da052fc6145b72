package inspect

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/realdata"
	"github.com/skomerdb/skomer/internal/store/local"
)

func TestForeignPuffins(t *testing.T) {
	for _, file := range realdata.Glob(t, "apache-iceberg/org/apache/iceberg/puffin/v1/*.bin") {
		r, err := Look(t.Context(), local.New(), file, true)
		require.NoError(t, err, file)
		require.Equal(t, "puffin", r.Format)
		require.False(t, r.Puffin.Ours)
		require.Len(t, r.Sections()[0].Rows, len(r.Puffin.Blobs))
		for _, section := range r.Sections() {
			for _, row := range section.Rows {
				require.Len(t, row, len(section.Header))
			}
		}
	}
	r, err := Look(t.Context(), local.New(), realdata.Path(t, "apache-iceberg/org/apache/iceberg/puffin/v1/sample-metric-data-compressed-zstd.bin"), false)
	require.NoError(t, err)
	require.Len(t, r.Puffin.Blobs, 2)
	require.Equal(t, "zstd", r.Puffin.Blobs[0].Codec)
}

func TestManifestsAndTheirLists(t *testing.T) {
	formats := map[string]int{}
	for _, file := range realdata.Glob(t, "impala/iceberg/hadoop_catalog/ice/*/metadata/*.avro") {
		r, err := Look(t.Context(), local.New(), file, true)
		require.NoError(t, err, file)
		formats[r.Format]++
		if filepath.Base(file)[:5] == "snap-" {
			require.Equal(t, "manifest list", r.Format, file)
		} else {
			require.Equal(t, "manifest", r.Format, file)
		}
	}
	require.Greater(t, formats["manifest"], 5)
	require.Greater(t, formats["manifest list"], 5)
}

func TestOtherFilesAreRefusedByName(t *testing.T) {
	_, err := Look(t.Context(), local.New(), realdata.Path(t, "README.md"), false)
	require.True(t, fault.Is(err, fault.Unsupported), "%v", err)
	_, err = Look(t.Context(), local.New(), filepath.Join(t.TempDir(), "none"), false)
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
}
