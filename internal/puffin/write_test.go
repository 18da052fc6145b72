package puffin

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	iceberg "github.com/apache/iceberg-go/puffin"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files in testdata")

// twoBlobs is a small file with everything that the writer writes.
func twoBlobs(t *testing.T) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := NewWriter(&buf)
	_, err := w.Append(Blob{
		Type: "skomer.bloom.v1", Fields: []int32{3, 1}, SnapshotID: 7, SequenceNumber: 2,
		Properties: map[string]string{"z": "<&>", "a": "é"},
	}, []byte("bloom"))
	require.NoError(t, err)
	_, err = w.Append(Blob{Type: "skomer.roots.v1", SnapshotID: -1, SequenceNumber: -1}, nil)
	require.NoError(t, err)
	size, err := w.Finish(map[string]string{"created-by": "Skomer"})
	require.NoError(t, err)
	require.EqualValues(t, buf.Len(), size)
	return buf.Bytes()
}

// annotate draws a file in the parts of the specification.
func annotate(t *testing.T, b []byte) string {
	t.Helper()
	f, _, err := ParseFooter("golden", b, int64(len(b)))
	require.NoError(t, err)
	var out strings.Builder
	at := int64(0)
	part := func(what string, n int64) {
		fmt.Fprintf(&out, "# %s\n", what)
		for end := at + n; at < end; {
			step := min(16, end-at)
			fmt.Fprintf(&out, "%04d  %s\n", at, hex.EncodeToString(b[at:at+step]))
			at += step
		}
	}
	part("magic", magicSize)
	for i, blob := range f.Blobs {
		require.Equal(t, at, blob.Offset, "blobs lie in order, without gaps")
		part(fmt.Sprintf("blob %d: %s", i, blob.Type), blob.Length)
	}
	payload := int64(len(b)) - f.Start - framing
	part("magic at the start of the footer", magicSize)
	part("payload: "+string(b[at:at+payload]), payload)
	part(fmt.Sprintf("payload size: %d", payload), 4)
	part("flags", 4)
	part("magic", magicSize)
	return out.String()
}

func TestGoldenBytes(t *testing.T) {
	const path = "testdata/two-blobs.hex"
	got := annotate(t, twoBlobs(t))
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o666))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "the bytes we write have changed; if that is meant: go test -run GoldenBytes -rewrite")
}

func TestPiecesEqualAppend(t *testing.T) {
	var buf bytes.Buffer
	w := NewWriter(&buf)
	require.NoError(t, w.Begin(Blob{
		Type: "skomer.bloom.v1", Fields: []int32{3, 1}, SnapshotID: 7, SequenceNumber: 2,
		Properties: map[string]string{"a": "é", "z": "<&>"}, Offset: 99, Length: 99,
	}))
	for _, c := range []byte("bloom") {
		n, err := w.Write([]byte{c})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	require.EqualValues(t, 9, w.Offset())
	b, err := w.End()
	require.NoError(t, err)
	require.EqualValues(t, 4, b.Offset)
	require.EqualValues(t, 5, b.Length)
	require.NoError(t, w.Begin(Blob{Type: "skomer.roots.v1", SnapshotID: -1, SequenceNumber: -1}))
	_, err = w.End()
	require.NoError(t, err)
	_, err = w.Finish(map[string]string{"created-by": "Skomer"})
	require.NoError(t, err)
	require.Equal(t, twoBlobs(t), buf.Bytes())
}

func TestWriterRefusesMisuse(t *testing.T) {
	refused := func(err error) {
		t.Helper()
		require.Equal(t, fault.Invalid, fault.ClassOf(err), "%v", err)
	}
	var buf bytes.Buffer
	w := NewWriter(&buf)
	_, err := w.Write([]byte("x"))
	refused(err)
	_, err = w.End()
	refused(err)
	refused(w.Begin(Blob{}))
	refused(w.Begin(Blob{Type: "a", Codec: Zstd}))
	require.NoError(t, w.Begin(Blob{Type: "a"}))
	refused(w.Begin(Blob{Type: "b"}))
	_, err = w.Finish(nil)
	refused(err)
	_, err = w.End()
	require.NoError(t, err)
	_, err = w.Finish(nil)
	require.NoError(t, err, "misuse leaves the writer usable")
	_, err = w.Finish(nil)
	refused(err)
	refused(w.Begin(Blob{Type: "c"}))
	f, _, err := ParseFooter("o", buf.Bytes(), int64(buf.Len()))
	require.NoError(t, err)
	require.Len(t, f.Blobs, 1)
}

// failing takes n bytes and then fails.
type failing struct{ n int }

var errFull = errors.New("full")

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.n {
		return f.n, errFull
	}
	f.n -= len(b)
	return len(b), nil
}

func TestWriteErrorsStick(t *testing.T) {
	size := len(twoBlobs(t))
	for n := range size {
		w := NewWriter(&failing{n})
		_, first := w.Append(Blob{Type: "a"}, []byte("content"))
		_, second := w.Append(Blob{Type: "b"}, []byte("content"))
		_, last := w.Finish(map[string]string{"long": strings.Repeat("x", size)})
		require.ErrorIs(t, last, errFull)
		if first != nil {
			require.Equal(t, first, second)
			require.Equal(t, first, last)
		}
	}
}

