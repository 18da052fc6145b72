package puffin

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/realdata"
)

// open parses a real file whole and decodes its blobs.
func open(t *testing.T, path string) (*Footer, []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	f, need, err := ParseFooter(path, b, int64(len(b)))
	require.NoError(t, err)
	require.Zero(t, need)
	var contents []string
	for _, blob := range f.Blobs {
		c, err := Decode(path, blob, b[blob.Offset:blob.Offset+blob.Length], 1<<20)
		require.NoError(t, err)
		contents = append(contents, string(c))
	}
	return f, contents
}

func TestJavaFiles(t *testing.T) {
	empty := append(realdata.Glob(t, "apache-iceberg/org/apache/iceberg/puffin/v1/empty-*.bin"),
		realdata.Path(t, "iceberg-go/puffin/testdata/empty-puffin-uncompressed.bin"),
		realdata.Path(t, "iceberg-rust/puffin/java-generated/empty-puffin-uncompressed.bin"))
	for _, path := range empty {
		f, _ := open(t, path)
		require.Equal(t, &Footer{Start: 4}, f, path)
	}
	samples := realdata.Glob(t, "apache-iceberg/org/apache/iceberg/puffin/v1/sample-*.bin")
	samples = append(samples, realdata.Glob(t, "iceberg-go/puffin/testdata/sample-*.bin")...)
	samples = append(samples, realdata.Glob(t, "iceberg-rust/puffin/java-generated/sample-*.bin")...)
	require.Len(t, samples, 6)
	for _, path := range samples {
		f, contents := open(t, path)
		require.Equal(t, map[string]string{"created-by": "Test 1234"}, f.Properties)
		require.Len(t, f.Blobs, 2)
		codec, second := "", Blob{Offset: 13, Length: 83}
		if strings.Contains(path, "zstd") {
			codec, second = Zstd, Blob{Offset: 26, Length: 77}
		}
		require.Equal(t, "some-blob", f.Blobs[0].Type)
		require.Equal(t, []int32{1}, f.Blobs[0].Fields)
		require.EqualValues(t, 4, f.Blobs[0].Offset)
		require.Equal(t, "abcdefghi", contents[0])
		require.Equal(t, Blob{
			Type: "some-other-blob", Fields: []int32{2}, SnapshotID: 2, SequenceNumber: 1,
			Offset: second.Offset, Length: second.Length, Codec: codec,
		}, withoutProperties(f.Blobs[1]))
		require.Len(t, contents[1], 83)
		require.True(t, strings.HasPrefix(contents[1], "some blob \x00 binary data 🤯 that is not very very"), "%q", contents[1])
	}
}

func withoutProperties(b Blob) Blob {
	b.Properties = nil
	return b
}

// positions decodes a deletion vector: length and CRC big-endian around magic and a 64-bit roaring bitmap.
func positions(t *testing.T, content string) []uint64 {
	t.Helper()
	b := []byte(content)
	n := len(b) - 4
	require.Equal(t, uint32(n-4), binary.BigEndian.Uint32(b))
	require.Equal(t, crc32.ChecksumIEEE(b[4:n]), binary.BigEndian.Uint32(b[n:]))
	require.Equal(t, []byte{0xD1, 0xD3, 0x39, 0x64}, b[4:8])
	m := roaring64.New()
	require.NoError(t, m.UnmarshalBinary(b[8:n]))
	return m.ToArray()
}

func TestDeletionVectors(t *testing.T) {
	type vector struct {
		file  string // suffix of the data file's path
		at    int64
		wants []uint64
	}
	odd := []uint64{1, 3, 5, 7, 9}
	for path, want := range map[string][]vector{
		"iceberg-go/table/dv/testdata/deletes/multi-blob-dv.puffin":  {{"file-001.parquet", 4, []uint64{0, 100, 200}}, {"file-002.parquet", 50, []uint64{50, 150}}},
		"iceberg-go/table/dv/testdata/deletes/single-blob-dv.puffin": {{".parquet", 4, odd}},
		"iceberg-go/puffin/testdata/deletion-vector-v1.puffin":       {{"data/test.parquet", 4, odd}},
		"impala/iceberg/iceberg_v3/iceberg_v3_deletion_vectors/data/00000-9-08e88179-85b6-4635-8b34-94b49abc87d9-00001-deletes.puffin": {
			{".parquet", 4, []uint64{0}}, {".parquet", 46, []uint64{0}},
		},
	} {
		f, contents := open(t, realdata.Path(t, path))
		require.Len(t, f.Blobs, len(want), path)
		for i, v := range want {
			b := f.Blobs[i]
			require.Equal(t, "deletion-vector-v1", b.Type)
			require.EqualValues(t, -1, b.SnapshotID)
			require.EqualValues(t, -1, b.SequenceNumber)
			require.Equal(t, v.at, b.Offset)
			require.True(t, strings.HasSuffix(b.Properties["referenced-data-file"], v.file), b.Properties)
			require.Equal(t, v.wants, positions(t, contents[i]))
		}
	}
}

func TestThetaSketchesOfTrino(t *testing.T) {
	for pattern, ndv := range map[string]string{
		"impala/iceberg/iceberg_with_puffin_stats/metadata/*.stats":       "2",
		"impala/iceberg/iceberg_v3/trino_variant/metadata/*.stats":        "55",
		"impala/iceberg/iceberg_v3/trino_nested_variant/metadata/*.stats": "2",
	} {
		for _, path := range realdata.Glob(t, pattern) {
			f, contents := open(t, path)
			require.Len(t, f.Blobs, 2)
			for i, b := range f.Blobs {
				require.Equal(t, "apache-datasketches-theta-v1", b.Type)
				require.Equal(t, Zstd, b.Codec)
				require.Equal(t, []int32{int32(i + 1)}, b.Fields)
				require.Equal(t, ndv, b.Properties["ndv"])
				require.NotEmpty(t, contents[i])
			}
			require.Contains(t, f.Properties["created-by"], "Trino version")
		}
	}
}

func TestBareDeletionVectorIsNoPuffin(t *testing.T) {
	path := realdata.Path(t, "duckdb-iceberg/legacy_bare_deletion_vector/warehouse/default/legacy_bare_deletion_vector/data/legacy-bare-deletion-vector.puffin")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	_, _, err = ParseFooter(path, b, int64(len(b)))
	require.Equal(t, fault.Corrupt, fault.ClassOf(err), "%v", err)
}

// TestEveryRealFileOpensFromAnySuffix cuts the end of every Puffin file at every length.
func TestEveryRealFileOpensFromAnySuffix(t *testing.T) {
	files := 0
	require.NoError(t, filepath.WalkDir(realdata.Root(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(b, []byte(magic)) {
			return err
		}
		files++
		whole, _ := open(t, path)
		size := int64(len(b))
		for n := range size + 1 {
			f, need, err := ParseFooter(path, b[size-n:], size)
			require.NoError(t, err)
			if f == nil {
				require.Greater(t, need, n)
				require.LessOrEqual(t, need, size)
				continue
			}
			require.Equal(t, whole, f)
			require.GreaterOrEqual(t, n, size-f.Start, "the footer was not all there")
		}
		return nil
	}))
	require.GreaterOrEqual(t, files, 16)
}
