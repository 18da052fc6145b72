package overlay

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestU71: a merge of artifacts that was under way when its index was dropped does not bring the index back, nor when an equal one is
// added again, nor when a damaged version is recovered from.
func TestU71DropWinsAgainstWorkInFlight(t *testing.T) {
	o, id := withIndex(t, newMem())
	a, b := fileID(1), fileID(2)
	base := commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, a), artifact(id, 1, b))), Derive([]Derived{derivedOf("run", "1", id, 1)}, nil)).Version
	merged := artifact(id, 0, a, b)
	base.Each(func(i ArtifactInfo) bool { merged.Replaces = append(merged.Replaces, i.Key()); return true })
	run := derivedOf("run", "2", id, 2)
	commit(t, other(o), nil, DropIndex(id))
	again := commit(t, other(o), nil, AddIndex(definition("bloom", 3))).Indexes[0]
	r := commit(t, o, base, Publish(nil, build("m", merged)), ReplaceDerived([]Derived{run}, base.Derived("run")))
	require.Equal(t, "index dropped", r.Discarded[0].Reason)
	require.Equal(t, []DerivedKey{run.Is()}, r.Unfit)
	v := fresh(t, o)
	require.Empty(t, v.Find(a.Path))
	require.Empty(t, v.Derived("run"))
	require.Len(t, v.Indexes(), 1)
	require.Equal(t, again, v.Indexes()[0].ID)
	require.NotEqual(t, id, again)
	_, err := o.Compact(t.Context())
	require.NoError(t, err)
	require.Empty(t, fresh(t, o).Find(a.Path))
}

// TestU72: many processes that declare the same index at once declare one, and one drop ends it.
func TestU72AnIndexIsDeclaredOnce(t *testing.T) {
	o := mounted(t, newMem())
	base := latest(t, o)
	ids := make([]string, 12)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			p := other(o)
			defer p.Close()
			if r, err := p.Commit(context.Background(), base, AddIndex(definition("ordered", 3))); err == nil {
				ids[i] = r.Indexes[0]
			} else {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	v := fresh(t, o)
	require.Len(t, v.Indexes(), 1)
	for _, id := range ids {
		require.Equal(t, v.Indexes()[0].ID, id)
	}
	require.Equal(t, uint64(2), v.Number(), "and one commit was made")
	require.Empty(t, commit(t, o, nil, DropIndex(ids[0])).Version.Indexes())
}

// TestU73: a build that meets a compaction is no error: it is told what it lost, and what is built on the newest version then is
// published.
func TestU73ABuildThatLostIsToldWhatToDo(t *testing.T) {
	o, id := withIndex(t, newMem())
	a, b := fileID(1), fileID(2)
	base := commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, a), artifact(id, 1, b)))).Version
	reindexed := func(v *Version) Artifact {
		n := artifact(id, 0, a)
		n.Replaces = []Key{mustKey(t, v, a)}
		return n
	}
	mine := reindexed(base)
	both := artifact(id, 0, a, b)
	both.Replaces = []Key{mustKey(t, base, a), mustKey(t, base, b)}
	commit(t, other(o), nil, Publish(nil, build("compaction", both)))
	r := commit(t, o, base, Publish(nil, build("reindex", mine)))
	require.Equal(t, "replaced artifact is gone", r.Discarded[0].Reason)
	now := fresh(t, o)
	require.Len(t, now.Find(a.Path), 1)
	require.Empty(t, commit(t, o, now, Publish(nil, build("again", reindexed(now)))).Discarded)
	require.Len(t, fresh(t, o).Find(a.Path), 1)
}

func mustKey(t *testing.T, v *Version, f Identity) Key {
	t.Helper()
	found := v.Find(f.Path)
	require.Len(t, found, 1)
	info := mustArtifact(t, v, found[0])
	return info.Key()
}

// TestU74: an index that was built while the table was compacted is checked against the table as it is at its commit, not as it was when
// the build began.
func TestU74IdentityIsCheckedAtCommit(t *testing.T) {
	o, id := withIndex(t, newMem())
	base := latest(t, o)
	old, kept := fileID(1), fileID(2)
	for n := range 3 { // the table moves again and again
		moved := testUpstream
		moved.SnapshotID, moved.LastUpdatedMs = int64(20+n), int64(3000+n)
		commit(t, other(o), nil, Synced(moved))
	}
	var asked Upstream
	confirm := func(_ context.Context, now Upstream, files []Identity) ([]bool, error) {
		asked = now
		out := make([]bool, len(files))
		for i, f := range files {
			out[i] = f == kept
		}
		return out, nil
	}
	r := commit(t, o, base, Publish(confirm, build("b", artifact(id, 0, old), artifact(id, 1, kept))))
	require.Equal(t, int64(22), asked.SnapshotID)
	require.Equal(t, []Discarded{{"b", 0, id, "files left the table"}}, r.Discarded)
	require.Empty(t, fresh(t, o).Find(old.Path))
	require.Len(t, fresh(t, o).Find(kept.Path), 1)
}
