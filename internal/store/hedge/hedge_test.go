package hedge

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/mem"
	"github.com/skomerdb/skomer/internal/store/retry"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

// hand is a clock that a test moves.
type hand struct {
	mu     sync.Mutex
	now    time.Time
	asked  []time.Duration
	alarms []chan time.Time
}

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) After(d time.Duration) <-chan time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan time.Time, 1)
	h.asked, h.alarms = append(h.asked, d), append(h.alarms, c)
	return c
}

// ring moves the clock to the last alarm.
func (h *hand) ring() {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.alarms) - 1
	h.now = h.now.Add(h.asked[n])
	h.alarms[n] <- h.now
}

func (h *hand) set() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.alarms) > 0
}

// stuck gives each first read of a key a chance to wait.
type stuck struct {
	*mem.Store
	mu      sync.Mutex
	slow    map[string]chan struct{} // first reads of these keys wait
	asked   map[string]int
	arrived chan string // every read, as it comes
	ended   chan error  // how the reads that waited ended
	fail    func(key string, n int) error
}

func newStuck() *stuck {
	return &stuck{Store: mem.New(), slow: map[string]chan struct{}{}, asked: map[string]int{}, arrived: make(chan string, 1000), ended: make(chan error, 1000)}
}

func (s *stuck) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	key := reads[0].Key
	s.mu.Lock()
	s.asked[key]++
	n, wait := s.asked[key], s.slow[key]
	s.mu.Unlock()
	waits := n == 1 && wait != nil
	if waits {
		store.Count(ctx, store.Usage{Gets: 1})
	}
	s.arrived <- key
	if waits {
		select {
		case <-wait:
		case <-ctx.Done():
			s.ended <- ctx.Err()
			return []store.Result{{Size: -1, Err: fault.About(key, ctx.Err())}}
		}
	}
	if s.fail != nil {
		if err := s.fail(key, n); err != nil {
			return []store.Result{{Size: -1, Err: err}}
		}
	}
	return s.Store.Fetch(ctx, reads)
}

// learned is a store that knows how long reads take and may send every one twice.
func learned(inner store.Store) (*Store, *hand) {
	h := &hand{now: time.Unix(0, 0)}
	s := New(inner, Options{Percent: 100})
	s.clock, s.budget = h, saved
	for c := range classes {
		for range least {
			s.took(c, time.Duration(c+1)*time.Second)
		}
	}
	return s, h
}

func small(key string) store.Read { return store.Read{Key: key, Spans: []store.Span{{Len: 1}}} }

func TestContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Subject {
		return storetest.Subject{Store: New(mem.New(), Options{}), Root: "root/"}
	})
}

// eager is a clock whose alarms ring at once.
type eager struct{ wall }

func (eager) After(time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	c <- time.Time{}
	return c
}

// TestContractWhenAllIsSentTwice: over a store that loses answers, with every read sent twice as soon as it can be.
func TestContractWhenAllIsSentTwice(t *testing.T) {
	seed := storetest.Rand(t).Uint64()
	var hedges int64
	t.Run("contract", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Subject {
			if strings.HasSuffix(t.Name(), "/Usage") {
				t.Skip("second requests cost requests")
			}
			bad := faulty.New(mem.New(), seed, faulty.Rule{Op: faulty.Fetch, Rate: 0.2, Err: faulty.CutShort})
			s, _ := learned(bad)
			s.clock = eager{}
			var used store.Counter
			t.Cleanup(func() { hedges += used.Usage().Hedges })
			return storetest.Subject{Store: counted{retry.New(s, retry.Options{Tries: 30, First: time.Microsecond}), &used}, Root: "root/"}
		})
	})
	require.Positive(t, hedges)
}

type counted struct {
	*retry.Store
	used *store.Counter
}

func (c counted) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	return c.Store.Fetch(store.WithCounter(ctx, c.used), reads)
}

// TestTheSlowestIsAskedAgain: one read of a wave hangs; the second request answers, the first is cancelled, both are counted.
func TestTheSlowestIsAskedAgain(t *testing.T) {
	inner := newStuck()
	for _, k := range []string{"a", "b", "c"} {
		inner.Overwrite(k, []byte(k))
	}
	inner.slow["b"] = make(chan struct{})
	s, h := learned(inner)
	var used store.Counter
	done := make(chan []store.Result)
	go func() {
		done <- s.Fetch(store.WithCounter(t.Context(), &used), []store.Read{small("a"), small("b"), small("c")})
	}()
	for range 3 {
		<-inner.arrived
	}
	waitUntil(t, h.set)
	waitUntil(t, func() bool { return s.learned(0) == least+2 }) // a and c are answered
	h.ring()
	require.Equal(t, "b", <-inner.arrived, "only the read that is late is sent again")
	for i, r := range <-done {
		require.NoError(t, r.Err)
		require.Equal(t, string("abc"[i]), string(r.Data[0]))
	}
	require.ErrorIs(t, <-inner.ended, context.Canceled, "the loser is cancelled")
	require.Equal(t, store.Usage{Waves: 1, Gets: 4, BytesRead: 3, Hedges: 1}, used.Usage())
	require.Equal(t, []time.Duration{time.Second}, h.asked, "the delay is that of reads of this size")
}

// learned is how many reads of a class were answered.
func (s *Store) learned(class int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[class].n
}

func waitUntil(t *testing.T, f func() bool) {
	t.Helper()
	require.Eventually(t, f, time.Minute, time.Millisecond)
}

