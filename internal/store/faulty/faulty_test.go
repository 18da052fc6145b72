package faulty_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/cache"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/store/mem"
	"github.com/skomerdb/skomer/internal/store/meter"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

var none = faulty.Latency{P50: 1, P99: 2, BytesPerSecond: 1e15}

func TestContract(t *testing.T) {
	for name, decorate := range map[string]func(store.Store) store.Store{
		"NoRules": func(s store.Store) store.Store { return faulty.New(s, 1) },
		"NeverStrikes": func(s store.Store) store.Store {
			return faulty.New(s, 1, faulty.Rule{Err: faulty.Throttled, Rate: 0}, faulty.Rule{Flip: true, Nth: 1 << 30})
		},
		"Slow": func(s store.Store) store.Store { return faulty.Slow(s, none, 1) },
		"Stack": func(s store.Store) store.Store {
			return meter.New(cache.New(meter.New(faulty.Slow(faulty.New(s, 1), none, 1)), 1<<20, nil))
		},
	} {
		t.Run(name+"OverMem", func(t *testing.T) {
			storetest.Run(t, func(*testing.T) storetest.Subject {
				return storetest.Subject{Store: decorate(mem.New()), Root: "root/"}
			})
		})
	}
	t.Run("StackOverLocal", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Subject {
			dir := t.TempDir()
			s := cache.New(meter.New(faulty.Slow(faulty.New(local.New(local.Under(dir)), 1), none, 1)), 1<<20, nil)
			return storetest.Subject{Store: meter.New(s), Root: dir + "/"}
		})
	})
}

func isPuffin(key string) bool { return strings.HasSuffix(key, ".puffin") }

func TestNthOperationOfAKind(t *testing.T) {
	s := faulty.New(mem.New(), 1,
		faulty.Rule{Op: faulty.PutNew, Key: isPuffin, Nth: 2, Err: faulty.Class(fault.Denied)},
		faulty.Rule{Op: faulty.Fetch, Nth: 3, Err: faulty.CutShort})
	for i, want := range []fault.Class{fault.Unclassified, fault.Denied, fault.Unclassified} {
		_, err := s.PutNew(t.Context(), fmt.Sprintf("%d.txt", i), strings.NewReader("x"))
		require.NoError(t, err, "another key")
		_, err = s.PutNew(t.Context(), fmt.Sprintf("%d.puffin", i), strings.NewReader("x"))
		require.Equal(t, want, fault.ClassOf(err))
	}
	out := s.Fetch(t.Context(), []store.Read{{Key: "0.puffin"}, {Key: "0.puffin"}, {Key: "0.puffin"}, {Key: "0.puffin"}})
	for i, r := range out {
		if i != 2 {
			require.NoError(t, r.Err, "read %d", i)
			continue
		}
		require.ErrorIs(t, r.Err, io.ErrUnexpectedEOF)
		require.True(t, fault.Retryable(r.Err))
		require.Nil(t, r.Data, "never a short slice")
	}
	require.Equal(t, []int{1, 1}, s.Injected())
}

func TestAfterLosesOnlyTheAnswer(t *testing.T) {
	inner := mem.New()
	s := faulty.New(inner, 1, faulty.Rule{Rate: 1, Err: faulty.TimedOut, After: true})
	tag, err := s.PutNew(t.Context(), "o", strings.NewReader("x"))
	require.Error(t, err)
	require.True(t, fault.Retryable(err))
	require.Empty(t, tag)
	info := inner.Stat(t.Context(), []string{"o"})[0]
	require.NoError(t, info.Err, "the object was written")
	_, err = s.PutIf(t.Context(), "o", info.Tag, []byte("y"))
	require.Error(t, err)
	require.Equal(t, "y", string(inner.Fetch(t.Context(), []store.Read{{Key: "o"}})[0].Data[0]))
	_, err = s.PutNew(t.Context(), "o", strings.NewReader("z"))
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "what really failed is told")
	require.Error(t, s.Fetch(t.Context(), []store.Read{{Key: "o"}})[0].Err)
	require.Error(t, s.Stat(t.Context(), []string{"o"})[0].Err)
	_, err = s.List(t.Context(), "", "", 10)
	require.Error(t, err)
	require.Error(t, s.Delete(t.Context(), []string{"o"}))
	require.Equal(t, fault.NotFound, fault.ClassOf(inner.Stat(t.Context(), []string{"o"})[0].Err), "the object was deleted")
	require.Equal(t, []int{7}, s.Injected(), "all but the conflict, which also struck")
}

