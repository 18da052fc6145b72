package bundle

import (
	"bytes"
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	iceberg "github.com/apache/iceberg-go/puffin"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	t.Logf("SKOMER_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 3))
}

func record(index string, fields ...int) lineage.Record {
	r := lineage.Record{
		FormatVersion: lineage.FormatVersion, IndexID: index, IndexCategory: "bloom", Algorithm: "bloom.v1", TableUUID: "u1",
		SnapshotID: 7, SequenceNumber: 2, FilePath: "o/data/b.puffin",
		Files: []lineage.File{{Path: "s3://lake/t/ä.parquet", Size: 100, Records: 10, Tag: `"e"`}},
	}
	for _, f := range fields {
		r.Columns = append(r.Columns, lineage.Column{FieldID: f, Name: "c", LeafPath: "c", Resolved: "id", Encoding: "key-v1:int64"})
	}
	return r
}

var info = BuildInfo{BuildID: "b1", TableUUID: "u1", SnapshotID: 7, Sequence: 2}

type part struct {
	index  string
	fields []int
	body   []byte
	root   []byte
}

func write(t testing.TB, parts []part) ([]byte, []Written) {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, info)
	for _, p := range parts {
		sink, err := w.Begin(record(p.index, p.fields...))
		require.NoError(t, err)
		for rest := p.body; len(rest) > 0; {
			n := min(len(rest), 1000)
			_, err := sink.Write(rest[:n])
			require.NoError(t, err)
			rest = rest[n:]
		}
		require.Equal(t, int64(len(p.body)), sink.Offset())
		require.NoError(t, w.End(p.root))
	}
	written, err := w.Close()
	require.NoError(t, err)
	return out.Bytes(), written
}

func put(t testing.TB, raw []byte) store.Store {
	t.Helper()
	st := mem.New()
	_, err := st.PutNew(context.Background(), "b", bytes.NewReader(raw))
	require.NoError(t, err)
	return st
}

