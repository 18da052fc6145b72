package lineage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func sample() *Record {
	return &Record{
		FormatVersion: 2, IndexID: "bloom-1", IndexCategory: "bloom", Algorithm: "bloom.v1", TableUUID: "u1",
		Columns:    []Column{{FieldID: 3, Name: "a<b", LeafPath: "a", Resolved: "id", Type: "long", Encoding: "key-v1:int64", Physical: "INT64"}},
		Parameters: map[string]string{"z": "1", "a": "2"}, SnapshotID: 5, SequenceNumber: 2,
		Files:    []File{{Path: "p", Size: 9, Records: 1, Tag: "t"}},
		FilePath: "x.puffin", BlobType: "skomer.bloom.v1", BlobOffset: 4, BlobLength: 8,
	}
}

func TestCanonicalJSON(t *testing.T) {
	b, err := Encode(sample())
	require.NoError(t, err)
	require.Equal(t, `{"format_version":2,"index_id":"bloom-1","index_category":"bloom","algorithm":"bloom.v1","table_uuid":"u1",`+
		`"columns":[{"field_id":3,"name":"a<b","leaf_path":"a","resolved":"id","type":"long","encoding":"key-v1:int64","physical":"INT64"}],`+
		`"parameters":{"a":"2","z":"1"},"source_snapshot_id":5,"source_sequence_number":2,"files":[{"path":"p","size":9,"records":1,"tag":"t"}],`+
		`"index_checksum":"","file_path":"x.puffin","blob_type":"skomer.bloom.v1","blob_offset":4,"blob_length":8}`, string(b))
	require.Equal(t, "de52", Digest(b)[:4])
	back, err := Parse(b)
	require.NoError(t, err)
	require.Equal(t, sample(), back)
}

func TestParseIsBounded(t *testing.T) {
	_, err := Parse(make([]byte, MaxRecord+1))
	require.ErrorContains(t, err, "limit")
}

func FuzzParse(f *testing.F) {
	b, err := Encode(sample())
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(`{"files":[{"records":-1},{"records":9223372036854775807}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err != nil {
			return
		}
		CheckClaim(ClaimOf(r), Options{})
		again, err := Encode(r)
		require.NoError(t, err)
		back, err := Parse(again)
		require.NoError(t, err)
		twice, err := Encode(back)
		require.NoError(t, err)
		require.Equal(t, string(again), string(twice))
	})
}
