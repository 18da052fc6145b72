package overlay

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store/faulty"
)

// TestRecoveryDoesNotGoBackBehindAnErasure: the version of an erasure, and those after it, are damaged or gone while one from before can be
// read. What was built before is not used, what was erased stays so, and nothing from before can be gone back to.
func TestRecoveryDoesNotGoBackBehindAnErasure(t *testing.T) {
	for _, lost := range []string{"damaged", "gone", "damaged with a later one"} {
		t.Run(lost, func(t *testing.T) {
			st := newMem()
			o, id := withIndex(t, st)
			commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1)), artifact(id, 1, fileID(2)))), Derive([]Derived{derivedOf("run", "1", id, 2)}, nil))
			before := fresh(t, o)
			erased := commit(t, o, nil, Erase([]Identity{fileID(1)}, nil)).Version.Number()
			newest := erased
			if lost == "damaged with a later one" {
				newest = commit(t, o, nil, AddIndex(definition("zonemap", 3))).Version.Number()
			}
			for n := erased; n <= newest; n++ {
				if key := "o/versions/" + versionName(n); lost == "gone" {
					require.NoError(t, st.Delete(t.Context(), []string{key}))
				} else {
					replace(t, st, key, []byte("damaged beyond recognition"))
				}
			}
			p := other(o)
			if lost == "gone" {
				found, err := p.Verify(t.Context(), before.Number())
				require.NoError(t, err)
				require.Len(t, found, 1)
				require.Contains(t, found[0].Reason.Error(), "values were erased in version 4, which is lost")
			}
			r, err := p.Recover(t.Context())
			require.NoError(t, err)
			require.Equal(t, r.Number(), r.ErasedIn())
			for _, v := range []*Version{r, fresh(t, o)} {
				require.Equal(t, before.Indexes(), v.Indexes())
				require.Empty(t, v.Find(fileID(1).Path))
				require.Empty(t, v.Find(fileID(2).Path), "nobody knows whether it holds more")
				require.Empty(t, v.EveryDerived())
				require.True(t, v.Erased(fileID(1)))
				require.False(t, v.Erased(fileID(2)))
				require.Equal(t, v.Number(), v.Oldest())
			}
			_, err = p.Commit(t.Context(), nil, Rollback(before))
			require.True(t, fault.Is(err, fault.NotFound), err)
			again := commit(t, p, before, Publish(nil, build("b3", artifact(id, 0, fileID(1)))))
			require.Len(t, again.Discarded, 1)
			found, err := p.Verify(t.Context(), again.Version.Number())
			require.NoError(t, err)
			require.Empty(t, found)
			known, err := p.Recover(t.Context())
			require.NoError(t, err)
			require.Equal(t, again.Version.Number(), known.Number(), "nothing to recover")
		})
	}
}

// TestAnErasureThatCanBeReadIsRecoveredTo: a version after an erasure is damaged; what the erasure left stays in use.
func TestAnErasureThatCanBeReadIsRecoveredTo(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1)), artifact(id, 1, fileID(2)))))
	commit(t, o, nil, Erase([]Identity{fileID(1)}, nil))
	last := commit(t, o, nil, AddIndex(definition("zonemap", 3))).Version.Number()
	replace(t, st, "o/versions/"+versionName(last), []byte("damaged"))
	r, err := other(o).Recover(t.Context())
	require.NoError(t, err)
	require.Len(t, r.Find(fileID(2).Path), 1)
	require.True(t, r.Erased(fileID(1)))
}

// TestAnErasureIsMarkedBeforeItIsCommitted: where the mark cannot be written nothing is committed, and of a damaged one nobody guesses what
// was erased.
func TestAnErasureIsMarkedBeforeItIsCommitted(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1)))))
	denied := faulty.New(st, 1, faulty.Rule{
		Op: faulty.PutNew, Key: func(key string) bool { return strings.HasPrefix(key, "o/"+MarksFolder+"/") }, Err: faulty.Class(fault.Denied), Rate: 1,
	})
	_, err := Open(denied, "o", Options{}).Commit(t.Context(), nil, Erase([]Identity{fileID(1)}, nil))
	require.True(t, fault.Is(err, fault.Denied), err)
	require.Zero(t, fresh(t, o).ErasedIn())

	erased := commit(t, o, nil, Erase([]Identity{fileID(1)}, nil)).Version.Number()
	marks, err := st.List(t.Context(), "o/"+MarksFolder+"/", "", 10)
	require.NoError(t, err)
	require.Len(t, marks, 1)
	replace(t, st, marks[0].Key, []byte("damaged"))
	replace(t, st, "o/versions/"+versionName(erased), []byte("damaged"))
	_, err = other(o).Recover(t.Context())
	require.True(t, fault.Is(err, fault.Corrupt), err)
	require.Contains(t, fault.FixOf(err), "erase")
}

