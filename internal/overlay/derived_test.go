package overlay

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
)

func derivedOf(kind, name, index string, n int) Derived {
	return Derived{
		Kind: kind, Name: name, Index: index, Key: fmt.Sprintf("%s/%d", kind, n), Off: int64(n), Len: int64(n) * 3, CRC: uint32(n),
		Made: []string{name, "s3://lake/t/metadata/other"}, Meta: []byte(fmt.Sprintf(`{"n":%d}`, n)),
	}
}

func TestDerivedObjectsLiveAndDieWithTheirIndex(t *testing.T) {
	o, id := withIndex(t, newMem())
	a, b, run := derivedOf("facts", "m1", "", 1), derivedOf("facts", "m2", "", 2), derivedOf("run", "0", id, 3)
	r := commit(t, o, nil, Derive([]Derived{b, a, run}, nil))
	require.Empty(t, r.Unfit)
	for _, v := range []*Version{r.Version, fresh(t, o)} {
		require.Equal(t, []Derived{a, b}, v.Derived("facts"))
		require.Equal(t, []Derived{run}, v.Derived("run"))
		require.Empty(t, v.Derived("fact"))
		require.Empty(t, v.Derived("s"))
	}
	base := r.Version
	newer := derivedOf("facts", "m2", "", 9)
	r = commit(t, o, nil, Derive([]Derived{newer}, []DerivedKey{a.Is(), {"facts", "never there"}}))
	require.Equal(t, []Derived{newer}, fresh(t, o).Derived("facts"))
	require.Equal(t, []Derived{a, b}, base.Derived("facts"), "versions are immutable")
	require.False(t, commit(t, o, nil, Derive(nil, []DerivedKey{a.Is()})).Changed)

	commit(t, other(o), nil, DropIndex(id))
	r = commit(t, o, r.Version, Derive([]Derived{derivedOf("run", "1", id, 4), derivedOf("facts", "m3", "", 5)}, nil))
	require.Equal(t, []DerivedKey{{"run", "1"}}, r.Unfit)
	require.Empty(t, fresh(t, o).Derived("run"))
	require.Len(t, fresh(t, o).Derived("facts"), 2)
	_, err := o.Commit(t.Context(), nil, Derive([]Derived{{Kind: "facts", Name: "m", Key: "../../elsewhere"}}, nil))
	require.True(t, fault.Is(err, fault.Invalid), err)
}

func TestTheFirstMergeOfRunsWins(t *testing.T) {
	o, id := withIndex(t, newMem())
	a, b := derivedOf("run", "1", id, 1), derivedOf("run", "2", id, 2)
	base := commit(t, o, nil, Derive([]Derived{a, b}, nil)).Version
	one, two := derivedOf("run", "3", id, 3), derivedOf("run", "4", id, 4)
	commit(t, other(o), base, ReplaceDerived([]Derived{one}, base.Derived("run")))
	r := commit(t, o, base, ReplaceDerived([]Derived{two}, base.Derived("run")))
	require.False(t, r.Changed)
	require.Equal(t, []DerivedKey{two.Is()}, r.Unfit)
	require.Equal(t, []Derived{one}, fresh(t, o).Derived("run"))
	again := derivedOf("run", "3", id, 7)
	commit(t, o, nil, Derive([]Derived{again}, nil))
	require.NotEmpty(t, commit(t, o, nil, ReplaceDerived([]Derived{two}, []Derived{one})).Unfit, "the same name is another object by now")
}

// TestDerivedObjectsFollowAMap commits at random from two processes, with tiny tiers so that lists are merged all the time, and
// compares with a map.
func TestDerivedObjectsFollowAMap(t *testing.T) {
	r, _ := seeded(t)
	o, id := withIndex(t, newMem())
	o.sizes = sizes{tiny: 150, small: 300, smallTotal: 900, tier: 300, merge: 1 << 20, fanOut: 3}
	p := other(o)
	p.sizes = o.sizes
	want := map[DerivedKey]Derived{}
	most := 0
	for n := range 400 {
		w := []*Overlay{o, p}[r.IntN(2)]
		var put []Derived
		var remove []DerivedKey
		for range r.IntN(4) {
			index := []string{"", id}[r.IntN(2)]
			put = append(put, derivedOf([]string{"facts", "run"}[r.IntN(2)], fmt.Sprint(r.IntN(60)), index, n+1))
		}
		for range r.IntN(3) {
			remove = append(remove, DerivedKey{"facts", fmt.Sprint(r.IntN(60))})
		}
		commit(t, w, nil, Derive(put, remove))
		for _, k := range remove {
			delete(want, k)
		}
		for _, e := range put {
			want[e.Is()] = e
		}
		switch r.IntN(10) {
		case 0:
			_, err := w.Compact(t.Context())
			require.NoError(t, err)
		case 1:
			commit(t, w, nil, DropIndex(id))
			id = commit(t, w, nil, AddIndex(definition("bloom", 3))).Indexes[0]
			maps.DeleteFunc(want, func(_ DerivedKey, e Derived) bool { return e.Index != "" })
		}
		v := fresh(t, o)
		most = max(most, len(v.body.lists))
		got := map[DerivedKey]Derived{}
		for _, kind := range []string{"facts", "run"} {
			last := ""
			for _, e := range v.Derived(kind) {
				require.Less(t, last, e.Name)
				got[e.Is()], last = e, e.Name
			}
		}
		require.Equal(t, want, got)
	}
	require.Greater(t, most, 2)
	require.LessOrEqual(t, most, crowded)
}

