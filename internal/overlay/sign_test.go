package overlay

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
)

var testKey = []byte("a key of thirty-two bytes or more")

func signing(o *Overlay, key []byte) *Overlay {
	opts := o.opts
	opts.Key = key
	return Open(o.store, o.prefix, opts)
}

// forge changes raw at a place and then the four bytes at fix, so that its CRC32C stays what it was.
func forge(t *testing.T, raw []byte, at, fix int) []byte {
	t.Helper()
	want := bytescan.CRC32C(raw)
	out := bytes.Clone(raw)
	out[at] ^= 0x01
	from := bytescan.CRC32C(out)
	var rows [32]struct{ delta, bits uint32 }
	for bit := range 32 {
		out[fix+bit/8] ^= 1 << (bit % 8)
		rows[bit].delta, rows[bit].bits = bytescan.CRC32C(out)^from, 1<<bit
		out[fix+bit/8] ^= 1 << (bit % 8)
	}
	need, flips := want^from, uint32(0)
	for col := 31; col >= 0; col-- { // elimination over GF(2)
		pivot := slices.IndexFunc(rows[:], func(r struct{ delta, bits uint32 }) bool { return r.delta>>col == 1 })
		if pivot < 0 {
			continue
		}
		p := rows[pivot]
		rows[pivot].delta = 0
		for i := range rows {
			if rows[i].delta>>col&1 == 1 {
				rows[i].delta ^= p.delta
				rows[i].bits ^= p.bits
			}
		}
		if need>>col&1 == 1 {
			need, flips = need^p.delta, flips^p.bits
		}
	}
	require.Zero(t, need)
	binary.LittleEndian.PutUint32(out[fix:], binary.LittleEndian.Uint32(out[fix:])^flips)
	require.Equal(t, want, bytescan.CRC32C(out))
	return out
}

func signed(t *testing.T) (o *Overlay, id string) {
	t.Helper()
	o = Open(newMem(), "o", Options{Key: testKey})
	commit(t, o, nil, Mount(testTable, testUpstream))
	t.Cleanup(o.Close)
	id = commit(t, o, nil, AddIndex(definition("bloom", 3))).Indexes[0]
	large := artifact(id, 1, fileID(2))
	large.RootInline = bytes.Repeat([]byte("r"), maxRootInline+1)
	large.Root.Len, large.Root.CRC = int64(len(large.RootInline)), bytescan.CRC32C(large.RootInline)
	run := derivedOf("run", "1", id, 5)
	run.SHA256 = [32]byte{1}
	commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1)), large)), Derive([]Derived{run, derivedOf("run", "no proof", id, 6)}, nil))
	return o, id
}

func TestASignedOverlayIsRead(t *testing.T) {
	o, id := signed(t)
	for _, v := range []*Version{latest(t, o), latest(t, signing(o, testKey))} {
		require.NoError(t, v.Broken())
		require.Empty(t, v.Warnings())
		small := mustArtifact(t, v, v.Find(fileID(1).Path)[0])
		require.Nil(t, small.RootSHA256, "the chunk holds the root itself")
		large := mustArtifact(t, v, v.Find(fileID(2).Path)[0])
		require.Nil(t, large.RootInline)
		require.Equal(t, rootSum(bytes.Repeat([]byte("r"), maxRootInline+1)), *large.RootSHA256)
		require.Len(t, v.Derived("run"), 1)
	}
	plain := signing(o, nil)
	v := latest(t, plain)
	require.Len(t, v.Find(fileID(2).Path), 1, "without a key the signature is not asked for")
	require.Nil(t, mustArtifact(t, v, v.Find(fileID(2).Path)[0]).RootSHA256)
	require.Len(t, v.Derived("run"), 2)
	_, err := plain.Commit(t.Context(), nil, DropIndex(id))
	require.True(t, fault.Is(err, fault.Refused), err)
	require.Contains(t, fault.FixOf(err), "overlay-key")
	_, err = o.Compact(t.Context())
	require.NoError(t, err)
	require.False(t, fault.Is(commit(t, o, nil, DropIndex(id)).Version.Broken(), fault.Refused))
}