func TestIcebergGoReadsOurs(t *testing.T) {
	r, err := iceberg.NewReader(bytes.NewReader(twoBlobs(t)))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"created-by": "Skomer"}, r.Properties())
	all, err := r.ReadAllBlobs()
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, iceberg.BlobMetadata{
		Type: "skomer.bloom.v1", Fields: []int32{3, 1}, SnapshotID: 7, SequenceNumber: 2, Offset: 4,
		Length: 5, Properties: map[string]string{"a": "é", "z": "<&>"},
	}, all[0].Metadata)
	require.Equal(t, "bloom", string(all[0].Data))
	require.Empty(t, all[1].Data)
}

func TestWeReadIcebergGos(t *testing.T) {
	var buf bytes.Buffer
	w, err := iceberg.NewWriter(&buf)
	require.NoError(t, err)
	require.NoError(t, w.AddProperties(map[string]string{"k": "v"}))
	_, err = w.AddBlob(iceberg.BlobMetadataInput{
		Type: iceberg.BlobTypeDataSketchesTheta, SnapshotID: 5, SequenceNumber: 6,
		Fields: []int32{9}, Properties: map[string]string{"ndv": "1"},
	}, []byte("sketch"))
	require.NoError(t, err)
	_, err = w.AddBlob(iceberg.BlobMetadataInput{Type: "x", Fields: []int32{}}, nil)
	require.NoError(t, err)
	require.NoError(t, w.Finish())
	f, need, err := ParseFooter("o", buf.Bytes(), int64(buf.Len()))
	require.NoError(t, err)
	require.Zero(t, need)
	require.Equal(t, "v", f.Properties["k"])
	require.Contains(t, f.Properties["created-by"], "iceberg-go")
	require.Equal(t, []Blob{
		{Type: "apache-datasketches-theta-v1", Fields: []int32{9}, SnapshotID: 5, SequenceNumber: 6, Offset: 4, Length: 6, Properties: map[string]string{"ndv": "1"}},
		{Type: "x", Fields: []int32{}, Offset: 10},
	}, f.Blobs)
}

// TestRandomFilesRoundTrip writes random blobs and finds them again, with our reader and iceberg-go's.
func TestRandomFilesRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("replay with SKOMER_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		var buf bytes.Buffer
		w := NewWriter(&buf)
		var blobs []Blob
		var contents [][]byte
		for range rnd.IntN(8) {
			content := make([]byte, rnd.IntN(3)*rnd.IntN(500))
			for i := range content {
				content[i] = byte(rnd.Uint32())
			}
			b, err := w.Append(randomBlob(rnd), content)
			require.NoError(t, err)
			blobs, contents = append(blobs, b), append(contents, content)
		}
		properties := randomProperties(rnd)
		size, err := w.Finish(properties)
		require.NoError(t, err)
		tail := buf.Bytes()[rnd.IntN(buf.Len()):]
		f, need, err := ParseFooter("o", tail, size)
		for asked := 0; err == nil && f == nil && asked < 2; asked++ { // once for the size of the footer, once for the footer
			f, need, err = ParseFooter("o", buf.Bytes()[size-need:], size)
		}
		require.NoError(t, err)
		require.Zero(t, need)
		require.Equal(t, blobs, f.Blobs)
		require.Equal(t, properties, f.Properties)
		theirs, err := iceberg.NewReader(bytes.NewReader(buf.Bytes()))
		require.NoError(t, err)
		for i, b := range f.Blobs {
			require.Equal(t, contents[i], buf.Bytes()[b.Offset:b.Offset+b.Length])
			read, err := theirs.ReadBlob(i)
			require.NoError(t, err)
			require.Equal(t, contents[i], read.Data)
			require.Equal(t, b.Properties, read.Metadata.Properties)
		}
	}
}

func randomBlob(rnd *rand.Rand) Blob {
	b := Blob{
		Type: randomText(rnd) + "x", Fields: []int32{}, SnapshotID: rnd.Int64() - math.MaxInt64/2, SequenceNumber: rnd.Int64N(100) - 1,
		Properties: randomProperties(rnd),
	}
	for range rnd.IntN(4) {
		b.Fields = append(b.Fields, int32(rnd.Uint32()))
	}
	return b
}

func randomProperties(rnd *rand.Rand) map[string]string {
	var out map[string]string
	for range rnd.IntN(4) {
		if out == nil {
			out = map[string]string{}
		}
		out[randomText(rnd)] = randomText(rnd)
	}
	return out
}

func randomText(rnd *rand.Rand) string {
	alphabet := []rune("aZ \"\\/<>&\x00\x1f\n{}[]:,é🤯\u2028\ufffd")
	out := make([]rune, rnd.IntN(8))
	for i := range out {
		out[i] = alphabet[rnd.IntN(len(alphabet))]
	}
	return string(out)
}