// counting counts what is put.
type counting struct {
	store.Store
	puts, bytes int
}

func (c *counting) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	n, _ := r.Seek(0, io.SeekEnd)
	_, _ = r.Seek(0, io.SeekStart)
	c.puts++
	c.bytes += int(n)
	return c.Store.PutNew(ctx, key, r)
}

func manifestFacts(n int) Derived {
	name := fmt.Sprintf("s3://warehouse/db/table/metadata/%08x-4b1f-4c0e-9d2f-%012x-m0.avro", n*7919, n)
	return Derived{Kind: "facts", Name: name, Key: fmt.Sprintf("facts/%064x", n), Len: 123456, CRC: uint32(n), Made: []string{name}}
}

func TestACommitAmongManyDerivedObjectsIsSmall(t *testing.T) {
	st := &counting{Store: mem.New()}
	o, id := withIndex(t, st)
	var first []Derived
	for n := range 20_000 {
		first = append(first, manifestFacts(n))
	}
	commit(t, o, nil, Derive(first, nil))
	for n := range 60 {
		st.puts, st.bytes = 0, 0
		more := []Derived{manifestFacts(20_000 + n), manifestFacts(n)}
		commit(t, o, nil, Publish(nil, build(fmt.Sprint(n), artifact(id, 0, fileID(n)))), Derive(more, nil))
		require.LessOrEqual(t, st.puts, 3)
		require.LessOrEqual(t, st.bytes, 1_000_000)
	}
	v := fresh(t, o)
	require.Len(t, v.Derived("facts"), 20_060)
	require.LessOrEqual(t, len(v.body.lists), 4)
}

func TestADamagedListIsNoDerivedObjects(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	a := derivedOf("facts", "m1", "", 1)
	v := commit(t, o, nil, Derive([]Derived{a}, nil)).Version
	key := o.key("chunks", v.body.lists[0].name)
	good := read(t, st, key)
	for at := range good {
		bad := slices.Clone(good)
		bad[at] ^= 0x04
		replace(t, st, key, bad)
		got := fresh(t, o)
		require.Empty(t, got.Derived("facts"), "byte %d", at)
		require.Len(t, got.Warnings(), 1)
		require.NoError(t, got.Broken())
	}
	require.NoError(t, st.Delete(t.Context(), []string{key}))
	p := other(o)
	b := derivedOf("facts", "m2", "", 2)
	commit(t, p, nil, Derive([]Derived{b}, nil))
	commit(t, p, nil, Publish(nil, build("b", artifact(id, 0, fileID(1)))))
	got := fresh(t, o)
	require.Equal(t, []Derived{b}, got.Derived("facts"))
	require.Len(t, got.Find(fileID(1).Path), 1)
	rec, err := p.Recover(t.Context())
	require.NoError(t, err)
	require.Empty(t, rec.Warnings())
	require.Equal(t, []Derived{b}, fresh(t, o).Derived("facts"))
}

// FuzzList parses bytes as a list whose checksum is right.
func FuzzList(f *testing.F) {
	raw, err := encodeList([]Derived{derivedOf("facts", "a", "", 1), derivedOf("facts", "ab", "i", 2), derivedOf("run", "a", "", 3)})
	require.NoError(f, err)
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := parseList("x", raw)
		if err != nil {
			require.True(t, fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Unsupported), err)
			return
		}
		again, err := encodeList(l.entries)
		require.NoError(t, err)
		m, err := parseList("x", again)
		require.NoError(t, err)
		require.Equal(t, l.entries, m.entries)
		for i := range l.entries {
			require.Equal(t, i, l.find(l.entries[i].Is()))
		}
	})
}
