package overlay

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/store"
)

func TestAnUnmountedPrefixIsNotFound(t *testing.T) {
	st := newMem()
	_, err := Open(st, "o", Options{}).Latest(t.Context())
	require.True(t, fault.Is(err, fault.NotFound), err)
	_, err = Open(st, "o", Options{}).Commit(t.Context(), nil, AddIndex(definition("bloom", 1)))
	require.True(t, fault.Is(err, fault.NotFound), err)
}

func TestMountAddPublishFindDrop(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	a, b, c := fileID(1), fileID(2), fileID(3)
	r := commit(t, o, nil, Publish(nil, build("b1", artifact(id, 0, a), artifact(id, 1, b, c))))
	require.Empty(t, r.Discarded)
	for _, v := range []*Version{r.Version, fresh(t, o)} {
		require.Equal(t, uint64(3), v.Number())
		require.Equal(t, testTable, v.Table())
		require.Equal(t, testUpstream, v.Upstream())
		require.Empty(t, v.Warnings())
		require.Empty(t, v.Find("s3://lake/t/data/none.parquet"))
		p := v.Find(c.Path)
		require.Len(t, p, 1)
		require.Equal(t, Placement{At: p[0].At, IndexID: id, First: uint32(b.Records), Rows: uint32(c.Records), Identity: c}, p[0])
		info, ok := v.Artifact(p[0].At)
		require.True(t, ok)
		want := artifact(id, 1, b, c)
		require.Equal(t, ArtifactInfo{
			At: p[0].At, IndexID: id, Bundle: "o/data/b1.puffin", BuildID: "b1", SnapshotID: 11, Sequence: 1, FormatVersion: lineage.FormatVersion,
			TableUUID: testTable.UUID, Rows: uint32(b.Records + c.Records), Files: 2, Body: want.Body, Root: want.Root, Lineage: want.Lineage,
			RootInline: want.RootInline, Columns: want.Columns,
		}, info)
		require.True(t, lineage.CheckClaim(info.Claim(), lineage.Options{TableUUID: testTable.UUID, TableLastSequence: 1}).OK())
		paths, sum, err := v.Paths(t.Context(), p[0].At)
		require.NoError(t, err)
		require.Equal(t, []string{b.Path, c.Path}, paths)
		require.Equal(t, want.BodySHA256, sum)
		n := 0
		v.Each(func(ArtifactInfo) bool { n++; return true })
		require.Equal(t, 2, n)
	}
	r = commit(t, o, r.Version, DropIndex(id))
	for _, v := range []*Version{r.Version, fresh(t, o)} {
		require.Empty(t, v.Indexes())
		require.Empty(t, v.Find(a.Path))
		require.Equal(t, []Dropped{{ID: id, Version: 4}}, v.Dropped())
	}
	again := commit(t, o, nil, DropIndex(id))
	require.False(t, again.Changed)
	_, err := o.Commit(t.Context(), nil, DropIndex("nope"))
	require.True(t, fault.Is(err, fault.NotFound), err)
}

func TestUnmountKeepsWhatMountFindsAgain(t *testing.T) {
	o, id := withIndex(t, newMem())
	commit(t, o, nil, Publish(nil, build("b1", artifact(id, 0, fileID(1)))))
	commit(t, o, nil, Unmount())
	_, err := Open(o.store, "o", Options{}).Latest(t.Context())
	require.True(t, fault.Is(err, fault.NotFound), err)
	commit(t, o, nil, Mount(testTable, testUpstream))
	require.Len(t, fresh(t, o).Find(fileID(1).Path), 1)
}

func TestAnotherTableIsRefused(t *testing.T) {
	o := mounted(t, newMem())
	_, err := o.Commit(t.Context(), nil, Mount(Table{UUID: "other", Location: testTable.Location}, testUpstream))
	require.True(t, fault.Is(err, fault.Refused), err)
	r := commit(t, o, nil, Mount(testTable, testUpstream))
	require.False(t, r.Changed)
}

