package lineage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const legacyManifest = `{"version": 3, "entries": [
  {"file_path": "s3://lake/t/a.parquet", "record_count": 10, "index_files": [
    {"format_version": 1, "index_id": "x1", "index_category": "scalar", "algorithm": "roaring_bitmap_v1", "column_name": "origin",
     "source_snapshot_id": 0, "source_data_checksum": "", "source_record_count": 10, "file_path": "s3://lake/t/a.origin.idx"},
    {"format_version": 1, "index_id": "x2", "index_category": "lexical", "algorithm": "bm25_v1", "column_name": "body", "file_path": "a.body.idx"}]},
  {"data_file": "b.parquet", "indexes": {"only": {"index_id": "x3", "index_category": "bloom", "algorithm": "split_block", "column_name": "id",
     "index_checksum": "00", "blob_offset": 4, "blob_length": 9, "file_path": "b.idx"}}}]}`

func TestLegacyRecordsAreFoundWhereverTheyStand(t *testing.T) {
	all, err := ParseLegacy("m.json", []byte(legacyManifest))
	require.NoError(t, err)
	require.Len(t, all, 3)
	kinds := map[string]string{}
	for i := range all {
		kinds[all[i].IndexID], _ = all[i].Kind()
	}
	require.Equal(t, map[string]string{"x1": "bitmap", "x2": "", "x3": "bloom"}, kinds)
	require.Equal(t, "s3://lake/t/a.parquet", all[0].SourceDataFile)
	require.Equal(t, 1, all[0].FormatVersion)
	require.Equal(t, "b.parquet", all[2].SourceDataFile)
	require.Equal(t, FormatVersion, all[2].FormatVersion, "what states no version is of the later one")
	_, err = ParseLegacy("m.json", []byte(`{"a": [`))
	require.Error(t, err)
}

func FuzzParseLegacy(f *testing.F) {
	f.Add([]byte(legacyManifest))
	f.Add([]byte(`[[[{"index_id":1}]]]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		all, err := ParseLegacy("x", raw)
		if err == nil {
			for i := range all {
				kind, reason := all[i].Kind()
				require.NotEqual(t, kind == "", reason == "")
			}
		}
	})
}
