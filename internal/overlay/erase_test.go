package overlay

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/store"
)

func TestABuildThatReadAnErasedFileIsDiscardedAsAWhole(t *testing.T) {
	o, id := withIndex(t, newMem())
	base := fresh(t, o)
	commit(t, other(o), nil, Erase([]Identity{fileID(1)}, nil))
	r := commit(t, o, base, Publish(nil, build("b", artifact(id, 0, fileID(1)), artifact(id, 1, fileID(2)))))
	require.Len(t, r.Discarded, 2, "its bundle holds the values, so that no version may name it")
	for _, d := range r.Discarded {
		require.Equal(t, "file erased", d.Reason)
	}
}

func TestWhatWasDerivedBeforeAnErasureIsNotListedAfterIt(t *testing.T) {
	o, id := withIndex(t, newMem())
	base := fresh(t, o)
	commit(t, other(o), nil, Erase([]Identity{fileID(1)}, nil))
	run := derivedOf("run", "1", id, 1)
	r := commit(t, o, base, Derive([]Derived{run}, nil))
	require.Equal(t, []DerivedKey{run.Is()}, r.Unfit)
	require.Empty(t, fresh(t, o).Derived("run"))
	require.Empty(t, commit(t, o, fresh(t, o), Derive([]Derived{run}, nil)).Unfit)
}

func TestListsThatAnErasureLeavesHoldNothingOfIt(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	secret := artifact(id, 0, fileID(1))
	secret.RootInline = []byte("the root repeats a secret value")
	secret.Root.Len, secret.Root.CRC = int64(len(secret.RootInline)), bytescan.CRC32C(secret.RootInline)
	run := derivedOf("run", "1", id, 1)
	run.Meta = []byte(`{"least":"another secret"}`)
	commit(t, o, nil, Publish(nil, build("b", secret, artifact(id, 1, fileID(2)))), Derive([]Derived{run, derivedOf("run", "2", id, 2)}, nil))
	held := func(v *Version) (n int) {
		objects, err := o.Versions(t.Context())
		require.NoError(t, err)
		names, err := o.Names(t.Context(), objects[:1], nil, nil)
		require.NoError(t, err)
		require.Equal(t, v.Number(), objects[0].Number)
		for key := range names.Chunks {
			raw := st.Fetch(t.Context(), []store.Read{{Key: key}})[0]
			require.NoError(t, raw.Err)
			n += bytes.Count(raw.Data[0], []byte("secret"))
		}
		return n
	}
	require.Equal(t, 2, held(fresh(t, o)))
	commit(t, o, nil, Erase([]Identity{fileID(1)}, []DerivedKey{run.Is()}))
	v := fresh(t, o)
	require.Zero(t, held(v))
	require.Len(t, v.Find(fileID(2).Path), 1)
	require.Len(t, v.Derived("run"), 1)
}

func TestUpgradeWritesOlderFormatsAnew(t *testing.T) {
	st := newMem()
	hot, wide := fromHex(t, "chunk-hot-1.hex"), fromHex(t, "chunk-wide-1.hex")
	c, err := openChunk("old-1", hot)
	require.NoError(t, err)
	require.Equal(t, 1, c.version)
	ref := chunkRef{
		name: "old-1", artifacts: c.artifacts.n, files: c.files.n, hotLen: int64(len(hot)), wideLen: int64(len(wide)),
		hotCRC: bytescan.CRC32C(hot), wideCRC: bytescan.CRC32C(wide),
	}
	b := &body{header: header{Version: 1, Commit: "c", Mounted: true, Table: testTable, Upstream: testUpstream}, chunks: []chunkRef{ref}}
	for _, id := range c.indexes {
		def := definition("bloom", 3)
		def.ID = id
		b.header.Indexes = append(b.header.Indexes, def)
	}
	o := Open(st, "overlay", Options{})
	for key, raw := range map[string][]byte{o.key("chunks", ref.name): append(hot, wide...), o.key("versions", versionName(1)): bodyV1(t, b)} {
		_, err := st.PutNew(t.Context(), key, bytes.NewReader(raw))
		require.NoError(t, err)
	}
	old := fresh(t, o)
	require.Empty(t, old.Warnings())
	oldest, now := old.Format()
	require.Less(t, oldest, now)
	want := artifactsOf(t, old)
	require.NotEmpty(t, want)

	r := commit(t, o, nil, Upgrade())
	require.True(t, r.Changed)
	v := fresh(t, o)
	require.Equal(t, old.Number()+1, v.Number())
	oldest, now = v.Format()
	require.Equal(t, now, oldest)
	require.Equal(t, want, artifactsOf(t, v))
	require.False(t, commit(t, o, nil, Upgrade()).Changed, "again")
}

// bodyV1 is a body without lists as version 1 of the format had it: it ended after the chunks.
func bodyV1(t *testing.T, b *body) []byte {
	t.Helper()
	raw, err := b.encode(nil)
	require.NoError(t, err)
	raw = append([]byte(nil), raw[:len(raw)-6]...) // two counts of zero, and the checksum
	raw[len(bodyMagic)] = 1
	var w bytescan.Writer
	w.Bytes(raw)
	w.U32(bytescan.CRC32C(raw))
	back, err := parseBody("x", w.Buf)
	require.NoError(t, err)
	require.Equal(t, 1, back.format)
	return w.Buf
}

// artifactsOf is everything that a version says of its artifacts, by their keys.
func artifactsOf(t *testing.T, v *Version) map[Key][]any {
	t.Helper()
	out := map[Key][]any{}
	v.Each(func(a ArtifactInfo) bool {
		paths, sum, err := v.Paths(t.Context(), a.At)
		require.NoError(t, err)
		segment := v.Segment(a.At)
		tags := make([]store.Tag, len(segment))
		for i := range segment {
			tags[i] = segment[i].Tag
		}
		out[a.Key()] = []any{a.IndexID, a.BuildID, a.Rows, a.Body, a.Root, a.Lineage, a.Columns, a.RootInline, paths, sum, tags}
		return true
	})
	return out
}