// TestAnErrorWaitsForTheOtherAttempt: trouble that passes does not win against a request that is still on its way; what is certain does.
func TestAnErrorWaitsForTheOtherAttempt(t *testing.T) {
	for name, second := range map[string]error{"passing": faulty.Throttled("o"), "certain": fault.New(fault.Stale, "o", "changed")} {
		t.Run(name, func(t *testing.T) {
			inner := newStuck()
			inner.Overwrite("o", []byte("x"))
			free := make(chan struct{})
			inner.slow["o"] = free
			inner.fail = func(_ string, n int) error {
				if n == 2 {
					if fault.Retryable(second) {
						close(free) // the first goes on only now
					}
					return second
				}
				return nil
			}
			s, h := learned(inner)
			done := make(chan []store.Result)
			go func() { done <- s.Fetch(t.Context(), []store.Read{small("o")}) }()
			<-inner.arrived
			waitUntil(t, h.set)
			h.ring()
			r := (<-done)[0]
			if fault.Retryable(second) {
				require.NoError(t, r.Err)
			} else {
				require.Equal(t, fault.Stale, fault.ClassOf(r.Err))
			}
		})
	}
}

// TestSecondRequestsAreFew: whatever is slow, no more than the share is sent twice, and what was saved up.
func TestSecondRequestsAreFew(t *testing.T) {
	inner := mem.New()
	inner.Overwrite("o", []byte("x"))
	s, _ := learned(inner)
	s.clock, s.options.Percent, s.budget = eager{}, DefaultPercent, 0
	var used store.Counter
	ctx := store.WithCounter(t.Context(), &used)
	const waves, each = 200, 10
	for range waves {
		reads := make([]store.Read, each)
		for i := range reads {
			reads[i] = small("o")
		}
		for _, r := range s.Fetch(ctx, reads) {
			require.NoError(t, r.Err)
		}
	}
	u := used.Usage()
	require.LessOrEqual(t, u.Hedges, int64(waves*each*DefaultPercent/100))
	require.EqualValues(t, waves, u.Waves)
	require.LessOrEqual(t, u.Gets, int64(waves*each)+u.Hedges)
}

func TestNothingIsSentTwice(t *testing.T) {
	for name, c := range map[string]func(*Store) store.Read{
		"while requests wait":    func(s *Store) store.Read { s.options.Busy = func() bool { return true }; return small("o") },
		"without a budget":       func(s *Store) store.Read { s.budget, s.options.Percent = 0, 0.001; return small("o") },
		"before it has learned":  func(s *Store) store.Read { s.seen = [classes]window{}; return small("o") },
		"if it is large":         func(*Store) store.Read { return store.Read{Key: "o", Spans: []store.Span{{Len: 16<<20 + 1}}} },
		"if its size is unknown": func(*Store) store.Read { return store.Read{Key: "o"} },
	} {
		t.Run(name, func(t *testing.T) {
			inner := newStuck()
			inner.Overwrite("o", bytes.Repeat([]byte("x"), 16<<20+1))
			s, _ := learned(inner)
			s.clock = eager{}
			read := c(s)
			for range least {
				require.NoError(t, s.Fetch(t.Context(), []store.Read{read})[0].Err)
			}
			require.Equal(t, least, inner.asked["o"])
		})
	}
}

// TestWritesAreNeverSentTwice: whatever else is slow.
func TestWritesAreNeverSentTwice(t *testing.T) {
	never := faulty.New(mem.New(), 1)
	s, _ := learned(never)
	s.clock = eager{}
	var used store.Counter
	ctx := store.WithCounter(t.Context(), &used)
	tag, err := s.PutNew(ctx, "o", strings.NewReader("x"))
	require.NoError(t, err)
	_, err = s.PutIf(ctx, "o", tag, []byte("y"))
	require.NoError(t, err)
	require.Equal(t, store.Usage{Puts: 2, BytesWritten: 2}, used.Usage())
}

func TestTheDelayFollowsTheStore(t *testing.T) {
	s := New(mem.New(), Options{})
	_, ok := s.delay(0)
	require.False(t, ok)
	for i := range 100 {
		s.took(0, time.Duration(i%20+1)*time.Millisecond)
	}
	d, ok := s.delay(0)
	require.True(t, ok)
	require.InDelta(t, float64(20*time.Millisecond), float64(d), float64(time.Millisecond))
	for range recent {
		s.took(0, time.Second)
	}
	d, _ = s.delay(0)
	require.Equal(t, time.Second, d)
	_, ok = s.delay(1)
	require.False(t, ok, "of other sizes nothing is known")
}

func TestClasses(t *testing.T) {
	for n, want := range map[int64]int{0: 0, 1: 0, 256 << 10: 0, 256<<10 + 1: 1, 1 << 20: 1, 4 << 20: 2, 16 << 20: 3, 16<<20 + 1: -1, 1 << 62: -1} {
		require.Equal(t, want, classOf(store.Read{Spans: []store.Span{{Len: n}}}), fmt.Sprint(n))
		if n > 0 {
			require.Equal(t, want, classOf(store.Read{Spans: []store.Span{store.Suffix(n)}}), fmt.Sprint(n))
		}
	}
	require.Equal(t, 3, classOf(store.Read{Spans: []store.Span{{Len: 8 << 20}, {Len: 8 << 20}}}))
	require.Equal(t, -1, classOf(store.Read{Spans: []store.Span{{Len: 1 << 62}, {Len: 1 << 62}}}))
}
