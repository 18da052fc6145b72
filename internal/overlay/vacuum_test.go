package overlay

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
)

func TestARevokedBuildIsNeverPublished(t *testing.T) {
	o, id := withIndex(t, newMem())
	base := latest(t, o)
	v := commit(t, other(o), nil, End(Ends{Builds: []string{"dead"}})).Version
	require.True(t, v.Revoked("dead"))
	run := derivedOf("run", "1", "", 1)
	run.Build = "dead"
	r := commit(t, o, base, Publish(nil, build("dead", artifact(id, 0, fileID(1))), build("alive", artifact(id, 0, fileID(2)))), Derive([]Derived{run}, nil))
	require.Equal(t, []Discarded{{"dead", 0, id, "build revoked"}}, r.Discarded)
	require.Equal(t, []DerivedKey{run.Is()}, r.Unfit)
	got := fresh(t, o)
	require.Empty(t, got.Find(fileID(1).Path))
	require.Len(t, got.Find(fileID(2).Path), 1)
	run.Build = "alive"
	require.Empty(t, commit(t, o, nil, Derive([]Derived{run}, nil)).Unfit)
	require.Empty(t, fresh(t, o).Derived("run")[0].Build)
}

func TestRevocationsAreForgottenAfterAMonthAndNotBefore(t *testing.T) {
	now := int64(1_000_000)
	o := Open(newMem(), "o", Options{Now: func() int64 { return now }})
	commit(t, o, nil, Mount(testTable, testUpstream))
	commit(t, o, nil, End(Ends{Builds: []string{"a"}}))
	now += revokedMs
	require.True(t, commit(t, o, nil, End(Ends{Builds: []string{"b"}})).Version.Revoked("a"))
	now++
	v := commit(t, o, nil, End(Ends{})).Version
	require.False(t, v.Revoked("a"))
	require.True(t, v.Revoked("b"))
}

// TestChunksAreWrittenAnewAfterAVacuum: what an attempt wrote before a vacuum's commit may be gone when the next attempt needs it.
func TestChunksAreWrittenAnewAfterAVacuum(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	base := latest(t, o)
	commit(t, other(o), nil, Publish(nil, build("x", artifact(id, 0, fileID(3)))))
	puts, change := o.newPuts("c"), []Change{Publish(nil, build("b", artifact(id, 0, fileID(1))))}
	before := keys(t, st, "o/chunks/")
	_, err := o.attempt(t.Context(), base, base, puts, change)
	require.True(t, fault.Is(err, fault.Conflict), err)
	v := commit(t, other(o), nil, End(Ends{})).Version
	for _, key := range keys(t, st, "o/chunks/") {
		if !slices.Contains(before, key) {
			require.NoError(t, st.Delete(t.Context(), []string{key})) // no version names it
		}
	}
	r, err := o.attempt(t.Context(), base, v, puts, change)
	require.NoError(t, err)
	require.Len(t, r.Version.Find(fileID(1).Path), 1)
	require.Len(t, fresh(t, o).Find(fileID(1).Path), 1, "the chunk is there")
	require.Empty(t, fresh(t, o).Warnings())
}

func TestExpiredVersionsAreNoTargetOfARollback(t *testing.T) {
	o, id := withIndex(t, newMem())
	two := commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1))))).Version
	commit(t, o, nil, Publish(nil, build("c", artifact(id, 0, fileID(2)))))
	dropped := commit(t, o, nil, DropIndex(id)).Version
	r := commit(t, o, nil, Rollback(two))
	for _, v := range []*Version{r.Version, fresh(t, o)} {
		require.Equal(t, dropped.Number()+1, v.Number())
		require.Len(t, v.Find(fileID(1).Path), 1)
		require.Empty(t, v.Find(fileID(2).Path))
		require.Empty(t, v.Dropped())
		require.Len(t, v.Indexes(), 1)
	}
	one, err := o.At(t.Context(), 2)
	require.NoError(t, err)
	r = commit(t, o, nil, Rollback(one))
	require.Empty(t, r.Version.Find(fileID(1).Path))
	commit(t, o, nil, Rollback(dropped))
	require.Equal(t, id, fresh(t, o).Dropped()[0].ID)
	require.Empty(t, fresh(t, o).Indexes())

	base := latest(t, o)
	v := commit(t, other(o), nil, End(Ends{Oldest: dropped.Number()})).Version
	require.Equal(t, dropped.Number(), v.Oldest())
	_, err = o.Commit(t.Context(), base, Rollback(two))
	require.True(t, fault.Is(err, fault.NotFound), err)
	require.ErrorContains(t, err, "expired")
	_, err = other(o).At(t.Context(), two.Number())
	require.True(t, fault.Is(err, fault.NotFound), err)
	require.Equal(t, dropped.Number(), commit(t, o, nil, End(Ends{Oldest: 1})).Version.Oldest(), "never moved back")
}