func TestBeforeDoesNothing(t *testing.T) {
	inner := mem.New()
	inner.Overwrite("o", []byte("x"))
	s := faulty.New(inner, 1, faulty.Rule{Rate: 1, Err: faulty.Throttled})
	_, err := s.PutNew(t.Context(), "new", strings.NewReader("x"))
	require.Equal(t, fault.Exhausted, fault.ClassOf(err))
	require.True(t, fault.Retryable(err))
	require.ErrorContains(t, s.Delete(t.Context(), []string{"o"}), "o: injected")
	infos, err := inner.List(t.Context(), "", "", 10)
	require.NoError(t, err)
	require.Len(t, infos, 1)
}

func TestFlipInvertsOneBit(t *testing.T) {
	content := bytes.Repeat([]byte{0xA5}, 1000)
	inner := mem.New()
	inner.Overwrite("o", content)
	s := faulty.New(inner, 1, faulty.Rule{Op: faulty.Fetch, Rate: 1, Flip: true})
	r := s.Fetch(t.Context(), []store.Read{{Key: "o", Spans: []store.Span{{Off: 0, Len: 500}, {Off: 500, Len: 0}, {Off: 500, Len: 500}}}})[0]
	require.NoError(t, r.Err)
	flipped := 0
	for _, b := range r.Data {
		for _, v := range b {
			flipped += bits.OnesCount8(v ^ 0xA5)
		}
	}
	require.Equal(t, 1, flipped)
	require.Equal(t, content, inner.Fetch(t.Context(), []store.Read{{Key: "o"}})[0].Data[0], "the store's own bytes are whole")
}

// TestRatesAreReplayable: equal seeds strike equally in any order, others elsewhere, and about as often as the rate says.
func TestRatesAreReplayable(t *testing.T) {
	inner := mem.New()
	const n = 4000
	var reads []store.Read
	for i := range n {
		key := fmt.Sprint(i)
		inner.Overwrite(key, nil)
		reads = append(reads, store.Read{Key: key})
	}
	rnd := storetest.Rand(t)
	struck := func(seed uint64) string {
		s := faulty.New(inner, seed, faulty.Rule{Rate: 0.1, Err: faulty.Throttled})
		rnd.Shuffle(n, func(i, j int) { reads[i], reads[j] = reads[j], reads[i] })
		out := bytes.Repeat([]byte{'.'}, n)
		for i, r := range s.Fetch(t.Context(), reads) {
			if r.Err != nil {
				var at int
				_, err := fmt.Sscan(reads[i].Key, &at)
				require.NoError(t, err)
				out[at] = 'x'
			}
		}
		hits := s.Injected()[0]
		require.Equal(t, hits, bytes.Count(out, []byte{'x'}))
		require.InDelta(t, n/10, hits, 100)
		return string(out)
	}
	require.Equal(t, struck(7), struck(7))
	require.NotEqual(t, struck(7), struck(8))
}

// TestHookInterleavesCommitters: the rival commits between the read and the write of the first.
func TestHookInterleavesCommitters(t *testing.T) {
	inner := mem.New()
	tag := inner.Overwrite("head", []byte("1"))
	s := faulty.New(inner, 1, faulty.Rule{Op: faulty.PutIf, Nth: 1, Do: func(ctx context.Context, op faulty.Op, key string) {
		_, err := inner.PutIf(ctx, key, tag, []byte("rival"))
		require.NoError(t, err)
		require.Equal(t, faulty.PutIf, op)
	}})
	_, err := s.PutIf(t.Context(), "head", tag, []byte("mine"))
	require.Equal(t, fault.Conflict, fault.ClassOf(err))
	require.Equal(t, "rival", string(inner.Fetch(t.Context(), []store.Read{{Key: "head"}})[0].Data[0]))
	require.Equal(t, []int{1}, s.Injected())
}

func TestUnstruckOperationsOfAWaveGoOn(t *testing.T) {
	inner := mem.New()
	var reads []store.Read
	for i := range 50 {
		key := fmt.Sprint(i)
		inner.Overwrite(key, []byte(key))
		reads = append(reads, store.Read{Key: key})
	}
	s := faulty.New(inner, 3, faulty.Rule{Op: faulty.Fetch, Rate: 0.5, Err: faulty.CutShort})
	failed := 0
	for i, r := range s.Fetch(t.Context(), reads) {
		if r.Err != nil {
			failed++
			continue
		}
		require.Equal(t, reads[i].Key, string(r.Data[0]))
	}
	require.Equal(t, failed, s.Injected()[0])
	require.Greater(t, failed, 0)
	require.Less(t, failed, 50)
}
