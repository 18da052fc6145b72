package overlay

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
)

// other is a second process on the same overlay.
func other(o *Overlay) *Overlay {
	p := Open(o.store, o.prefix, o.opts)
	p.marked = 0 // no erasure is under way beside a test that does not say so
	return p
}

func TestBuildAgainstDropDropWins(t *testing.T) {
	o, id := withIndex(t, newMem())
	base := latest(t, o)
	commit(t, other(o), nil, DropIndex(id))
	r := commit(t, o, base, Publish(nil, build("b", artifact(id, 0, fileID(1)))))
	require.False(t, r.Changed)
	require.Equal(t, []Discarded{{"b", 0, id, "index dropped"}}, r.Discarded)
	again := commit(t, o, nil, AddIndex(definition("bloom", 3)))
	require.NotEqual(t, id, again.Indexes[0], "a dropped index must not come back under its id")
	require.Empty(t, fresh(t, o).Find(fileID(1).Path))
	_, err := o.Commit(t.Context(), nil, AddIndex(Definition{ID: id, Kind: "bloom", FieldIDs: []int{9}}))
	require.True(t, fault.Is(err, fault.Invalid), err)
}

func TestABuildOfADroppedIndexStaysSilentAfterItIsAddedAgain(t *testing.T) {
	o, id := withIndex(t, newMem())
	commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1)))))
	r := commit(t, o, nil, DropIndex(id), AddIndex(definition("bloom", 3)))
	require.NotEqual(t, id, r.Indexes[0])
	require.Empty(t, r.Version.Find(fileID(1).Path))
	require.Empty(t, fresh(t, o).Find(fileID(1).Path))
}

func TestAddAgainstAddIsOneIndex(t *testing.T) {
	o := mounted(t, newMem())
	base := latest(t, o)
	a := commit(t, other(o), base, AddIndex(definition("bloom", 3)))
	b := commit(t, o, base, AddIndex(definition("bloom", 3)), AddIndex(definition("zonemap", 3)))
	require.Equal(t, a.Indexes[0], b.Indexes[0])
	require.Len(t, b.Version.Indexes(), 2)
	c := commit(t, o, base, AddIndex(definition("bloom", 3)))
	require.False(t, c.Changed)
	require.Equal(t, a.Indexes, c.Indexes)
	later := commit(t, o, nil, AddIndex(Definition{Kind: "bloom", KindVersion: 2, FieldIDs: []int{3}}))
	require.Equal(t, a.Indexes, later.Indexes, "whatever the version of its kind")
	for _, d := range []Definition{
		{Kind: "bloom", KindVersion: 1, FieldIDs: []int{3, 4}},
		{Kind: "bloom", KindVersion: 1, FieldIDs: []int{3}, Params: map[string]string{"fpp": "0.1"}},
	} {
		require.NotEqual(t, a.Indexes[0], commit(t, o, nil, AddIndex(d)).Indexes[0])
	}
}

func TestBuildAgainstSyncAsksAboutTheFiles(t *testing.T) {
	o, id := withIndex(t, newMem())
	base := latest(t, o)
	moved := testUpstream
	moved.SnapshotID, moved.LastUpdatedMs = 12, 2000
	commit(t, other(o), base, Synced(moved))
	gone, kept, half := fileID(1), fileID(2), fileID(3)
	asked := 0
	confirm := func(_ context.Context, now Upstream, files []Identity) ([]bool, error) {
		asked++
		require.Equal(t, moved, now)
		out := make([]bool, len(files))
		for i, f := range files {
			out[i] = f != gone
		}
		return out, nil
	}
	r := commit(t, o, base, Publish(confirm, build("b", artifact(id, 0, gone), artifact(id, 1, kept), artifact(id, 2, half, fileID(4)))))
	require.Equal(t, 1, asked)
	require.Equal(t, []Discarded{{"b", 0, id, "files left the table"}}, r.Discarded)
	require.Empty(t, r.Version.Find(gone.Path))
	require.Len(t, r.Version.Find(kept.Path), 1)
	require.Equal(t, moved, r.Version.Upstream())
	commit(t, o, r.Version, Publish(confirm, build("c", artifact(id, 0, fileID(9)))))
	require.Equal(t, 1, asked, "the table did not move")
}

func TestSyncAgainstSyncKeepsTheLaterMetadata(t *testing.T) {
	o, _ := withIndex(t, newMem())
	base := latest(t, o)
	newer, older := testUpstream, testUpstream
	newer.SnapshotID, newer.LastUpdatedMs = 13, 3000
	older.SnapshotID, older.LastUpdatedMs = 12, 2000
	commit(t, other(o), base, Synced(newer))
	r := commit(t, o, base, Synced(older))
	require.False(t, r.Changed)
	require.Equal(t, newer, r.Version.Upstream())
	r = commit(t, o, r.Version, Synced(older))
	require.Equal(t, older, r.Version.Upstream(), "a table that was rolled back is followed")
}

