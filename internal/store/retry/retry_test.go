package retry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/mem"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

// quick makes the waits of a store no waits and records them.
func quick(s *Store) (*Store, *[]time.Duration) {
	var waits []time.Duration
	s.sleep = func(ctx context.Context, d time.Duration) error {
		waits = append(waits, d)
		return ctx.Err()
	}
	return s, &waits
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Subject {
		return storetest.Subject{Store: New(mem.New(), Options{}), Root: "root/"}
	})
}

// TestContractUnderFaults: over a store that throttles, breaks off and loses answers, callers see none of it, races included.
func TestContractUnderFaults(t *testing.T) {
	seed := storetest.Rand(t).Uint64()
	struck := make([]int, 4)
	t.Run("contract", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Subject {
			switch {
			case strings.HasSuffix(t.Name(), "/Usage"):
				t.Skip("tries cost requests")
			case strings.HasSuffix(t.Name(), "/PutIfCounts"):
				t.Skip("its writers write equal bytes, so that nobody can tell whose a lost write was")
			}
			bad := faulty.New(mem.New(), seed,
				faulty.Rule{Rate: 0.1, Err: faulty.Throttled},
				faulty.Rule{Rate: 0.05, Err: faulty.TimedOut},
				faulty.Rule{Rate: 0.05, Err: faulty.TimedOut, After: true},
				faulty.Rule{Op: faulty.Fetch, Rate: 0.05, Err: faulty.CutShort})
			t.Cleanup(func() {
				for i, n := range bad.Injected() {
					struck[i] += n
				}
			})
			return storetest.Subject{Store: New(bad, Options{Tries: 30, First: time.Microsecond}), Root: "root/"}
		})
	})
	for i, n := range struck {
		require.Positive(t, n, "rule %d", i)
	}
}

func TestOnlyWhatPassesIsTriedAgain(t *testing.T) {
	for _, c := range []fault.Class{fault.NotFound, fault.Denied, fault.Stale, fault.Corrupt, fault.Conflict, fault.Exhausted, fault.Invalid, fault.Unclassified} {
		bad := faulty.New(mem.New(), 1, faulty.Rule{Rate: 1, Err: faulty.Class(c)})
		s, waits := quick(New(bad, Options{}))
		_, err := s.List(t.Context(), "", "", 1)
		require.Equal(t, c, fault.ClassOf(err))
		require.Error(t, s.Fetch(t.Context(), []store.Read{{Key: "o"}})[0].Err)
		_, err = s.PutNew(t.Context(), "o", strings.NewReader("x"))
		require.Error(t, err)
		require.Equal(t, []int{3}, bad.Injected())
		require.Empty(t, *waits)
	}
}

func TestTriesAndWaitsAreBounded(t *testing.T) {
	bad := faulty.New(mem.New(), 1, faulty.Rule{Rate: 1, Err: faulty.Throttled})
	o := Options{Tries: 12, First: time.Second, Most: 9 * time.Second, Budget: time.Hour}
	s, waits := quick(New(bad, o))
	_, err := s.List(t.Context(), "", "", 1)
	require.Equal(t, fault.Exhausted, fault.ClassOf(err))
	require.Equal(t, []int{12}, bad.Injected())
	require.Len(t, *waits, 11)
	for i, w := range *waits {
		require.LessOrEqual(t, w, min(9*time.Second, time.Second<<i))
	}
	o.Tries, o.Budget = 1000, 20*time.Second
	s, waits = quick(New(bad, o))
	require.Error(t, s.Delete(t.Context(), []string{"o"}))
	var sum time.Duration
	for _, w := range *waits {
		sum += w
	}
	require.LessOrEqual(t, sum, 20*time.Second)
	require.Less(t, len(*waits), 999)
}

func TestWaitsEndWithTheContext(t *testing.T) {
	bad := faulty.New(mem.New(), 1, faulty.Rule{Rate: 1, Err: faulty.Throttled})
	ctx, cancel := context.WithCancel(t.Context())
	s := New(bad, Options{})
	s.sleep = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return sleep(ctx, time.Hour)
	}
	require.Error(t, s.Stat(ctx, []string{"o"})[0].Err)
	require.Equal(t, []int{1}, bad.Injected())
}

func TestOnlyFailedReadsAreSentAgain(t *testing.T) {
	inner := mem.New()
	inner.Overwrite("good", []byte("1"))
	inner.Overwrite("bad", []byte("2"))
	s, _ := quick(New(faulty.New(inner, 1, faulty.Rule{Key: func(k string) bool { return k == "bad" }, Nth: 1, Err: faulty.CutShort}), Options{}))
	var used store.Counter
	out := s.Fetch(store.WithCounter(t.Context(), &used), []store.Read{{Key: "good"}, {Key: "bad"}, {Key: "missing"}})
	require.NoError(t, errors.Join(out[0].Err, out[1].Err))
	require.Equal(t, fault.NotFound, fault.ClassOf(out[2].Err))
	require.Equal(t, store.Usage{Waves: 2, Gets: 3, BytesRead: 2}, used.Usage())
}

// TestLostAnswers: a write was done, its answer was lost, and the next try meets what the first one wrote.
func TestLostAnswers(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	for _, content := range [][]byte{nil, []byte("mine"), large} {
		t.Run(fmt.Sprint(len(content)), func(t *testing.T) {
			inner := mem.New()
			lost := func() *Store {
				s, _ := quick(New(faulty.New(inner, 1, faulty.Rule{Nth: 1, After: true, Err: faulty.TimedOut}), Options{}))
				return s
			}
			tag, err := lost().PutNew(t.Context(), "new", bytes.NewReader(content))
			require.NoError(t, err)
			require.Equal(t, inner.Stat(t.Context(), []string{"new"})[0].Tag, tag)
			next, err := lost().PutIf(t.Context(), "new", tag, append([]byte("next "), content...))
			require.NoError(t, err)
			require.Equal(t, inner.Stat(t.Context(), []string{"new"})[0].Tag, next)
		})
	}
}

// TestLostRaceAfterATimeOut: the first try was not done and somebody else wrote meanwhile, of the same length or not.
func TestLostRaceAfterATimeOut(t *testing.T) {
	for _, rival := range []string{"hers", "longer than mine"} {
		inner := mem.New()
		s, _ := quick(New(faulty.New(inner, 1, faulty.Rule{Nth: 1, Err: faulty.TimedOut, Do: func(context.Context, faulty.Op, string) {
			inner.Overwrite("o", []byte(rival))
		}}), Options{}))
		_, err := s.PutNew(t.Context(), "o", strings.NewReader("mine"))
		require.Equal(t, fault.Conflict, fault.ClassOf(err))
		require.Equal(t, rival, string(inner.Fetch(t.Context(), []store.Read{{Key: "o"}})[0].Data[0]))
	}
	inner := mem.New()
	inner.Overwrite("o", []byte("mine"))
	s, _ := quick(New(inner, Options{}))
	_, err := s.PutNew(t.Context(), "o", strings.NewReader("mine"))
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "a first try that conflicts has lost, whatever the bytes")
	throttled, _ := quick(New(faulty.New(inner, 1, faulty.Rule{Nth: 1, Err: faulty.Throttled}), Options{}))
	_, err = throttled.PutNew(t.Context(), "o", strings.NewReader("mine"))
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "throttled is not done")
}
