package overlay

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
)

// puts counts what is written to a store.
type puts struct {
	store.Store
	n     int
	bytes int64
}

func (p *puts) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	p.n++
	p.bytes += size
	return p.Store.PutNew(ctx, key, r)
}

// TestManyCommitsStayFewChunks publishes in small and large builds, drops and replaces, and compares everything found with a map.
func TestManyCommitsStayFewChunks(t *testing.T) {
	r, _ := seeded(t)
	st := &puts{Store: mem.New()}
	o, id := withIndex(t, st)
	second := commit(t, o, nil, AddIndex(definition("zonemap", 3))).Indexes[0]
	want := map[string]string{} // path → build, of index id
	next := 0
	for n := range 120 {
		var list []Artifact
		b := fmt.Sprintf("b%03d", n)
		for i := range 1 + r.IntN(150) {
			list = append(list, artifact(id, 2*i, fileID(next)), artifact(second, 2*i+1, fileID(next)))
			want[fileID(next).Path] = b
			next++
		}
		st.n, st.bytes = 0, 0
		rc := commit(t, o, nil, Publish(nil, build(b, list...)))
		require.Empty(t, rc.Discarded)
		require.LessOrEqual(t, st.n, 2)
		require.LessOrEqual(t, st.bytes, int64(1<<20))
		if n%10 == 9 {
			_, err := o.Compact(t.Context())
			require.NoError(t, err)
		}
	}
	commit(t, o, nil, DropIndex(second))
	_, err := o.Compact(t.Context())
	require.NoError(t, err)
	for _, v := range []*Version{latest(t, o), fresh(t, o)} {
		require.LessOrEqual(t, len(v.body.chunks), 24)
		for i := range next {
			f := fileID(i)
			p := v.Find(f.Path)
			require.Len(t, p, 1, f.Path)
			info, ok := v.Artifact(p[0].At)
			require.True(t, ok)
			require.Equal(t, want[f.Path], info.BuildID)
			require.Equal(t, f, p[0].Identity)
		}
	}
}

func TestAMergeForgetsWhatIsDead(t *testing.T) {
	o, id := withIndex(t, newMem())
	var list []Artifact
	for i := range 50 {
		list = append(list, artifact(id, i, fileID(i)))
	}
	v := commit(t, o, nil, Publish(nil, build("b1", list...))).Version
	a := artifact(id, 0, fileID(100))
	v.Each(func(i ArtifactInfo) bool { a.Replaces = append(a.Replaces, i.Key()); return len(a.Replaces) < 20 })
	v = commit(t, o, nil, Publish(nil, build("b2", a))).Version
	require.Len(t, v.body.chunks, 1)
	require.Equal(t, 31, v.body.chunks[0].artifacts)
	v = commit(t, o, nil, DropIndex(id)).Version
	require.Empty(t, v.body.chunks, "a chunk in which nothing speaks is let go")
}

func TestACommitOnAnOldVersionOfTheSameProcessWritesOnce(t *testing.T) {
	st := &puts{Store: mem.New()}
	o, id := withIndex(t, st)
	base := latest(t, o)
	for i := range 5 {
		st.n = 0
		commit(t, o, base, Publish(nil, build(fmt.Sprint("b", i), artifact(id, 0, fileID(i)))))
		require.Equal(t, 2, st.n)
	}
}

func TestTheEndOfASyncMerges(t *testing.T) {
	o, id := withIndex(t, newMem())
	next := 0
	for n := range usualSizes.fanOut {
		var list []Artifact
		for i := range 600 {
			list = append(list, artifact(id, i, fileID(next)))
			next++
		}
		commit(t, o, nil, Publish(nil, build(fmt.Sprint("b", n), list...)))
	}
	require.Len(t, latest(t, o).body.chunks, usualSizes.fanOut)
	up := testUpstream
	up.SnapshotID++
	commit(t, o, nil, Synced(up))
	v := fresh(t, o)
	require.Len(t, v.body.chunks, 1)
	for i := range next {
		require.Len(t, v.Find(fileID(i).Path), 1)
	}
}
