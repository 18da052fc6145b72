package overlay

import (
	"bytes"
	"encoding/binary"
	"strings"
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
