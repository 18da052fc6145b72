package overlay

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/store/faulty"
)

// Of bytes that were damaged on their way a second look is taken: nothing that a version names counts as lost because of one bad read.
func TestABadReadIsNoLoss(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	commit(t, o, nil, Publish(nil, build("b1", artifact(id, 0, fileID(1)))), Derive([]Derived{derivedOf("run", "1", id, 1)}, nil))
	want := latest(t, o)
	all, err := o.Versions(t.Context())
	require.NoError(t, err)
	names, err := o.Names(t.Context(), all, nil, nil)
	require.NoError(t, err)
	reads := 0
	for n := 1; ; n++ {
		bad := faulty.New(st, uint64(n), faulty.Rule{Op: faulty.Fetch, Nth: n, Flip: true})
		p := Open(bad, o.Prefix(), Options{})
		got, err := p.Names(t.Context(), all, nil, nil)
		require.NoError(t, err)
		require.Equal(t, names, got, "read %d", n)
		v, err := p.Latest(t.Context())
		require.NoError(t, err)
		require.NoError(t, v.Broken())
		require.Empty(t, v.Warnings())
		require.Equal(t, want.Commit(), v.Commit())
		if bad.Injected()[0] == 0 {
			break
		}
		reads++
	}
	require.Greater(t, reads, 4)
}

// A commit whose answer was lost reads back who won. It is its own commit, however that read went.
func TestABadReadDoesNotHideThatACommitWon(t *testing.T) {
	st := newMem()
	o := mounted(t, st)
	before := latest(t, o)
	bad := faulty.New(st, 1,
		faulty.Rule{Op: faulty.PutNew, Nth: 1, Err: faulty.TimedOut, After: true},
		faulty.Rule{Op: faulty.Fetch, Nth: 1, Flip: true})
	r, err := Open(bad, o.Prefix(), Options{}).Commit(t.Context(), before, AddIndex(definition("bloom", 3)))
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, bad.Injected())
	require.True(t, r.Changed)
	require.Equal(t, before.Number()+1, r.Version.Number(), "committed once")
}

// What is known of a version in memory is not read.
func TestNamesOfAKnownVersionAreNotRead(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	v := commit(t, o, nil, Publish(nil, build("b1", artifact(id, 0, fileID(1))))).Version
	all, err := o.Versions(t.Context())
	require.NoError(t, err)
	bad := faulty.New(st, 1, faulty.Rule{Op: faulty.Fetch, Rate: 1, Flip: true})
	names, err := Open(bad, o.Prefix(), Options{}).Names(t.Context(), all[:1], v, nil)
	require.NoError(t, err)
	require.Zero(t, bad.Injected()[0])
	require.NotEmpty(t, names.Bundles)
	require.NotEmpty(t, names.Chunks)
	require.Empty(t, names.Damaged)
}