func FuzzMark(f *testing.F) {
	raw := encodeMark(erasedSet{{1}, {2, 3}})
	f.Add(raw[:len(raw)-4])
	f.Fuzz(func(t *testing.T, raw []byte) {
		raw = binary.LittleEndian.AppendUint32(bytes.Clone(raw), bytescan.CRC32C(raw))
		erased, err := parseMark("x", raw)
		if err != nil {
			require.True(t, fault.Is(err, fault.Corrupt) || fault.Is(err, fault.Unsupported), err)
			return
		}
		again, err := parseMark("x", encodeMark(erased))
		require.NoError(t, err)
		require.Equal(t, erased, again)
	})
}

// TestAMarkWithoutItsErasureIsOfNone: an erasure is killed behind its mark, and another commit takes the version that it was for. Nothing is lost,
// and nothing is recovered from; if that other version is lost too, nobody knows.
func TestAMarkWithoutItsErasureIsOfNone(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1)), artifact(id, 1, fileID(2)))))
	killed := faulty.New(st, 1, faulty.Rule{
		Op: faulty.PutNew, Key: func(key string) bool { return strings.HasPrefix(key, "o/versions/") }, Err: faulty.Class(fault.Denied), Rate: 1,
	})
	_, err := Open(killed, "o", Options{}).Commit(t.Context(), nil, Erase([]Identity{fileID(1)}, nil))
	require.True(t, fault.Is(err, fault.Denied), err)
	marks, err := st.List(t.Context(), "o/"+MarksFolder+"/", "", 10)
	require.NoError(t, err)
	require.Len(t, marks, 1)

	taken := commit(t, o, nil, AddIndex(definition("zonemap", 3))).Version.Number()
	for _, number := range []uint64{taken, commit(t, o, nil, AddIndex(definition("bloom", 4))).Version.Number()} {
		found, err := other(o).Verify(t.Context(), number)
		require.NoError(t, err)
		require.Empty(t, found)
	}
	r, err := other(o).Recover(t.Context())
	require.NoError(t, err)
	require.Equal(t, taken+1, r.Number(), "nothing to recover")
	require.Len(t, fresh(t, o).Find(fileID(1).Path), 1)

	for n := taken; n <= taken+1; n++ {
		replace(t, st, "o/versions/"+versionName(n), []byte("damaged"))
	}
	r, err = other(o).Recover(t.Context())
	require.NoError(t, err)
	require.Empty(t, r.Find(fileID(1).Path))
}

// TestARecoveryBesideAnErasureLosesNothing: somebody recovers, and somebody else verifies, while an erasure is between its mark and its version.
func TestARecoveryBesideAnErasureLosesNothing(t *testing.T) {
	st := newMem()
	o, id := withIndex(t, st)
	before := commit(t, o, nil, Publish(nil, build("b", artifact(id, 0, fileID(1)), artifact(id, 1, fileID(2))))).Version
	looked := make(chan struct{}, 2)
	key := "o/versions/" + versionName(before.Number()+1)
	beside := func() *Overlay {
		var once sync.Once
		return Open(faulty.New(st, 1, faulty.Rule{
			Op: faulty.Fetch, Rate: 1, Key: func(k string) bool { return k == key },
			Do: func(context.Context, faulty.Op, string) { once.Do(func() { looked <- struct{}{} }) },
		}), "o", Options{})
	}
	var wait sync.WaitGroup
	slow := Open(faulty.New(st, 1, faulty.Rule{
		Op: faulty.PutNew, Nth: 1, Key: func(k string) bool { return k == key },
		Do: func(ctx context.Context, _ faulty.Op, _ string) {
			wait.Go(func() {
				_, err := beside().Recover(ctx)
				require.NoError(t, err)
			})
			wait.Go(func() {
				found, err := beside().Verify(ctx, before.Number())
				require.NoError(t, err)
				require.Empty(t, found)
			})
			<-looked
			<-looked
		},
	}), "o", Options{})
	erased, err := slow.Commit(t.Context(), nil, Erase([]Identity{fileID(1)}, nil))
	require.NoError(t, err)
	wait.Wait()
	require.Equal(t, before.Number()+1, erased.Version.Number())
	now := fresh(t, o)
	require.Equal(t, erased.Version.Number(), now.Number())
	require.Len(t, now.Find(fileID(2).Path), 1)
}

// TestMarksOfMoreThanAVersionHoldsAreRefused: a recovery never writes a version that nobody can read.
func TestMarksOfMoreThanAVersionHoldsAreRefused(t *testing.T) {
	st := newMem()
	o, _ := withIndex(t, st)
	before := fresh(t, o).Number()
	half := make(erasedSet, maxErased/2+1)
	for m := range 2 {
		for i := range half {
			binary.BigEndian.PutUint64(half[i][:], uint64(m*len(half)+i))
		}
		require.NoError(t, o.putOwn(t.Context(), o.key(MarksFolder, versionName(before+1+uint64(m))+"-x"), encodeMark(half)))
	}
	_, err := other(o).Recover(t.Context())
	require.True(t, fault.Is(err, fault.Exhausted), err)
	require.Equal(t, before, fresh(t, o).Number())
}