func TestAPurgedIndexStaysDroppedAfterARollback(t *testing.T) {
	o, id := withIndex(t, newMem())
	keep := commit(t, o, nil, AddIndex(definition("zonemap", 3))).Indexes[0]
	two := commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1)), artifact(keep, 1, fileID(1))))).Version
	commit(t, o, nil, DropIndex(id), DropIndex(keep), End(Ends{Purged: []string{id}}))
	v := commit(t, o, nil, Rollback(two)).Version
	require.Len(t, v.Indexes(), 1)
	require.Equal(t, keep, v.Indexes()[0].ID)
	require.Len(t, v.Find(fileID(1).Path), 1)
}

func TestAnIndexInQuarantineIsSilentAndKept(t *testing.T) {
	o, id := withIndex(t, newMem())
	keep := commit(t, o, nil, AddIndex(definition("zonemap", 3))).Indexes[0]
	commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1)), artifact(keep, 1, fileID(1)))), Derive([]Derived{derivedOf("run", "1", id, 1)}, nil))
	r := commit(t, o, nil, Quarantine(id, "an answer differed"))
	require.False(t, commit(t, o, nil, Quarantine(id, "again")).Changed)
	for _, v := range []*Version{r.Version, fresh(t, o)} {
		found := v.Find(fileID(1).Path)
		require.Len(t, found, 1)
		require.Equal(t, keep, found[0].IndexID)
		require.Empty(t, v.Derived("run"))
		q, ok := v.Quarantined(id)
		require.True(t, ok)
		require.Equal(t, "an answer differed", q.Reason)
	}
	again := commit(t, o, nil, Publish(nil, build("c", artifact(id, 0, fileID(1)))))
	require.Equal(t, "file already indexed", again.Discarded[0].Reason, "it is silent, not gone")
	v := commit(t, o, nil, Release(id)).Version
	require.Len(t, v.Find(fileID(1).Path), 2)
	require.Len(t, v.Derived("run"), 1)
	commit(t, o, nil, Quarantine(id, "x"))
	_, ok := commit(t, o, nil, DropIndex(id)).Version.Quarantined(id)
	require.False(t, ok)
	_, err := o.Commit(t.Context(), nil, Quarantine(id, "x"))
	require.True(t, fault.Is(err, fault.NotFound), err)
}

func TestErasureWinsAgainstEverything(t *testing.T) {
	o, id := withIndex(t, newMem())
	keep := commit(t, o, nil, AddIndex(definition("zonemap", 3))).Indexes[0]
	f, g := fileID(1), fileID(2)
	run, other1 := derivedOf("run", "1", id, 1), derivedOf("run", "2", id, 2)
	run.Made = []string{f.Path}
	base := commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, f, g), artifact(id, 1, fileID(3)))), Derive([]Derived{run, other1}, nil)).Version
	r := commit(t, other(o), nil, Erase([]Identity{f}, nil))
	for _, v := range []*Version{r.Version, fresh(t, o)} {
		require.Empty(t, v.Find(f.Path))
		require.Empty(t, v.Find(g.Path), "the segment is gone as a whole")
		require.Len(t, v.Find(fileID(3).Path), 1)
		require.Equal(t, []Derived{other1}, v.Derived("run"))
		require.True(t, v.Erased(f))
		require.False(t, v.Erased(g))
	}
	touched := f
	touched.Tag = "copied"
	for _, again := range []Identity{f, touched} {
		lost := commit(t, o, base, Publish(nil, build("c"+string(again.Tag), artifact(keep, 0, again))))
		require.Equal(t, "file erased", lost.Discarded[0].Reason)
	}
	clean := artifact(id, 0, f)
	clean.WithoutDeleted = true
	require.Empty(t, commit(t, o, nil, Publish(nil, build("d", clean))).Discarded)
	_, err := o.Commit(t.Context(), nil, Rollback(base))
	require.True(t, fault.Is(err, fault.Refused), err)
}