func randomParts(r *rand.Rand) []part {
	var parts []part
	for i := range r.IntN(12) {
		p := part{index: fmt.Sprintf("bloom-%d", i%3), body: randomBytes(r, r.IntN(3)*r.IntN(5000)), root: randomBytes(r, r.IntN(3)*r.IntN(300))}
		for range 1 + r.IntN(2) {
			p.fields = append(p.fields, 1+r.IntN(100))
		}
		parts = append(parts, p)
	}
	return parts
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestIcebergOpensOurBundles writes random bundles and compares what iceberg-go reads from them with what was written, and
// with what this package reads.
func TestIcebergOpensOurBundles(t *testing.T) {
	r := seeded(t)
	for range 100 {
		parts := randomParts(r)
		raw, written := write(t, parts)
		theirs, err := iceberg.NewReader(bytes.NewReader(raw))
		require.NoError(t, err)
		require.Equal(t, "b1", theirs.Properties()["skomer.build-id"])
		blobs := theirs.Blobs()
		require.Len(t, blobs, len(parts)+2)
		require.Equal(t, "skomer.lineage.v1", string(blobs[len(parts)].Type))
		require.Equal(t, "skomer.roots.v1", string(blobs[len(parts)+1].Type))
		ours, err := Open(t.Context(), put(t, raw), "b")
		require.NoError(t, err)
		require.Len(t, ours.Artifacts, len(parts))
		all := make([]int, len(parts))
		for i := range all {
			all[i] = i
		}
		recs, errs := ours.Lineages(t.Context(), all)
		for i, p := range parts {
			data, err := theirs.ReadBlob(i)
			require.NoError(t, err)
			require.True(t, bytes.Equal(p.body, data.Data))
			require.Equal(t, "skomer.bloom.v1", string(data.Metadata.Type))
			require.Equal(t, int64(7), data.Metadata.SnapshotID)
			require.Equal(t, int64(2), data.Metadata.SequenceNumber)
			require.Nil(t, data.Metadata.CompressionCodec)
			require.Equal(t, written[i].Digest, data.Metadata.Properties["skomer.lineage-sha256"])
			require.Equal(t, written[i].Placed, ours.Artifacts[i])
			root, err := ours.Root(t.Context(), i)
			require.NoError(t, err)
			require.True(t, bytes.Equal(p.root, root))
			require.NoError(t, errs[i])
			require.Equal(t, written[i].Record, *recs[i])
			require.Equal(t, len(p.fields), len(data.Metadata.Fields))
			require.NoError(t, ours.VerifyBody(t.Context(), i))
			alone, err := ReadLineage(t.Context(), ours.store, "b", written[i].Lineage)
			require.NoError(t, err)
			require.Equal(t, recs[i], alone)
		}
		blob := blobs[len(parts)]
		found, err := frames("b", raw[blob.Offset:blob.Offset+blob.Length], blob.Offset)
		require.NoError(t, err)
		require.Len(t, found, len(parts))
		for i, f := range found {
			require.Equal(t, written[i].Lineage, f)
		}
	}
}

// TestNoFlippedByteIsBelieved flips every byte of a bundle: what still verifies must be what was written.
func TestNoFlippedByteIsBelieved(t *testing.T) {
	parts := []part{{"bloom-1", []int{3}, []byte("the body of one"), []byte("root one")}, {"bloom-2", []int{4}, nil, []byte("root two")}}
	raw, written := write(t, parts)
	rejected := 0
	for at := range raw {
		bad := bytes.Clone(raw)
		bad[at] ^= 0x41
		b, err := Open(t.Context(), put(t, bad), "b")
		if err != nil || len(b.Artifacts) == 0 {
			rejected++
			continue
		}
		require.Len(t, b.Artifacts, 2)
		recs, errs := b.Lineages(t.Context(), []int{0, 1})
		for i := range parts {
			root, err := b.Root(t.Context(), i)
			if err != nil || errs[i] != nil || b.VerifyBody(t.Context(), i) != nil {
				rejected++
				continue
			}
			require.Equal(t, string(parts[i].root), string(root), "byte %d", at)
			require.Equal(t, written[i].Record, *recs[i], "byte %d", at)
			require.Equal(t, written[i].Placed, b.Artifacts[i], "byte %d", at)
		}
	}
	require.Greater(t, rejected, len(raw)/2)
}

func TestOneReadOpensHundredsOfArtifacts(t *testing.T) {
	var parts []part
	for i := range 300 {
		parts = append(parts, part{fmt.Sprint("bloom-", i%4), []int{i%4 + 1}, bytes.Repeat([]byte{byte(i)}, 5000), bytes.Repeat([]byte{byte(i)}, 40)})
	}
	raw, _ := write(t, parts)
	c := &counting{Store: put(t, raw)}
	b, err := Open(t.Context(), c, "b")
	require.NoError(t, err)
	require.Len(t, b.Artifacts, 300)
	for i := range parts {
		root, err := b.Root(t.Context(), i)
		require.NoError(t, err)
		require.Equal(t, parts[i].root, root)
	}
	require.Equal(t, 1, c.fetches)
}

func TestLargeRootsTakeASecondRead(t *testing.T) {
	raw, _ := write(t, []part{{"a", []int{1}, nil, bytes.Repeat([]byte("x"), 600<<10)}, {"b", []int{1}, []byte("b"), []byte("y")}})
	c := &counting{Store: put(t, raw)}
	b, err := Open(t.Context(), c, "b")
	require.NoError(t, err)
	root, err := b.Root(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, root, 600<<10)
	require.Equal(t, 2, c.fetches)
}

type counting struct {
	store.Store
	fetches int
}

func (c *counting) Fetch(ctx context.Context, r []store.Read) []store.Result {
	c.fetches++
	return c.Store.Fetch(ctx, r)
}

func TestTheWriterRefusesMisuse(t *testing.T) {
	misuse := map[string]func(w *Writer) error{
		"end before begin": func(w *Writer) error { return w.End(nil) },
		"begin twice": func(w *Writer) error {
			if _, err := w.Begin(record("a", 1)); err != nil {
				return nil
			}
			_, err := w.Begin(record("b", 1))
			return err
		},
		"close inside": func(w *Writer) error {
			if _, err := w.Begin(record("a", 1)); err != nil {
				return nil
			}
			_, err := w.Close()
			return err
		},
		"foreign type": func(w *Writer) error {
			r := record("a", 1)
			r.BlobType = "org.apache.iceberg.index.roaring-bitmap"
			_, err := w.Begin(r)
			return err
		},
		"write after end": func(w *Writer) error {
			sink, err := w.Begin(record("a", 1))
			if err != nil || w.End(nil) != nil {
				return nil
			}
			_, err = sink.Write([]byte("x"))
			return err
		},
		"close twice": func(w *Writer) error {
			if _, err := w.Close(); err != nil {
				return nil
			}
			_, err := w.Close()
			return err
		},
	}
	for name, f := range misuse {
		require.True(t, fault.Is(f(NewWriter(&bytes.Buffer{}, info)), fault.Invalid), name)
	}
}

func TestAnAbandonedArtifactIsNotListed(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, info)
	for i := range 4 {
		sink, err := w.Begin(record(fmt.Sprint("i", i), 1))
		require.NoError(t, err)
		if i > 0 {
			_, err = sink.Write([]byte("body"))
			require.NoError(t, err)
		}
		if i < 2 {
			require.NoError(t, w.Abandon())
		} else {
			require.NoError(t, w.End([]byte("root")))
		}
	}
	written, err := w.Close()
	require.NoError(t, err)
	require.Len(t, written, 2)
	b, err := Open(t.Context(), put(t, out.Bytes()), "b")
	require.NoError(t, err)
	require.Len(t, b.Artifacts, 2)
	require.Equal(t, "i2", b.Artifacts[0].IndexID)
	require.Len(t, b.Footer.Blobs, 5)
	for i := range b.Artifacts {
		require.NoError(t, b.VerifyBody(t.Context(), i))
	}
	_, err = iceberg.NewReader(bytes.NewReader(out.Bytes()))
	require.NoError(t, err)
}