func TestTheHeadFollowsAndDecidesNothing(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	o.Close()
	h, err := o.ReadHead(t.Context())
	require.NoError(t, err)
	require.Equal(t, Head{FormatVersion: 1, OverlayVersion: 2, Table: testTable, Upstream: testUpstream, Mounted: true, Indexes: latest(t, o).Indexes()}, h)
	var names map[string]any // tools read it by these names
	require.NoError(t, json.Unmarshal(read(t, st, "o/detached_catalog.json"), &names))
	for _, name := range []string{
		"format_version", "overlay_version", "table_uuid", "location", "metadata_location", "upstream_snapshot_id", "upstream_schema_id", "last_sync_ms", "mounted", "indexes",
		"artifacts",
	} {
		require.Contains(t, names, name)
	}
	tag := st.Stat(t.Context(), []string{"o/" + HeadName})[0].Tag
	_, err = st.PutIf(t.Context(), "o/"+HeadName, tag, []byte("{damaged"))
	require.NoError(t, err)
	_, err = o.ReadHead(t.Context())
	require.True(t, fault.Is(err, fault.Corrupt), err)
	require.Equal(t, uint64(2), fresh(t, o).Number())
	require.NoError(t, st.Delete(t.Context(), []string{"o/" + HeadName}))
	require.Equal(t, uint64(2), fresh(t, o).Number())
	commit(t, o, nil, DropIndex(id))
	o.Close()
	h, err = o.ReadHead(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(3), h.OverlayVersion)
}

func TestTheHeadListsASmallOverlayAndNeverGrowsLarge(t *testing.T) {
	o, id := withIndex(t, newMem())
	commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1), fileID(2)), artifact(id, 1, fileID(3)))))
	commit(t, o, nil, Publish(nil, build("c", artifact(id, 0, fileID(4)))))
	o.Close()
	h, err := o.ReadHead(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, h.Artifacts)
	require.Equal(t, map[string][]string{
		fileID(1).Path: {"data/b.puffin"}, fileID(2).Path: {"data/b.puffin"}, fileID(3).Path: {"data/b.puffin"}, fileID(4).Path: {"data/c.puffin"},
	}, h.Directory)
	require.Equal(t, testUpstream, h.Upstream)
	big := build("big")
	var changes []Change
	for n := range 900 {
		big.Artifacts = append(big.Artifacts, artifact(id, n, fileID(100+n)))
		changes = append(changes, AddIndex(Definition{Kind: "bloom", FieldIDs: []int{n + 10}, Names: []string{strings.Repeat("long", 30)}}))
	}
	commit(t, o, nil, append(changes, Publish(nil, big))...)
	o.Close()
	require.LessOrEqual(t, len(read(t, o.store, "o/"+HeadName)), maxHead)
	h, err = o.ReadHead(t.Context())
	require.NoError(t, err)
	require.Equal(t, 903, h.Artifacts)
	require.Nil(t, h.Directory)
	require.NotEmpty(t, h.Indexes)
}

func TestStrangeObjectsBesideVersionsAreSkipped(t *testing.T) {
	st := newMem()
	o, _ := withIndex(t, st)
	for _, name := range []string{"!", "0000", "00000000000000000000x", "1844674407370955161", "18446744073709551615", "zz"} {
		_, err := st.PutIf(t.Context(), "o/versions/"+name, "", []byte("x"))
		require.NoError(t, err)
	}
	require.Equal(t, uint64(2), fresh(t, o).Number())
}