func TestOneArtifactPerIncarnation(t *testing.T) {
	o, id := withIndex(t, newMem())
	base := latest(t, o)
	f := fileID(1)
	commit(t, other(o), base, Publish(nil, build("first", artifact(id, 0, f))))
	r := commit(t, o, base, Publish(nil, build("second", artifact(id, 0, f), artifact(id, 1, fileID(2), f), artifact(id, 2, fileID(3)), artifact(id, 3, fileID(3)))))
	require.Equal(t, []Discarded{{"second", 0, id, "file already indexed"}, {"second", 1, id, "file already indexed"}, {"second", 3, id, "file already indexed"}}, r.Discarded)
	p := r.Version.Find(f.Path)
	require.Len(t, p, 1)
	info, _ := r.Version.Artifact(p[0].At)
	require.Equal(t, "first", info.BuildID)
	require.Empty(t, r.Version.Find(fileID(2).Path))
}

func TestAnOverwrittenFileIsAnotherIncarnation(t *testing.T) {
	o, id := withIndex(t, newMem())
	old := fileID(1)
	now := old
	now.Tag = `"other"`
	r := commit(t, o, nil, Publish(nil, build("b1", artifact(id, 0, old))))
	r2 := commit(t, o, nil, Publish(nil, build("b2", artifact(id, 0, now))))
	require.Empty(t, r2.Discarded)
	require.Len(t, r2.Version.Find(old.Path), 2, "both are found, and the lineage check tells them apart")
	info, _ := r.Version.Artifact(r.Version.Find(old.Path)[0].At)
	a := artifact(id, 0, fileID(2))
	a.Replaces = []Key{info.Key()}
	r3 := commit(t, o, nil, Publish(nil, build("b3", a)))
	require.Empty(t, r3.Discarded)
	left := r3.Version.Find(old.Path)
	require.Len(t, left, 1)
	require.Equal(t, now, left[0].Identity)
	require.Len(t, fresh(t, o).Find(old.Path), 1)
}

func TestTheFirstReplacementWins(t *testing.T) {
	o, id := withIndex(t, newMem())
	a, b := fileID(1), fileID(2)
	base := commit(t, o, nil, Publish(nil, build("b1", artifact(id, 0, a), artifact(id, 1, b)))).Version
	var keys []Key
	base.Each(func(i ArtifactInfo) bool { keys = append(keys, i.Key()); return true })
	require.Len(t, keys, 2)
	merged := func() Artifact {
		m := artifact(id, 0, a, b)
		m.Replaces = keys
		return m
	}
	commit(t, other(o), base, Publish(nil, build("m1", merged())))
	r := commit(t, o, base, Publish(nil, build("m2", merged())))
	require.Equal(t, []Discarded{{"m2", 0, id, "replaced artifact is gone"}}, r.Discarded)
	p := r.Version.Find(b.Path)
	require.Len(t, p, 1)
	require.Equal(t, uint32(a.Records), p[0].First)
	info, _ := r.Version.Artifact(p[0].At)
	require.Equal(t, "m1", info.BuildID)
}

func TestNonsenseIsRefused(t *testing.T) {
	o, id := withIndex(t, newMem())
	mk := func(change func(b *Build, a *Artifact)) Build {
		b := build("b", artifact(id, 0, fileID(1)))
		change(&b, &b.Artifacts[0])
		return b
	}
	big := fileID(2)
	big.Records = 1<<32 - 5
	cases := map[string]Build{
		"no files":         mk(func(_ *Build, a *Artifact) { a.Files = nil }),
		"no bundle":        mk(func(b *Build, _ *Artifact) { b.Bundle = "" }),
		"too many rows":    mk(func(_ *Build, a *Artifact) { a.Files = append(a.Files, big) }),
		"file twice":       mk(func(_ *Build, a *Artifact) { a.Files = append(a.Files, a.Files[0]) }),
		"negative offset":  mk(func(_ *Build, a *Artifact) { a.Body.Off = -1 }),
		"overflow":         mk(func(_ *Build, a *Artifact) { a.Body.Off, a.Body.Len = 1<<62, 1<<62 }),
		"another root":     mk(func(_ *Build, a *Artifact) { a.RootInline = []byte("x") }),
		"no lineage":       mk(func(_ *Build, a *Artifact) { a.Lineage.Len = 0 }),
		"negative records": mk(func(_ *Build, a *Artifact) { a.Files[0].Records = -1 }),
		"lineage twice": mk(func(b *Build, _ *Artifact) {
			second := artifact(id, 0, fileID(5))
			b.Artifacts = append(b.Artifacts, second)
		}),
	}
	for name, b := range cases {
		_, err := o.Commit(t.Context(), nil, Publish(nil, b))
		require.True(t, fault.Is(err, fault.Invalid), "%s: %v", name, err)
	}
	_, err := o.Commit(t.Context(), nil, Publish(nil, mk(func(*Build, *Artifact) {}), mk(func(b *Build, a *Artifact) { b.ID, a.Files = "c", []Identity{fileID(7)} })))
	require.ErrorContains(t, err, "two builds")
	require.Equal(t, uint64(2), fresh(t, o).Number())
}