func TestDescribe(t *testing.T) {
	raw, written := write(t, []part{{"bloom-1", []int{3}, []byte("body"), []byte("root")}})
	d, err := Describe(t.Context(), put(t, raw), "b", true)
	require.NoError(t, err)
	require.True(t, d.Ours)
	require.Equal(t, "", d.Artifacts[0].Problem)
	require.Equal(t, written[0].Record, *d.Artifacts[0].Lineage)
	bad := bytes.Clone(raw)
	bad[4] ^= 1
	d, err = Describe(t.Context(), put(t, bad), "b", true)
	require.NoError(t, err)
	require.Contains(t, d.Artifacts[0].Problem, "checksum mismatch")
	d, err = Describe(t.Context(), put(t, bad), "b", false)
	require.NoError(t, err)
	require.Empty(t, d.Artifacts[0].Problem)

	bad = bytes.Clone(raw)
	bad[written[0].Root.End()+3] ^= 1 // in the directory
	d, err = Describe(t.Context(), put(t, bad), "b", false)
	require.NoError(t, err)
	require.NotEmpty(t, d.Problem)
	require.Equal(t, written[0].Record, *d.Artifacts[0].Lineage)

	var foreign bytes.Buffer
	fw, err := iceberg.NewWriter(&foreign)
	require.NoError(t, err)
	_, err = fw.AddBlob(iceberg.BlobMetadataInput{Type: "apache-datasketches-theta-v1", Fields: []int32{1}, SnapshotID: 5}, []byte("sketch"))
	require.NoError(t, err)
	require.NoError(t, fw.Finish())
	d, err = Describe(t.Context(), put(t, foreign.Bytes()), "b", true)
	require.NoError(t, err)
	require.False(t, d.Ours)
	require.Equal(t, "apache-datasketches-theta-v1", d.Blobs[0].Type)
	_, err = Describe(t.Context(), put(t, []byte("PFA1 no Puffin file")), "b", true)
	require.True(t, fault.Is(err, fault.Corrupt), err)
}

// TestGoldenBytes pins the format: a bundle written now has the bytes of the one in testdata, and that one is read.
func TestGoldenBytes(t *testing.T) {
	raw, _ := write(t, []part{
		{"bloom-1", []int{3}, []byte("body one"), []byte("root one")}, {"ordered-2", []int{3, 5}, nil, []byte("root two")},
	})
	path := filepath.Join("testdata", "two.puffin.hex")
	if *rewrite {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(hex.Dump(raw)), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), hex.Dump(raw))
}

func FuzzDirectory(f *testing.F) {
	raw, _ := write(f, []part{{"bloom-1", []int{3}, []byte("body"), []byte("root")}})
	b, err := Open(context.Background(), put(f, raw), "b")
	require.NoError(f, err)
	f.Add(b.roots)
	f.Add([]byte{})
	f.Add([]byte(strings.Repeat("\xff", 40)))
	f.Fuzz(func(t *testing.T, blob []byte) {
		for _, b := range [][]byte{blob, sealed(blob)} {
			placed, err := parseDirectory("x", b, 1<<40)
			for _, p := range placed {
				require.NoError(t, err)
				require.True(t, p.Body.Off >= 0 && p.Body.Len >= 0 && p.Body.End() <= 1<<40)
				require.True(t, p.Root.Off >= 0 && p.Root.Len >= 0 && p.Root.End() <= 1<<40)
			}
		}
	})
}

// sealed makes the bytes a directory with a right trailer, so that the fuzzer gets past the checksum.
func sealed(dir []byte) []byte {
	var w bytescan.Writer
	w.Bytes(dir)
	w.U32(uint32(len(dir)))
	w.U32(bytescan.CRC32C(dir))
	w.Bytes([]byte(rootsMagic))
	w.Bytes([]byte{formatOne, 0, 0, 0})
	return w.Buf
}

func FuzzFrames(f *testing.F) {
	raw, written := write(f, []part{{"bloom-1", []int{3}, []byte("body"), []byte("root")}})
	f.Add(raw[written[0].Body.End():written[0].Lineage.End()])
	f.Add([]byte("SKLN\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, blob []byte) {
		places, _ := frames("x", blob, 10)
		for _, p := range places {
			_, err := ParseLineage("x", p, blob[p.Off-10:p.End()-10])
			if err != nil {
				require.True(t, fault.Is(err, fault.Corrupt), err)
			}
		}
	})
}
