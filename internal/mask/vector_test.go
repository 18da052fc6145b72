package mask

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/puffin"
	"github.com/skomerdb/skomer/internal/realdata"
	"github.com/skomerdb/skomer/internal/tabletest"
)

func golden(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(realdata.Path(t, "apache-iceberg/org/apache/iceberg/deletes/"+name))
	require.NoError(t, err)
	return b
}

// TestGoldenVectors: vectors that Java Iceberg wrote. Positions from 2^32 on count, though no file here has so many rows.
func TestGoldenVectors(t *testing.T) {
	for _, c := range []struct {
		name  string
		count uint64
		low   []uint32 // the first positions below 2^32
		all   int      // positions below 2^32
	}{
		{"empty-position-index.bin", 0, []uint32{}, 0},
		{"small-alternating-values-position-index.bin", 5, []uint32{1, 3, 5, 7, 9}, 5},
		{"small-and-large-values-position-index.bin", 4, []uint32{100, 101, 2147483747, 2147483748}, 4},
		{"all-container-types-position-index.bin", 132561, []uint32{5, 7, 65537}, -1},
	} {
		b, n, err := parseVector(c.name, golden(t, c.name))
		require.NoError(t, err, c.name)
		require.Equal(t, c.count, n, c.name)
		got := b.ToArray()
		require.Equal(t, c.low, got[:len(c.low)], c.name)
		if c.all >= 0 {
			require.Len(t, got, c.all)
		} else {
			require.Less(t, uint64(len(got)), n) // the last is 4295163902
		}
	}
}

// TestGoldenBitmaps: 64-bit bitmaps without framing.
func TestGoldenBitmaps(t *testing.T) {
	for name, want := range map[string]uint64{"64map32bitvals.bin": 10, "64mapempty.bin": 0, "64mapspreadvals.bin": 100} {
		_, n, err := parseRoaring64(name, golden(t, name))
		require.NoError(t, err, name)
		require.Equal(t, want, n, name)
	}
	_, _, err := parseRoaring64("64maphighvals.bin", golden(t, "64maphighvals.bin"))
	require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
	require.Contains(t, err.Error(), "64maphighvals.bin")
	require.Contains(t, err.Error(), "key")
}

// TestGoldenPuffin reads vectors out of whole Puffin files.
func TestGoldenPuffin(t *testing.T) {
	for name, want := range map[string][][]uint32{
		"iceberg-go/table/dv/testdata/deletes/multi-blob-dv.puffin":  {{0, 100, 200}, {50, 150}},
		"iceberg-go/table/dv/testdata/deletes/single-blob-dv.puffin": {{1, 3, 5, 7, 9}},
		"iceberg-go/puffin/testdata/deletion-vector-v1.puffin":       {{1, 3, 5, 7, 9}},
	} {
		path := realdata.Path(t, name)
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		footer, _, err := puffin.ParseFooter(path, b, int64(len(b)))
		require.NoError(t, err)
		f := newFixture(t, schema(field(1, "id", column.Long)))
		for i, blob := range footer.Blobs {
			file := f.data(1, filepath.Join("/t", string(rune('a'+i))), 300)
			d := f.deletes(facts.DeletionVector, 2, path)
			f.s.Deletes.Format[d], f.s.Deletes.Referenced[d] = facts.Puffin, f.s.Files.Stated[file]
			f.s.Deletes.Offset[d], f.s.Deletes.Length[d] = blob.Offset, blob.Length
		}
		require.Len(t, footer.Blobs, len(want))
		f.gone(want...)
	}
}

func reframe(body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	out = append(out, body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(body))
}

// TestBadVectors: each part of the framing and of the bitmap is checked.
func TestBadVectors(t *testing.T) {
	good := tabletest.Vector(set(1, 5, 9))
	body := good[4 : len(good)-4]
	edit := func(at int, b byte) []byte {
		out := append([]byte(nil), body...)
		out[at] = b
		return reframe(out)
	}
	for name, blob := range map[string][]byte{
		"length":        append([]byte{0, 0, 0, 1}, good[4:]...),
		"checksum":      append(append([]byte(nil), good[:len(good)-1]...), good[len(good)-1]^1),
		"magic":         edit(0, 0xd0),
		"count":         edit(4, 200),
		"negative key":  edit(15, 0x80),
		"cookie":        edit(16, 0),
		"unsorted":      edit(len(body)-2, 0),
		"left over":     reframe(append(append([]byte(nil), body...), 0)),
		"cut":           reframe(body[:len(body)-1]),
		"empty":         {},
		"only a length": {0, 0, 0, 4},
		"key twice": reframe(func() []byte {
			out := append([]byte(nil), body...)
			out[4] = 2
			return append(out, body[12:]...)
		}()),
	} {
		_, _, err := parseVector("dv "+name, blob)
		require.True(t, fault.Is(err, fault.Corrupt), "%s: %v", name, err)
		require.Contains(t, err.Error(), "dv "+name)
	}
	b, n, err := parseVector("good", good)
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	require.Equal(t, []uint32{1, 5, 9}, b.ToArray())
}

