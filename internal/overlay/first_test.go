package overlay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// grown is an overlay with artifacts and derived objects, and its head before the last change.
func grown(t *testing.T, opts Options) (o *Overlay, older []byte) {
	t.Helper()
	st := newMem()
	opts.Ahead = func(v *Version) []Derived { return v.Derived("map") }
	o = Open(st, "o", opts)
	t.Cleanup(o.Close)
	commit(t, o, nil, Mount(testTable, testUpstream))
	id := commit(t, o, nil, AddIndex(definition("bloom", 3))).Indexes[0]
	commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1), fileID(2)))))
	root := []byte("the root of a map")
	_, err := st.PutNew(t.Context(), "o/data/map.puffin", bytes.NewReader(root))
	require.NoError(t, err)
	put := Derived{Kind: "map", Name: "m", Key: "data/map.puffin", Len: int64(len(root)), CRC: bytescan.CRC32C(root)}
	if opts.Key != nil {
		put.SHA256 = sha256.Sum256(root)
	}
	commit(t, o, nil, Derive([]Derived{put}, nil))
	o.Close()
	older = read(t, st, "o/"+HeadName)
	put.Meta = json.RawMessage(`{"changed":true}`)
	commit(t, o, nil, Derive([]Derived{put}, nil), Publish(nil, build("c", artifact(id, 0, fileID(3)))))
	o.Close()
	return o, older
}

// TestFirstBelievesNoHead: whatever the head says, First finds what Latest finds.
func TestFirstBelievesNoHead(t *testing.T) {
	for _, key := range [][]byte{nil, bytes.Repeat([]byte("k"), 32)} {
		o, older := grown(t, Options{Key: key})
		ctx, want := t.Context(), fresh(t, o)
		now := read(t, o.store, "o/"+HeadName)
		forge := func(change func(*Head)) []byte {
			var h Head
			require.NoError(t, json.Unmarshal(now, &h))
			change(&h)
			raw, err := json.Marshal(h)
			require.NoError(t, err)
			return raw
		}
		for name, head := range map[string][]byte{
			"as written": now, "of an older version": older, "damaged": now[:len(now)/2], "none": nil,
			"with lists that are not those": forge(func(h *Head) {
				var old Head
				require.NoError(t, json.Unmarshal(older, &old))
				require.NotEmpty(t, h.Lists)
				for k := range h.Lists {
					for _, raw := range old.Lists {
						h.Lists[k] = raw
					}
				}
			}),
			"of other versions, that asks for what is not there": forge(func(h *Head) {
				h.OverlayVersion, h.Mounted, h.SnapshotID = 99, false, 4
				h.Ahead = []Part{{"data/nothing", 0, 10}, {"data/../../x", 0, 10}}
			}),
			"that asks for nonsense": forge(func(h *Head) { h.Ahead = []Part{{"data/map.puffin", -5, 1 << 60}} }),
		} {
			require.NoError(t, o.store.Delete(ctx, []string{"o/" + HeadName}))
			if head != nil {
				_, err := o.store.PutNew(ctx, "o/"+HeadName, bytes.NewReader(head))
				require.NoError(t, err)
			}
			v, err := Open(o.store, "o", o.opts).First(ctx, nil)
			require.NoError(t, err, name)
			require.Equal(t, want.Number(), v.Number(), name)
			require.Equal(t, want.Indexes(), v.Indexes(), name)
			require.Equal(t, want.Derived("map"), v.Derived("map"), name)
			require.Len(t, v.Derived("map"), 1)
			require.Empty(t, v.Warnings(), name)
			full, err := v.Full(ctx)
			require.NoError(t, err)
			for i := range 5 {
				require.Equal(t, want.Find(fileID(i).Path), full.Find(fileID(i).Path), name)
			}
			again, err := full.Full(ctx)
			require.NoError(t, err)
			require.Same(t, full, again)
		}
	}
}

// asked records the keys that were read, with the reads that they were one wave with.
type asked struct {
	store.Store
	keys chan string
}

func (a *asked) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	for _, r := range reads {
		a.keys <- r.Key
	}
	return a.Store.Fetch(ctx, reads)
}

// TestFirstReadsWhatTheHeadNames: the head, the body, and the parts that the head names; neither chunks nor lists, as long as nobody
// asks for artifacts.
func TestFirstReadsWhatTheHeadNames(t *testing.T) {
	o, _ := grown(t, Options{})
	st := &asked{o.store, make(chan string, 100)}
	var said *Head
	gate := make(chan struct{})
	slow := &bodyAfter{st, gate}
	v, err := Open(slow, "o", Options{}).First(t.Context(), func(h *Head) { said = h; close(gate) })
	require.NoError(t, err)
	require.Equal(t, testUpstream, said.Upstream)
	close(st.keys)
	got := map[string]int{}
	for k := range st.keys {
		got[k]++
	}
	require.Equal(t, []string{"o/data/map.puffin", "o/" + HeadName, "o/versions/" + versionName(v.Number())}, slices.Sorted(maps.Keys(got)))
}

// bodyAfter answers reads of versions when the gate is open.
type bodyAfter struct {
	store.Store
	gate chan struct{}
}

func (b *bodyAfter) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	if versionNumber(reads[0].Key[max(0, len(reads[0].Key)-20):]) > 0 {
		<-b.gate
	}
	return b.Store.Fetch(ctx, reads)
}

// TestACommitOnAFirstLookKeepsArtifacts: the chunks that a first look left out are not lost by what is committed on top of it.
func TestACommitOnAFirstLookKeepsArtifacts(t *testing.T) {
	o, _ := grown(t, Options{})
	other := Open(o.store, "o", Options{})
	t.Cleanup(other.Close)
	v, err := other.First(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, v.Find(fileID(1).Path), "no chunk was read")
	commit(t, other, v, AddIndex(definition("ordered", 3)), Publish(nil, build("d", artifact(v.Indexes()[0].ID, 0, fileID(4)))))
	for i := 1; i <= 4; i++ {
		require.Len(t, fresh(t, o).Find(fileID(i).Path), 1, i)
	}
}

func TestFirstOfNothing(t *testing.T) {
	_, err := Open(newMem(), "o", Options{}).First(t.Context(), nil)
	require.True(t, fault.Is(err, fault.NotFound), err)
	o := mounted(t, newMem())
	commit(t, o, nil, Unmount())
	_, err = Open(o.store, "o", Options{}).First(t.Context(), nil)
	require.True(t, fault.Is(err, fault.NotFound), err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Open(o.store, "o", Options{}).First(ctx, nil)
	require.Error(t, err)
}
