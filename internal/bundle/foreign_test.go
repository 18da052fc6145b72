package bundle

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/realdata"
)

// TestForeignPuffinFilesAreDescribed describes files that other implementations wrote.
func TestForeignPuffinFilesAreDescribed(t *testing.T) {
	blobs := 0
	for _, pattern := range []string{
		"iceberg-rust/puffin/java-generated/*.bin", "iceberg-go/puffin/testdata/*.puffin", "iceberg-go/puffin/testdata/*compressed*.bin", "iceberg-go/table/dv/testdata/deletes/*.puffin",
		"impala/iceberg/iceberg_v3/iceberg_v3_deletion_vectors/data/*.puffin", "apache-iceberg/org/apache/iceberg/puffin/v1/*.bin",
	} {
		for _, path := range realdata.Glob(t, pattern) {
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			d, err := Describe(t.Context(), put(t, raw), "b", true)
			require.NoError(t, err, path)
			require.False(t, d.Ours, path)
			require.Empty(t, d.Artifacts)
			blobs += len(d.Blobs)
		}
	}
	require.Greater(t, blobs, 3)
}
