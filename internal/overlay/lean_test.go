package overlay

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLeanVersionsFindWhatWholeOnesDo publishes at random, each time as a process that knows nothing and reads no list that it does not need, and
// compares with an overlay whose committers read all: what is found of any file, the lists, and what the roll tells.
func TestLeanVersionsFindWhatWholeOnesDo(t *testing.T) {
	rng, _ := seeded(t)
	lean, whole := newMem(), newMem()
	commits := func(o *Overlay, c func(index string) []Change) {
		o = Open(o.store, o.prefix, Options{WholeUpTo: -1})
		defer o.Close()
		v, err := o.Lean(t.Context())
		require.NoError(t, err)
		_, err = o.Commit(t.Context(), v, c(v.Indexes()[0].ID)...)
		require.NoError(t, err)
	}
	a, _ := withIndex(t, lean)
	b, index := withIndex(t, whole)
	a.Close()
	next := 0
	for step := range 30 {
		n := 1 + rng.IntN(400)
		from := max(0, next-rng.IntN(3)*rng.IntN(20)) // some files are there already
		publish := func(index string) []Change {
			var all []Artifact
			for k := range n {
				all = append(all, artifact(index, k, fileID(from+k)))
			}
			u := testUpstream
			u.SequenceNumber = int64(step + 2)
			return []Change{Publish(nil, build(string(rune('a'+step%26))+string(rune('a'+step/26)), all...)), Synced(u)}
		}
		next = max(next, from+n)
		commits(a, publish)
		commit(t, b, nil, publish(index)...)
		want := latest(t, b)
		require.Equal(t, sizesOf(want), sizesOf(fresh(t, a)), "step %d", step)
		if step%10 == 9 {
			compareLean(t, a, want, next, rng.IntN(1000))
		}
	}
}

// sizesOf is the lists of a version without their names.
func sizesOf(v *Version) (out [][2]int) {
	for _, c := range v.Chunks() {
		out = append(out, [2]int{c.Artifacts, c.Dead})
	}
	slices.SortFunc(out, func(a, b [2]int) int { return a[0] - b[0] })
	return out
}

func compareLean(t *testing.T, o *Overlay, want *Version, files, seed int) {
	t.Helper()
	o = Open(o.store, o.prefix, Options{WholeUpTo: -1})
	v, err := o.Lean(t.Context())
	require.NoError(t, err)
	roll := want.Roll()
	require.NoError(t, o.putOwn(t.Context(), o.key("roll", string(rune('a'+seed%26))+v.Commit()), roll))
	e := Derived{Key: "roll/" + string(rune('a'+seed%26)) + v.Commit(), Len: int64(len(roll))}
	for k := range 200 {
		path := fileID((seed + k*37) % (2 * files)).Path
		w, err := v.Reach(t.Context(), []string{path}, nil)
		require.NoError(t, err)
		require.Equal(t, len(want.Find(path)), len(w.Find(path)), path)
		off, err := o.OffRoll(t.Context(), &e, []string{path})
		require.NoError(t, err)
		if len(want.Find(path)) > 0 {
			require.False(t, off, path)
		}
	}
}

// TestRecordOfCompletenessEnds: the record holds over commits that take nothing away, and no longer over others.
func TestRecordOfCompletenessEnds(t *testing.T) {
	st := newMem()
	o, index := withIndex(t, st)
	r := commit(t, o, nil, Publish(nil, build("one", artifact(index, 0, fileID(0)))))
	record := Complete{SnapshotID: testUpstream.SnapshotID, Version: r.Version.Number(), Notes: []byte(`{}`)}
	holds := func(want bool, why string) {
		t.Helper()
		_, ok := fresh(t, o).Complete()
		require.Equal(t, want, ok, why)
	}
	again := func() {
		t.Helper()
		record.Version = latest(t, o).Number()
		commit(t, o, nil, Completed(record))
		holds(true, "recorded")
	}
	again()
	commit(t, o, nil, Publish(nil, build("two", artifact(index, 0, fileID(1)))))
	commit(t, o, nil, Derive([]Derived{{Kind: "facts", Name: "m", Key: "data/m", Len: 1}}, nil))
	commit(t, o, nil, Sparing(Derive(nil, []DerivedKey{{"facts", "m"}})))
	commit(t, o, nil, End(Ends{}))
	holds(true, "nothing was taken away")
	merged := artifact(index, 1, fileID(1))
	merged.Replaces = []Key{{Bundle: "o/data/two.puffin", Lineage: 3000}}
	commit(t, o, nil, Sparing(Publish(nil, build("three", merged))))
	holds(true, "vouched for")
	for why, c := range map[string]Change{
		"retired":  Retire(Key{Bundle: "o/data/one.puffin", Lineage: 3000}),
		"declared": AddIndex(definition("zonemap", 4)),
		"silenced": Quarantine(index, "test"),
		"synced":   Synced(Upstream{SnapshotID: 12, LastUpdatedMs: 2000}),
	} {
		before := latest(t, o)
		commit(t, o, nil, c)
		holds(false, why)
		stale := record
		stale.Version = before.Number()
		stale.SnapshotID = latest(t, o).Upstream().SnapshotID
		if why != "synced" {
			commit(t, o, nil, Completed(stale))
			holds(false, why+" after what the record looked at")
		}
		record.SnapshotID = stale.SnapshotID
		again()
	}
}
