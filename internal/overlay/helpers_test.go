package overlay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
)

func seeded(t *testing.T) (*rand.Rand, uint64) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SKOMER_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		seed = n
	}
	t.Logf("SKOMER_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 2)), seed
}

var (
	testTable    = Table{UUID: "6f5f7a2e-0000-4000-8000-000000000001", Location: "s3://lake/t", Name: "ns.t"}
	testUpstream = Upstream{MetadataLocation: "s3://lake/t/metadata/v1.json", SnapshotID: 11, SequenceNumber: 1, SchemaID: 0, LastUpdatedMs: 1000}
)

func fileID(i int) Identity {
	return Identity{
		Path: fmt.Sprintf("s3://lake/t/data/day=%02d/part-%08d-%016x.parquet", i%31, i, uint64(i)*0x9E3779B97F4A7C15),
		Size: int64(1_000_000 + i), Records: int64(10 + i%7), Tag: store.Tag(fmt.Sprintf("\"%032x\"", i*7919)),
	}
}

func columns(field int) []lineage.Column {
	return []lineage.Column{{FieldID: field, Name: "c", LeafPath: "c", Resolved: "id", Type: "long", Encoding: "key-v1:int64", Physical: "INT64"}}
}

// artifact makes the n-th artifact of a bundle.
func artifact(index string, n int, files ...Identity) Artifact {
	root := []byte(fmt.Sprintf("root of %s %d", index, n))
	at := int64(n) * 10_000
	return Artifact{
		IndexID: index, FormatVersion: lineage.FormatVersion, Files: files, Columns: columns(3),
		Body:    lineage.Place{Off: at + 4, Len: 1000, CRC: uint32(n) + 1},
		Root:    lineage.Place{Off: at + 2000, Len: int64(len(root)), CRC: bytescan.CRC32C(root)},
		Lineage: lineage.Place{Off: at + 3000, Len: 500, CRC: uint32(n) + 2}, BodySHA256: [32]byte{byte(n), 1}, RootInline: root,
	}
}

func build(id string, artifacts ...Artifact) Build {
	return Build{ID: id, Bundle: "o/data/" + id + ".puffin", SnapshotID: 11, Sequence: 1, Artifacts: artifacts}
}

func definition(kind string, field int) Definition {
	return Definition{Kind: kind, KindVersion: 1, FieldIDs: []int{field}, Names: []string{"c"}}
}

func mounted(t testing.TB, st store.Store) *Overlay {
	t.Helper()
	o := Open(st, "o", Options{})
	_, err := o.Commit(t.Context(), nil, Mount(testTable, testUpstream))
	require.NoError(t, err)
	t.Cleanup(o.Close)
	return o
}

// withIndex mounts and declares one index.
func withIndex(t testing.TB, st store.Store) (*Overlay, string) {
	t.Helper()
	o := mounted(t, st)
	r := commit(t, o, nil, AddIndex(definition("bloom", 3)))
	return o, r.Indexes[0]
}

func commit(t testing.TB, o *Overlay, base *Version, c ...Change) *Receipt {
	t.Helper()
	r, err := o.Commit(t.Context(), base, c...)
	require.NoError(t, err)
	return r
}

func latest(t testing.TB, o *Overlay) *Version {
	t.Helper()
	v, err := o.Latest(t.Context())
	require.NoError(t, err)
	return v
}

// fresh reads the overlay as another process would.
func fresh(t testing.TB, o *Overlay) *Version {
	t.Helper()
	return latest(t, Open(o.store, o.prefix, o.opts))
}

func newMem() store.Store { return mem.New() }

func read(t testing.TB, st store.Store, key string) []byte {
	t.Helper()
	b, err := fetchAll(context.Background(), st, key)
	require.NoError(t, err)
	return b
}