// TestWhatIsNotSignedIsIgnoredWhole: another key, no signature, and any change of a signed body whose checksum the forger repaired.
func TestWhatIsNotSignedIsIgnoredWhole(t *testing.T) {
	o, _ := signed(t)
	silent := func(p *Overlay, why string) {
		t.Helper()
		v := latest(t, p)
		require.True(t, fault.Is(v.Broken(), fault.Refused) || fault.Is(v.Broken(), fault.Corrupt) || fault.Is(v.Broken(), fault.Unsupported), "%s: %v", why, v.Broken())
		require.Empty(t, v.Indexes())
		require.Empty(t, v.Find(fileID(1).Path))
		require.Empty(t, v.Derived("run"))
	}
	silent(signing(o, []byte("another key of thirty-two bytes.")), "another key")
	key := "o/versions/" + versionName(3)
	good := read(t, o.store, key)
	for at := range len(good) - 4 {
		bad := bytes.Clone(good)
		bad[at] ^= 0x20
		binary.LittleEndian.PutUint32(bad[len(bad)-4:], bytescan.CRC32C(bad[:len(bad)-4]))
		replace(t, o.store, key, bad)
		silent(signing(o, testKey), "forged")
	}
	b, err := parseBody(key, good)
	require.NoError(t, err)
	unsigned, err := b.encode(nil)
	require.NoError(t, err)
	replace(t, o.store, key, unsigned)
	silent(signing(o, testKey), "unsigned")
	_, err = signing(o, testKey).Commit(t.Context(), nil, AddIndex(definition("zonemap", 3)))
	require.True(t, fault.Is(err, fault.Refused), err)
	require.Contains(t, fault.FixOf(err), "overlay sign")
}

// TestForgedChunksAndListsAreNotBelieved keeps every CRC32C right.
func TestForgedChunksAndListsAreNotBelieved(t *testing.T) {
	o, _ := signed(t)
	v := latest(t, o)
	chunk, list := o.key("chunks", v.body.chunks[0].name), o.key("chunks", v.body.lists[0].name)
	raw := read(t, o.store, chunk)
	hot := int(v.body.chunks[0].hotLen)
	forged := append(forge(t, raw[:hot], chunkHeader+2*fileSize+17, chunkHeader+2*fileSize+56), raw[hot:]...)
	replace(t, o.store, chunk, forged)
	require.Empty(t, latest(t, signing(o, nil)).Warnings(), "a checksum that is no proof does not notice")
	got := latest(t, signing(o, testKey))
	require.Len(t, got.Warnings(), 1)
	require.Empty(t, got.Find(fileID(1).Path))
	wide := bytes.Clone(raw)
	copy(wide[hot:], forge(t, raw[hot:], 3, 40))
	replace(t, o.store, chunk, wide)
	require.Empty(t, latest(t, signing(o, testKey)).Find(fileID(1).Path))
	replace(t, o.store, chunk, raw)
	require.Len(t, latest(t, signing(o, testKey)).Find(fileID(1).Path), 1)

	raw = read(t, o.store, list)
	at := strings.Index(string(raw), "run/5")
	replace(t, o.store, list, forge(t, raw, at+4, len(raw)-4))
	require.Empty(t, latest(t, signing(o, testKey)).Derived("run"))
}

func TestAnOverlayIsSignedOnDemand(t *testing.T) {
	o, id := withIndex(t, newMem())
	commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1)))))
	_, err := o.Sign(t.Context())
	require.True(t, fault.Is(err, fault.Invalid), err)
	p := signing(o, testKey)
	require.Error(t, latest(t, p).Broken())
	v, err := p.Sign(t.Context())
	require.NoError(t, err)
	require.NoError(t, v.Broken())
	require.Len(t, latest(t, signing(o, testKey)).Find(fileID(1).Path), 1)
	next := []byte("the next key, when this one leaks")
	v, err = signing(o, next).Sign(t.Context())
	require.NoError(t, err)
	require.Len(t, v.Find(fileID(1).Path), 1)
	require.Error(t, latest(t, signing(o, testKey)).Broken())
}

func TestDerivedChecksBoth(t *testing.T) {
	raw := []byte("the bytes of a run, and some more")
	e := Derived{Key: "k", CRC: bytescan.CRC32C(raw)}
	bad := forge(t, raw, 3, 20)
	require.NoError(t, e.Check(bad), "without SHA-256")
	e.SHA256 = rootSum(raw)
	require.NoError(t, e.Check(raw))
	require.True(t, fault.Is(e.Check(bad), fault.Corrupt))
	require.True(t, fault.Is(e.Check(raw[1:]), fault.Corrupt))
}

func TestChunksOfTheFirstVersionAreRead(t *testing.T) {
	c, err := openChunk("old", fromHex(t, "chunk-hot-1.hex"))
	require.NoError(t, err)
	w, err := openWide("old", c, fromHex(t, "chunk-wide-1.hex"))
	require.NoError(t, err)
	now, err := openChunk("new", fromHex(t, "chunk-hot.hex"))
	require.NoError(t, err)
	x, err := openWide("new", now, fromHex(t, "chunk-wide.hex"))
	require.NoError(t, err)
	require.Equal(t, x.paths, w.paths)
	require.Equal(t, x.sums, w.sums)
	require.Zero(t, w.root(0))
}
