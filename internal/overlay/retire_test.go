package overlay

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRetire: a retired artifact does not speak, in this version and after reading it again; the others do. Retiring twice commits once.
func TestRetire(t *testing.T) {
	o, x := withIndex(t, newMem())
	r := commit(t, o, nil, Publish(nil, build("b1", artifact(x, 0, fileID(0)), artifact(x, 1, fileID(1)))))
	found := r.Version.Find(fileID(0).Path)
	require.Len(t, found, 1)
	info := mustArtifact(t, r.Version, found[0])
	r = commit(t, o, nil, Retire(info.Key(), Key{"none", 1}))
	require.True(t, r.Changed)
	for _, v := range []*Version{r.Version, fresh(t, o)} {
		require.Empty(t, v.Find(fileID(0).Path))
		require.Len(t, v.Find(fileID(1).Path), 1)
	}
	require.False(t, commit(t, o, nil, Retire(info.Key())).Changed)
	r = commit(t, o, nil, Publish(nil, build("b2", artifact(x, 0, fileID(0)))))
	require.Empty(t, r.Discarded)
	require.Len(t, r.Version.Find(fileID(0).Path), 1)
}

// TestRestamp: a stamped artifact speaks under the new tag alone and keeps everything else; a stamp for another tag does nothing; where
// the file is covered under its new tag already, one artifact is left.
func TestRestamp(t *testing.T) {
	o, x := withIndex(t, newMem())
	a, b, c := fileID(0), fileID(1), fileID(2)
	r := commit(t, o, nil, Publish(nil, build("b1", artifact(x, 0, a, b), artifact(x, 1, c))))
	before := r.Version.Find(b.Path)[0]
	info := mustArtifact(t, r.Version, before)
	require.False(t, commit(t, o, nil, Restamp(Stamp{info.Key(), b.Path, "other", "new"})).Changed)
	r = commit(t, o, nil, Restamp(Stamp{info.Key(), b.Path, b.Tag, "new"}))
	for _, v := range []*Version{r.Version, fresh(t, o)} {
		found := v.Find(b.Path)
		require.Len(t, found, 1)
		require.Equal(t, "new", string(found[0].Identity.Tag))
		require.Equal(t, before.First, found[0].First)
		now := mustArtifact(t, v, found[0])
		now.At = info.At
		require.Equal(t, info, now)
		require.Equal(t, a.Tag, v.Find(a.Path)[0].Identity.Tag)
		require.Len(t, v.Find(c.Path), 1)
		paths, sum, err := v.Paths(t.Context(), found[0].At)
		require.NoError(t, err)
		require.Equal(t, []string{a.Path, b.Path}, paths)
		require.Equal(t, [32]byte{0, 1}, sum)
	}
	newest := b
	newest.Tag = "newest"
	commit(t, o, nil, Publish(nil, build("b2", artifact(x, 0, newest))))
	r = commit(t, o, nil, Restamp(Stamp{info.Key(), b.Path, "new", "newest"}))
	found := r.Version.Find(b.Path)
	require.Len(t, found, 1)
	require.Equal(t, "b2", mustArtifact(t, r.Version, found[0]).BuildID)
	require.Empty(t, r.Version.Find(a.Path))
}

func mustArtifact(t *testing.T, v *Version, p Placement) ArtifactInfo {
	t.Helper()
	a, ok := v.Artifact(p.At)
	require.True(t, ok)
	return a
}
