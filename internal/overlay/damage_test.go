package overlay

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
)

// replace puts other bytes under a key.
func replace(t testing.TB, st store.Store, key string, raw []byte) {
	t.Helper()
	tag := st.Stat(context.Background(), []string{key})[0].Tag
	_, err := st.PutIf(context.Background(), key, tag, raw)
	require.NoError(t, err)
}

func keys(t testing.TB, st store.Store, prefix string) []string {
	t.Helper()
	infos, err := st.List(context.Background(), prefix, "", 1000)
	require.NoError(t, err)
	var out []string
	for _, i := range infos {
		out = append(out, i.Key)
	}
	return out
}

// TestNoFlippedByteOfAVersionOrChunkIsBelieved flips each byte in turn: what is found is what was published, or nothing.
func TestNoFlippedByteOfAVersionOrChunkIsBelieved(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	v := commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1)), artifact(id, 1, fileID(2), fileID(3))))).Version
	chunks := keys(t, st, "o/chunks/")
	require.Len(t, chunks, 1)
	silent := 0
	for _, key := range []string{"o/versions/" + versionName(3), chunks[0]} {
		good := read(t, st, key)
		for at := range good {
			bad := bytes.Clone(good)
			bad[at] ^= 0x10
			replace(t, st, key, bad)
			got := fresh(t, o)
			for i := 1; i <= 3; i++ {
				found := got.Find(fileID(i).Path)
				if len(found) == 0 {
					silent++
					require.NotEmpty(t, got.Warnings(), "%s byte %d", key, at)
					continue
				}
				require.Equal(t, v.Find(fileID(i).Path), found)
				if _, _, err := got.Paths(t.Context(), found[0].At); err != nil {
					require.True(t, fault.Is(err, fault.Corrupt), err)
				}
			}
		}
		replace(t, st, key, good)
	}
	require.Greater(t, silent, 1000)
	require.Empty(t, fresh(t, o).Warnings())
}

func TestADamagedNewestVersionIsNoIndexUntilRecovered(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	commit(t, o, nil, Publish(nil, build("b1", artifact(id, 0, fileID(1)))))
	commit(t, o, nil, Publish(nil, build("b2", artifact(id, 0, fileID(2)))))
	replace(t, st, "o/versions/"+versionName(4), []byte("damaged beyond recognition"))
	p := other(o)
	v := latest(t, p)
	require.Equal(t, uint64(4), v.Number())
	require.True(t, fault.Is(v.Broken(), fault.Corrupt), v.Broken())
	require.Empty(t, v.Indexes())
	require.Empty(t, v.Find(fileID(1).Path))
	require.Len(t, v.Warnings(), 1)
	_, err := p.Commit(t.Context(), nil, AddIndex(definition("zonemap", 3)))
	require.True(t, fault.Is(err, fault.Corrupt), err)
	require.Contains(t, fault.FixOf(err), "recover")
	r, err := p.Recover(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(5), r.Number())
	for _, v := range []*Version{r, fresh(t, o)} {
		require.Len(t, v.Find(fileID(1).Path), 1)
		require.Empty(t, v.Find(fileID(2).Path), "what the damaged version added is lost")
	}
	commit(t, p, nil, AddIndex(definition("zonemap", 3)))
	again, err := p.Recover(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(6), again.Number(), "nothing to recover")
}

func TestAVersionFromTheFutureIsNoIndexAndIsNotOverwritten(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	commit(t, o, nil, Publish(nil, build("b1", artifact(id, 0, fileID(1)))))
	_, err := st.PutIf(t.Context(), "o/versions/"+versionName(4), "", []byte("SKOV\x09\x00\x00\x00 in a format of the future"))
	require.NoError(t, err)
	p := other(o)
	v := latest(t, p)
	require.True(t, fault.Is(v.Broken(), fault.Unsupported), v.Broken())
	require.Empty(t, v.Find(fileID(1).Path))
	_, err = p.Commit(t.Context(), nil, DropIndex(id))
	require.True(t, fault.Is(err, fault.Unsupported), err)
	_, err = p.Recover(t.Context())
	require.True(t, fault.Is(err, fault.Unsupported), err)
}

func TestALostChunkSilencesOnlyItsOwnArtifacts(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	one := commit(t, o, nil, Publish(nil, build("b1", artifact(id, 0, fileID(1))))).Version
	// A second chunk beside the first, as if the first had been too large to be written anew.
	d := o.newDraft(one, one, "handmade")
	require.NoError(t, Publish(nil, build("b2", artifact(id, 0, fileID(2)))).apply(t.Context(), d))
	puts := o.newPuts("handmade")
	ref, _, err := puts.put(t.Context(), d.fresh)
	require.NoError(t, err)
	b := &body{header: d.header, chunks: append(one.body.chunks[:1:1], ref)}
	raw, err := b.encode(nil)
	require.NoError(t, err)
	require.NoError(t, o.putVersion(t.Context(), b, raw))
	require.Len(t, fresh(t, o).Find(fileID(2).Path), 1)

	require.NoError(t, st.Delete(t.Context(), []string{"o/chunks/" + one.body.chunks[0].name}))
	p := other(o)
	v := latest(t, p)
	require.NoError(t, v.Broken())
	require.Len(t, v.Warnings(), 1)
	require.True(t, fault.Is(v.Warnings()[0].Reason, fault.NotFound))
	require.Empty(t, v.Find(fileID(1).Path))
	require.Len(t, v.Find(fileID(2).Path), 1)
	r := commit(t, p, nil, Publish(nil, build("b3", artifact(id, 0, fileID(1)))))
	require.Len(t, r.Version.Find(fileID(1).Path), 1, "a lost artifact can be built again")
	rec, err := p.Recover(t.Context())
	require.NoError(t, err)
	require.Empty(t, rec.Warnings())
	require.Empty(t, fresh(t, o).Warnings())
	require.Len(t, fresh(t, o).Find(fileID(1).Path), 1)
}

