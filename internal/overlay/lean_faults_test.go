package overlay

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/store/faulty"
)

// TestLeanCommitsSurviveFaults publishes as processes that know nothing, whose reads of lists fail or come with a flipped bit: a commit may
// fail, and what was published under a flipped bit may be published twice, but every artifact of a commit that went well is found by who reads
// all, now and later.
func TestLeanCommitsSurviveFaults(t *testing.T) {
	rng, seed := seeded(t)
	inner := newMem()
	o, index := withIndex(t, inner)
	o.Close()
	lists := func(key string) bool { return strings.Contains(key, "/chunks/") }
	published, failed := map[int]int{}, 0
	for step := range 60 {
		st := faulty.New(inner, seed+uint64(step),
			faulty.Rule{Op: faulty.Fetch, Key: lists, Rate: 0.2, Err: faulty.TimedOut},
			faulty.Rule{Op: faulty.Fetch, Key: lists, Rate: 0.2, Flip: true})
		p := Open(st, "o", Options{WholeUpTo: -1})
		id := string(rune('a'+step%26)) + string(rune('a'+step/26))
		var all []Artifact
		for k := range 1 + rng.IntN(30) {
			all = append(all, artifact(index, k, fileID(rng.IntN(600)+k*600)))
		}
		v, err := p.Lean(t.Context())
		if err == nil {
			var r *Receipt
			if r, err = p.Commit(t.Context(), v, Publish(nil, build(id, all...))); err == nil {
				gone := map[int]bool{}
				for _, d := range r.Discarded {
					gone[d.Artifact] = true
				}
				for k, a := range all {
					if !gone[k] {
						published[fileNo(a.Files[0])]++
					}
				}
			}
		}
		if err != nil {
			failed++
		}
		p.Close()
		whole := latest(t, Open(inner, "o", Options{}))
		require.Empty(t, whole.Warnings(), "step %d", step)
		for n, times := range published {
			require.Len(t, whole.Find(fileID(n).Path), times, "step %d, file %d", step, n)
		}
	}
	require.Positive(t, failed)
	require.Less(t, failed, 60)
}

func fileNo(f Identity) int { return int(f.Size - 1_000_000) }

// TestRecordEndsWhereAnOlderSkomerWrote: a version without the fields of the record was made by a Skomer that does not keep them. Nobody knows
// what it took away, so that a record of what was looked at before it is not taken any more, also by a sync that began before.
func TestRecordEndsWhereAnOlderSkomerWrote(t *testing.T) {
	o, index := withIndex(t, newMem())
	r := commit(t, o, nil, Publish(nil, build("one", artifact(index, 0, fileID(0)))))
	early := Complete{SnapshotID: testUpstream.SnapshotID, Version: r.Version.Number(), Notes: []byte(`{}`)}
	commit(t, o, nil, Completed(early))
	_, ok := fresh(t, o).Complete()
	require.True(t, ok)

	older := *latest(t, o).body
	older.header.Complete, older.header.Lowered = nil, 0
	older.header.Previous, older.header.Commit = older.header.Commit, "older"
	older.header.Version++
	raw, err := older.encode(nil)
	require.NoError(t, err)
	require.False(t, bytes.Contains(raw, []byte("lowered")))
	require.NoError(t, o.putVersion(t.Context(), &older, raw))

	commit(t, o, nil, Completed(early))
	_, ok = fresh(t, o).Complete()
	require.False(t, ok, "the older Skomer may have taken something away")
	late := early
	late.Version = older.header.Version
	commit(t, o, nil, Completed(late))
	_, ok = fresh(t, o).Complete()
	require.True(t, ok, "looked at after it")
}

// TestNamesOfALeanVersionAreAll: whoever deletes what no version names sees what a lean version did not read, too.
func TestNamesOfALeanVersionAreAll(t *testing.T) {
	o, index := withIndex(t, newMem())
	for step := range 5 {
		var all []Artifact
		for k := range 1 + 400*(step%2) {
			all = append(all, artifact(index, k, fileID(1000*step+k)))
		}
		commit(t, o, nil, Publish(nil, build(string(rune('a'+step)), all...)))
	}
	p := Open(o.store, "o", Options{WholeUpTo: -1})
	lean, err := p.Lean(t.Context())
	require.NoError(t, err)
	require.True(t, lean.partial)
	versions, err := p.Versions(t.Context())
	require.NoError(t, err)
	got, err := p.Names(t.Context(), versions[:1], lean, nil)
	require.NoError(t, err)
	want, err := o.Names(t.Context(), versions[:1], nil, nil)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Len(t, got.Bundles, 5)
}