func TestInFlightBuildsAreSeenUntilWithdrawn(t *testing.T) {
	o := mounted(t, newMem())
	_, err := o.Declare(t.Context(), InFlight{BuildID: "a/b"})
	require.Error(t, err)
	tag, err := o.Declare(t.Context(), InFlight{BuildID: "b1", StartedMs: 5, Indexes: []string{"i"}})
	require.NoError(t, err)
	_, err = o.Declare(t.Context(), InFlight{BuildID: "b1"})
	require.True(t, fault.Is(err, fault.Conflict))
	_, err = o.store.PutIf(t.Context(), "o/inflight/b2", "", []byte("damaged"))
	require.NoError(t, err)
	list, err := o.InFlight(t.Context())
	require.NoError(t, err)
	for i := range list {
		require.WithinDuration(t, time.Now(), list[i].Renewed, time.Minute)
		list[i].Renewed = time.Time{}
	}
	require.Equal(t, []InFlight{{BuildID: "b1", StartedMs: 5, Indexes: []string{"i"}}, {BuildID: "b2"}}, list)
	renewed, err := o.Renew(t.Context(), list[0], tag)
	require.NoError(t, err)
	require.NotEqual(t, tag, renewed)
	_, err = o.Renew(t.Context(), list[0], tag)
	require.True(t, fault.Is(err, fault.Conflict))
	require.NoError(t, o.Withdraw(t.Context(), "b1"))
	require.NoError(t, o.Withdraw(t.Context(), "b2"))
	list, err = o.InFlight(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

// TestO48CompactionLeavesTheOldIndexBehind: an index of a file says nothing of the file that replaced it, nor of another
// incarnation under the same path.
func TestO48CompactionLeavesTheOldIndexBehind(t *testing.T) {
	o, id := withIndex(t, newMem())
	old := fileID(1)
	v := commit(t, o, nil, Publish(nil, build("b1", artifact(id, 0, old)))).Version
	rewritten := old
	rewritten.Path = "s3://lake/t/data/compacted.parquet"
	require.Empty(t, v.Find(rewritten.Path))
	p := v.Find(old.Path)[0]
	info, _ := v.Artifact(p.At)
	recorded := lineage.File{Path: p.Identity.Path, Size: p.Identity.Size, Records: p.Identity.Records, Tag: string(p.Identity.Tag)}
	now := lineage.Current{File: recorded, FooterRecords: lineage.Unknown}
	options := lineage.Options{TableUUID: testTable.UUID, TableLastSequence: 3}
	require.True(t, lineage.Check(info.Claim(), recorded, now, options).OK())
	now.Tag = `"overwritten in place, with as many rows and bytes"`
	require.Equal(t, lineage.TagMismatch, lineage.Check(info.Claim(), recorded, now, options).Reason)
}

func TestAnUnchangedOverlayIsOneRoundTrip(t *testing.T) {
	st := &requests{Store: newMem()}
	o, _ := withIndex(t, st)
	o.Close()
	st.n.Store(0)
	for range 3 {
		latest(t, o)
	}
	require.Equal(t, int64(2*3), st.n.Load())
	commit(t, other(o), nil, AddIndex(definition("zonemap", 4)))
	require.Len(t, latest(t, o).Indexes(), 2)
}

func TestAnOverlayThatIsDeletedIsNotRemembered(t *testing.T) {
	st := newMem()
	o, _ := withIndex(t, st)
	o.Close()
	require.NoError(t, st.Delete(t.Context(), keys(t, st, "o/")))
	_, err := o.Latest(t.Context())
	require.True(t, fault.Is(err, fault.NotFound), err)
	commit(t, o, nil, Mount(testTable, testUpstream))
	require.Equal(t, uint64(1), latest(t, o).Number())
	require.Equal(t, uint64(1), fresh(t, o).Number())
	require.Empty(t, latest(t, o).Indexes())
	require.Equal(t, uint64(2), commit(t, o, latest(t, o), AddIndex(definition("bloom", 3))).Version.Number())
}

// requests counts what is asked of a store.
type requests struct {
	store.Store
	n atomic.Int64
}

func (r *requests) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	r.n.Add(int64(len(reads)))
	return r.Store.Fetch(ctx, reads)
}

func (r *requests) Stat(ctx context.Context, keys []string) []store.Info {
	r.n.Add(int64(len(keys)))
	return r.Store.Stat(ctx, keys)
}

func (r *requests) List(ctx context.Context, prefix, after string, n int) ([]store.Info, error) {
	r.n.Add(1)
	return r.Store.List(ctx, prefix, after, n)
}