// TestMisplacedVectors: what the manifest says of a vector must be what the Puffin file holds there.
func TestMisplacedVectors(t *testing.T) {
	for name, c := range map[string]struct {
		blobType string
		change   func(d *facts.Deletes)
		class    fault.Class
		say      string
	}{
		"another type": {"apache-datasketches-theta-v1", func(*facts.Deletes) {}, fault.Corrupt, "apache-datasketches-theta-v1"},
		"offset":       {vectorType, func(d *facts.Deletes) { d.Offset[0]-- }, fault.Corrupt, "lists no blob"},
		"length":       {vectorType, func(d *facts.Deletes) { d.Length[0]-- }, fault.Corrupt, "lists no blob"},
		"no place":     {vectorType, func(d *facts.Deletes) { d.Offset[0] = facts.Unknown }, fault.Corrupt, "without a place"},
		"no file":      {vectorType, func(d *facts.Deletes) { d.Referenced[0] = "" }, fault.Corrupt, "names no data file"},
		"cardinality":  {vectorType, func(d *facts.Deletes) { d.Records[0] = 4 }, fault.Corrupt, "states 4"},
		"too long":     {vectorType, func(d *facts.Deletes) { d.Length[0] = maxVector + 1 }, fault.Exhausted, "limit"},
		"past the end": {vectorType, func(d *facts.Deletes) { d.Length[0] = 1 << 20 }, fault.Corrupt, ""},
		"encrypted":    {vectorType, func(d *facts.Deletes) { d.Encrypted[0] = true }, fault.Unsupported, "encrypted"},
		"gone":         {vectorType, func(d *facts.Deletes) { d.Path[0] += ".gone" }, fault.NotFound, ".gone"},
	} {
		f := newFixture(t, schema(field(1, "id", column.Long)))
		file := f.data(1, "/t/a", 300)
		f.vector(2, file, c.blobType, tabletest.Vector(set(1, 5, 9)))
		path := f.s.Deletes.Path[0]
		if name != "another type" {
			f.gone([]uint32{1, 5, 9})
		}
		c.change(&f.s.Deletes)
		f.renew()
		_, _, err := f.masks(Options{KeepAll: true})
		require.True(t, fault.Is(err, c.class), "%s: %v", name, err)
		require.Contains(t, err.Error(), path, name)
		require.Contains(t, err.Error(), c.say, name)
	}
}

// TestVectorsComeInOneWave: ranges of many vectors and the footers of their files are one round trip, and none the second time.
func TestVectorsComeInOneWave(t *testing.T) {
	f := newFixture(t, schema(field(1, "id", column.Long)))
	for i := range 20 {
		file := f.data(1, filepath.Join("/t", string(rune('a'+i))), 300)
		f.vector(2, file, vectorType, tabletest.Vector(set(i)))
	}
	u, report := f.cost()
	require.EqualValues(t, 1, u.Waves)
	require.Equal(t, 20, report.DeleteFiles)
	u, report = f.cost()
	require.Zero(t, u.Requests())
	require.Zero(t, report.DeleteFiles)
}

func FuzzVector(f *testing.F) {
	f.Add(tabletest.Vector(set()))
	f.Add(tabletest.Vector(set(1, 5, 70000)))
	dense := set()
	for i := range 9000 {
		dense[i*2] = true
	}
	f.Add(tabletest.Vector(dense))
	f.Fuzz(func(t *testing.T, blob []byte) {
		for _, b := range [][]byte{blob, reframe(blob), reframe(append([]byte{0xd1, 0xd3, 0x39, 0x64}, blob...))} {
			positions, n, err := parseVector("fuzz", b)
			if err != nil {
				if !fault.Is(err, fault.Corrupt) {
					t.Fatalf("not corrupt: %v", err)
				}
				continue
			}
			if positions.GetCardinality() > n {
				t.Fatal("more positions than counted")
			}
			for range positions.Ranges() {
			}
		}
	})
}