func TestAStoreThatIsDownForAMomentIsNotTakenForLoss(t *testing.T) {
	st := &failing{Store: mem.New()}
	o, id := withIndex(t, st)
	commit(t, o, nil, Publish(nil, build("b1", artifact(id, 0, fileID(1)))))
	o.Close()
	p := other(o)
	st.fail = func(key string) error {
		if strings.Contains(key, "/chunks/") {
			return fault.New(fault.Exhausted, key, "slow down").WithRetry()
		}
		return nil
	}
	v := latest(t, p)
	require.Empty(t, v.Find(fileID(1).Path))
	require.Len(t, v.Warnings(), 1)
	_, err := p.Commit(t.Context(), v, Publish(nil, build("b2", artifact(id, 0, fileID(1)))))
	require.True(t, fault.Retryable(err), err)
	_, err = p.Recover(t.Context())
	require.True(t, fault.Retryable(err), err)
	st.fail = nil
	require.Len(t, latest(t, p).Find(fileID(1).Path), 1)
}

// failing fails reads of chosen keys.
type failing struct {
	store.Store
	fail func(key string) error
}

func (f *failing) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	out := f.Store.Fetch(ctx, reads)
	for i := range out {
		if f.fail != nil && f.fail(reads[i].Key) != nil {
			out[i] = store.Result{Err: f.fail(reads[i].Key), Size: -1}
		}
	}
	return out
}

func chunkOf(t testing.TB) (hot, wide []byte) {
	t.Helper()
	shape, err := shapeOf(columns(3))
	require.NoError(t, err)
	var entries []entry
	for i := range 5 {
		a := artifact("bloom-1", i, fileID(i), fileID(i+100))
		entries = append(entries, entry{
			index: a.IndexID, bundle: bundleInfo{"b", "id", 1, 2}, shape: shape, format: 2, files: a.Files,
			body: a.Body, root: a.Root, lineage: a.Lineage, inline: a.RootInline, sha: a.BodySHA256,
		})
	}
	c, err := encodeChunk(entries)
	require.NoError(t, err)
	return c.hot, c.wide
}

// FuzzChunk opens bytes as a chunk whose checksum is right and asks everything of it.
func FuzzChunk(f *testing.F) {
	hot, wide := chunkOf(f)
	f.Add(hot, wide, []byte("s3://lake/t"))
	f.Add(hot[:chunkHeader], wide, []byte{})
	f.Fuzz(func(t *testing.T, hot, wide, path []byte) {
		c, err := openChunk("x", hot)
		if err != nil {
			require.True(t, fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Unsupported), err)
			return
		}
		b := &body{header: header{Version: 1, Indexes: []Definition{{ID: "bloom-1"}}}, chunks: []chunkRef{{name: "x", artifacts: c.artifacts.n}}}
		v := &Version{number: 1, body: b, views: []view{{chunk: c}}}
		v.bind()
		if w, err := openWide("x", c, wide); err == nil {
			c.wide.Store(w)
		}
		found := v.Find(string(path))
		for i := range c.files.n {
			found = v.appendFile(found, 0, i, "p", false)
		}
		for _, p := range found {
			if a, ok := v.Artifact(p.At); ok {
				require.True(t, a.Body.Off >= 0 && a.Body.Len >= 0 && a.Body.End() >= 0)
				v.Segment(p.At)
				v.lookup(a.Key())
			}
		}
		v.Each(func(a ArtifactInfo) bool { v.entry(a.At); return true })
	})
}

// FuzzBody parses bytes as a version whose checksum is right.
func FuzzBody(f *testing.F) {
	b := &body{header: header{Version: 3, Commit: "c", Mounted: true, Table: testTable, Indexes: []Definition{definition("bloom", 3)}}}
	b.chunks = []chunkRef{{name: "n-1", artifacts: 3, files: 2, hotLen: 500, wideLen: 10, dead: bitset{5}}, {name: "n-2", artifacts: 200, files: 1, hotLen: 20000, dead: bitset{1, ^uint64(0), 7}}}
	raw, err := b.encode(nil)
	require.NoError(f, err)
	f.Add(raw[:len(raw)-4])
	f.Fuzz(func(t *testing.T, raw []byte) {
		raw = binary.LittleEndian.AppendUint32(bytes.Clone(raw), bytescan.CRC32C(raw))
		b, err := parseBody("x", raw)
		if err != nil {
			return
		}
		again, err := b.encode(nil)
		require.NoError(t, err)
		c, err := parseBody("x", again)
		require.NoError(t, err)
		require.Equal(t, len(b.chunks), len(c.chunks))
		for i := range b.chunks {
			require.True(t, b.chunks[i].dead.equal(c.chunks[i].dead))
			require.LessOrEqual(t, b.chunks[i].dead.count(), b.chunks[i].artifacts)
		}
	})
}