func TestARepairGoesOnWhereTheRejectedArtifactIsGone(t *testing.T) {
	o, id := withIndex(t, newMem())
	old := fileID(1)
	now := old
	now.Tag = "rewritten"
	base := commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, old)))).Version
	info := mustArtifact(t, base, base.Find(old.Path)[0])
	commit(t, other(o), nil, Retire(info.Key()))
	a := artifact(id, 0, now)
	a.Replaces = []Key{info.Key()}
	require.Len(t, commit(t, o, base, Publish(nil, build("c", a))).Discarded, 1)
	asked := 0
	yes := func(_ context.Context, _ Upstream, files []Identity) ([]bool, error) {
		asked++
		return make([]bool, len(files)), nil
	}
	r := commit(t, o, base, Repair(yes, build("c", a)))
	require.Equal(t, "files left the table", r.Discarded[0].Reason)
	require.Equal(t, 1, asked, "identity is checked again although the table did not move")
	require.Empty(t, commit(t, o, base, Repair(nil, build("c", a))).Discarded)
	b := artifact(id, 0, now)
	require.Equal(t, "file already indexed", commit(t, o, base, Repair(nil, build("e", b))).Discarded[0].Reason)
}

func TestStubsKeepTheNamesOfVersions(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	three := commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1))))).Version
	newest := commit(t, o, nil, End(Ends{Oldest: 3})).Version
	all, err := o.Versions(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 4)
	for _, at := range all {
		done, err := o.Expire(t.Context(), newest, at)
		require.Equal(t, at.Number < 3, done)
		require.Equal(t, at.Number >= 3, fault.Is(err, fault.Refused))
	}
	again, err := o.Versions(t.Context())
	require.NoError(t, err)
	require.Len(t, again, 4)
	done, err := o.Expire(t.Context(), newest, again[3])
	require.NoError(t, err)
	require.False(t, done)
	_, err = Open(st, "o", Options{}).load(t.Context(), 1)
	require.ErrorContains(t, err, "the oldest that is kept is 3")
	require.Equal(t, three.Find(fileID(1).Path)[0].Identity, fresh(t, o).Find(fileID(1).Path)[0].Identity)

	replace(t, st, "o/versions/"+versionName(4), (&stub{number: 4, oldest: 3}).encode())
	v := latest(t, other(o))
	require.True(t, fault.Is(v.Broken(), fault.Corrupt), v.Broken())
	_, err = other(o).Recover(t.Context())
	require.NoError(t, fault.Wrap(fault.ClassOf(err), "", err), "the version before is readable")
	require.Len(t, fresh(t, o).Find(fileID(1).Path), 1)
}

func TestNamesAreThoseOfEveryRetainedVersion(t *testing.T) {
	o, id := withIndex(t, newMem())
	keep := commit(t, o, nil, AddIndex(definition("zonemap", 3))).Indexes[0]
	v := commit(t, o, nil, Publish(nil, build("a", artifact(id, 0, fileID(1)))), Derive([]Derived{derivedOf("run", "1", id, 1), derivedOf("facts", "m", "", 2)}, nil)).Version
	commit(t, o, nil, Publish(nil, build("b", artifact(keep, 0, fileID(1)), artifact(id, 1, fileID(2)))))
	commit(t, o, nil, Publish(nil, build("c", artifact(id, 0, fileID(3)))))
	commit(t, o, nil, Retire(Key{"o/data/c.puffin", 3000}), Quarantine(id, "x"))
	newest := commit(t, o, nil, DropIndex(id)).Version
	names := func(from uint64) *Names {
		all, err := o.Versions(t.Context())
		require.NoError(t, err)
		all = slices.DeleteFunc(all, func(at Object) bool { return at.Number < from })
		n, err := other(o).Names(t.Context(), all, nil, newest.Purged())
		require.NoError(t, err)
		require.Empty(t, n.Damaged)
		return n
	}
	require.Equal(t, map[string]bool{"o/data/b.puffin": true}, names(newest.Number()).Bundles)
	require.Equal(t, map[string]bool{"o/facts/2": true}, names(newest.Number()).Derived)
	require.Equal(t, map[string]bool{"o/data/a.puffin": true, "o/data/b.puffin": true}, names(newest.Number()-1).Bundles)
	require.Equal(t, map[string]bool{"o/data/a.puffin": true, "o/data/b.puffin": true, "o/data/c.puffin": true}, names(v.Number()).Bundles)
	require.Equal(t, map[string]bool{"o/facts/2": true, "o/run/1": true}, names(v.Number()).Derived)
	newest = commit(t, o, nil, End(Ends{Purged: []string{id}})).Version
	require.Equal(t, map[string]bool{"o/data/b.puffin": true}, names(1).Bundles)
	require.Equal(t, map[string]bool{"o/facts/2": true}, names(1).Derived)
	require.Subset(t, keys(t, o.store, "o/chunks/"), slices.Collect(maps.Keys(names(1).Chunks)))
}
