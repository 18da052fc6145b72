package factsblob

import (
	"bytes"
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/column"
	"github.com/skomerdb/skomer/internal/facts"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/avro"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/lake/manifest"
	"github.com/skomerdb/skomer/internal/realdata"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

func random(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	t.Logf("SKOMER_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// randomManifest is a manifest as a writer of any care might leave it.
func randomManifest(t testing.TB, r *rand.Rand, files int) *manifest.Manifest {
	ctx, s := context.Background(), mem.New()
	schema := &column.Schema{Fields: []column.Field{{ID: 1, Name: "a", Type: column.Of(column.String)}}}
	spec := &facts.Spec{Fields: []facts.PartitionField{{ID: 1000, SourceID: 1, Name: "a", Transform: "identity"}}}
	w, err := lakewrite.Create(ctx, s, "t", lakewrite.Spec{Schema: schema, FormatVersion: 1 + r.IntN(3), Partition: spec})
	require.NoError(t, err)
	var add []lakewrite.File
	deletes := r.IntN(4) == 0 && w.FormatVersion > 1
	for i := range files {
		f := lakewrite.File{
			Path: fmt.Sprintf("s3://bucket/t/day=%d/%08x.parquet", i/7, r.Uint32()), Records: r.Int64N(1000), Size: r.Int64N(1 << 40), Metrics: map[int]lakewrite.Metric{},
			Partition: []facts.PartitionValue{{Null: r.IntN(4) == 0, Value: column.StringValue(fmt.Sprint("p", r.IntN(3)))}},
		}
		if deletes {
			f.Content, f.EqualityID, f.Referenced = lakewrite.Content(1+r.IntN(2)), []int{1, r.IntN(3)}, fmt.Sprint("r", r.IntN(2))
		}
		for id := 1; id < 6; id++ {
			f.Metrics[id] = randomMetric(r, id)
		}
		if r.IntN(9) == 0 {
			f.Key = []byte("k")
		}
		add = append(add, f)
	}
	_, err = w.Append(ctx, add...)
	require.NoError(t, err)
	got := s.Fetch(ctx, []store.Read{{Key: w.Snapshots[0].Manifests[0].Path}})[0]
	require.NoError(t, got.Err)
	m, err := manifest.Read("m", got.Data[0], nil)
	require.NoError(t, err)
	return m
}

func randomMetric(r *rand.Rand, id int) (m lakewrite.Metric) {
	if r.IntN(5) == 0 && id != 2 {
		return m
	}
	m.Values, m.Nulls = lakewrite.N(r.Int64N(100)), lakewrite.N(0)
	bound := func() []byte {
		switch id {
		case 1, 2:
			return []byte{1, 2, byte(r.Uint32()), 4, 5, 6, 7, 8}
		case 3:
			return []byte{1, byte(r.Uint32()), 3, 4}
		default:
			return []byte("some text of any length")[:r.IntN(24)]
		}
	}
	m.Lower, m.Upper = bound(), bound()
	if id == 5 {
		m.NaNs, m.Upper = lakewrite.N(r.Int64N(2)), nil
	}
	return m
}

// plain is m with the partition types that a head keeps.
func plain(m *manifest.Manifest) *manifest.Manifest {
	out := *m
	out.Partition = nil
	for _, f := range m.Partition {
		f.Schema = &avro.Schema{Kind: f.Schema.Value().Kind, Logical: f.Schema.Value().Logical, Scale: f.Schema.Value().Scale, Size: f.Schema.Value().Size}
		out.Partition = append(out.Partition, f)
	}
	return &out
}

// requireSame holds two manifests against each other, cell by cell.
func requireSame(t testing.TB, want, got *manifest.Manifest) {
	t.Helper()
	require.Equal(t, []any{want.FormatVersion, want.SpecID, string(want.SpecJSON), want.Deletes, want.HasDeletes, want.N, want.Parts, len(want.Columns)},
		[]any{got.FormatVersion, got.SpecID, string(got.SpecJSON), got.Deletes, got.HasDeletes, got.N, got.Parts, len(got.Columns)})
	require.Equal(t, want.Partition, got.Partition)
	for i := range want.N {
		require.Equal(t, want.File(i), got.File(i))
	}
	for id, c := range want.Columns {
		d := got.Columns[id]
		require.Equal(t, []any{c.Keys.Form, c.Keys.Text, c.Keys.NaNs, c.Keys.AllNull, c.Keys.Sure, c.Whole}, []any{d.Keys.Form, d.Keys.Text, d.Keys.NaNs, d.Keys.AllNull, d.Keys.Sure, d.Whole})
		require.True(t, bytes.Equal(c.Keys.Lower, d.Keys.Lower) && bytes.Equal(c.Keys.Upper, d.Keys.Upper))
		for i := range want.N {
			require.Equal(t, [][]byte{c.LowerAt(i), c.UpperAt(i)}, [][]byte{d.LowerAt(i), d.UpperAt(i)})
			require.Equal(t, []int64{c.Values.At(i), c.Nulls.At(i), c.NaNs.At(i)}, []int64{d.Values.At(i), d.Nulls.At(i), d.NaNs.At(i)})
		}
	}
}

func open(t testing.TB, object []byte, h Head) *Blob {
	head := object[h.Off : h.Off+h.Len]
	require.NoError(t, bytescan.CheckCRC("head", head, h.CRC))
	b, err := Open("head", head)
	require.NoError(t, err)
	return b
}

func fill(b *Blob, object []byte, m *manifest.Manifest, want Want) (*manifest.Manifest, error) {
	sections := b.Missing(m, want)
	data := make([][]byte, len(sections))
	for i, s := range sections {
		data[i] = object[s.Off : s.Off+s.Len]
	}
	return b.Fill(m, want, sections, data)
}

var everything = Want{Parts: manifest.Tuples | manifest.Base | manifest.Names | manifest.AllColumns}

// TestRandomPacks: manifests come back as they were, read at once or part by part in any order.
func TestRandomPacks(t *testing.T) {
	r := random(t)
	for range 60 {
		var items []Item
		for n := range 1 + r.IntN(4) {
			items = append(items, Item{Origin{fmt.Sprint("m", n), r.Int64N(1 << 30), "tag"}, randomManifest(t, r, 1+r.IntN(150))})
		}
		object, heads := Pack(items)
		for i, h := range heads {
			b := open(t, object, h)
			require.Equal(t, items[i].Origin, b.Origin)
			want := plain(items[i].Manifest)
			got, err := fill(b, object, nil, everything)
			require.NoError(t, err)
			requireSame(t, want, got)
			var m *manifest.Manifest
			for _, k := range r.Perm(6) {
				some := Want{Parts: manifest.Parts(1 << (k % 3)), Fields: []int{1 + k, 99}, Whole: r.IntN(2) == 0}
				if m, err = fill(b, object, m, some); err != nil {
					t.Fatal(err)
				}
				require.True(t, m.Has(some.Parts, some.Fields, some.Whole))
				require.Nil(t, m.Columns[99])
			}
			m, err = fill(b, object, m, everything)
			require.NoError(t, err)
			maps.DeleteFunc(m.Columns, func(_ int, c *facts.Metrics) bool { return c == nil })
			requireSame(t, want, m)
		}
	}
}

// TestRealPacks: the same for every real manifest.
func TestRealPacks(t *testing.T) {
	n := 0
	for _, pattern := range []string{"duckdb-iceberg/*/metadata/*.avro", "duckdb-iceberg/*/*/*/metadata/*.avro", "impala/iceberg/*/*/*/metadata/*.avro", "icebird/*/*/*/metadata/*.avro"} {
		for _, path := range realdata.Glob(t, pattern) {
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			m, err := manifest.Read(path, raw, nil)
			if err != nil {
				continue // a manifest list
			}
			object, heads := Pack([]Item{{Origin{Path: path}, m}})
			got, err := fill(open(t, object, heads[0]), object, nil, everything)
			require.NoError(t, err)
			requireSame(t, plain(m), got)
			n++
		}
	}
	require.Greater(t, n, 80)
}

// TestColumnsLieTogether: what a plan reads of one field is one run of bytes over all manifests of a pack.
func TestColumnsLieTogether(t *testing.T) {
	r := random(t)
	var items []Item
	for n := range 5 {
		items = append(items, Item{Origin{Path: fmt.Sprint(n)}, randomManifest(t, r, 20)})
	}
	object, heads := Pack(items)
	for id := 1; id < 6; id++ {
		var spans []Section
		for _, h := range heads {
			spans = append(spans, open(t, object, h).Missing(nil, Want{Fields: []int{id}})...)
		}
		slices.SortFunc(spans, func(a, b Section) int { return int(a.Off - b.Off) })
		for i := 1; i < len(spans); i++ {
			require.Equal(t, spans[i-1].Off+spans[i-1].Len, spans[i].Off)
		}
	}
	for i := 1; i < len(heads); i++ {
		require.Equal(t, heads[i-1].Off+heads[i-1].Len, heads[i].Off)
	}
	require.Equal(t, int64(len(object)), heads[4].Off+heads[4].Len)
}

// golden is the pack of docs/format/facts.md.
func goldenPack(t testing.TB) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	object, _ := Pack([]Item{{Origin{"t/metadata/a.avro", 1234, "etag"}, randomManifest(t, r, 3)}, {Origin{"t/metadata/b.avro", 99, ""}, randomManifest(t, r, 2)}})
	return object
}

func TestGoldenPack(t *testing.T) {
	path, got := filepath.Join("testdata", "pack.hex"), hex.Dump(goldenPack(t))
	if *rewrite {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// TestHostilePacks: cut and changed bytes give errors, or facts in which every number that indexes something is in range. Checksums are
// left out, as one who can write can make them.
func TestHostilePacks(t *testing.T) {
	r := random(t)
	for range 60 {
		object, heads := Pack([]Item{{Origin{Path: "m"}, randomManifest(t, r, 1+r.IntN(80))}})
		for range 20 {
			harmed := slices.Clone(object)
			for range 1 + r.IntN(4) {
				harmed[r.IntN(len(harmed))] = byte(r.Uint32())
			}
			requireHarmless(t, harmed, heads[0])
		}
	}
}

func requireHarmless(t testing.TB, object []byte, h Head) {
	b, err := Open("hostile", object[h.Off:h.Off+h.Len])
	if err != nil {
		requireClass(t, err)
		return
	}
	sections := b.Missing(nil, everything)
	data := make([][]byte, len(sections))
	for i := range sections {
		s := &sections[i]
		if s.Off+s.Len > int64(len(object)) {
			return // a store would not give it
		}
		data[i] = object[s.Off : s.Off+s.Len]
		s.CRC = bytescan.CRC32C(data[i])
	}
	m, err := b.Fill(nil, everything, sections, data)
	if err != nil {
		requireClass(t, err)
		return
	}
	for i := range m.N {
		_ = m.File(i)
		for _, c := range m.Columns {
			if c != nil {
				_, _ = c.LowerAt(i), c.UpperAt(i)
			}
		}
	}
}

func requireClass(t testing.TB, err error) {
	switch fault.ClassOf(err) {
	case fault.Corrupt, fault.Unsupported:
	default:
		t.Fatalf("unclassified: %v", err)
	}
}

// TestMemoryOfHostileHeads holds the limit that docs/format/facts.md states.
func TestMemoryOfHostileHeads(t *testing.T) {
	var w bytescan.Writer
	w.Bytes([]byte(magic))
	w.Bytes([]byte{version, 0, 0, 0})
	w.String("m")
	for range 7 {
		w.U8(0)
	}
	w.Uvarint(MaxEntries)
	w.Uvarint(maxSections)
	for range 4000 {
		w.Bytes([]byte{4, 1, 0, 0, 0, 0, 0, 0})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Open("m", w.Buf)
	runtime.ReadMemStats(&after)
	requireClass(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
}

func FuzzBlob(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 4 {
		object, heads := Pack([]Item{{Origin{Path: "m"}, randomManifest(f, r, 1+n*20)}})
		f.Add(object, heads[0].Off)
	}
	f.Fuzz(func(t *testing.T, object []byte, off int64) {
		if off < 0 || off > int64(len(object)) || len(object) > 1<<20 {
			return
		}
		requireHarmless(t, object, Head{Off: off, Len: int64(len(object)) - off})
	})
}
