package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/cache"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/store/mem"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

func TestContract(t *testing.T) {
	for name, limit := range map[string]int64{"Roomy": 64 << 20, "Tight": 2000, "Nothing": 0} {
		t.Run("Mem"+name, func(t *testing.T) {
			storetest.Run(t, func(*testing.T) storetest.Subject {
				return storetest.Subject{Store: cache.New(mem.New(), limit, nil), Root: "root/"}
			})
		})
	}
	t.Run("Local", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Subject {
			dir := t.TempDir()
			return storetest.Subject{Store: cache.New(local.New(), 64<<20, nil), Root: dir + "/"}
		})
	})
}

// probe is a store that counts spans and can hold them up or fail.
type probe struct {
	*mem.Store
	spans  atomic.Int64
	before func(ctx context.Context) error
}

func (p *probe) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	for _, r := range reads {
		p.spans.Add(int64(max(1, len(r.Spans))))
	}
	if p.before != nil {
		if err := p.before(ctx); err != nil {
			out := make([]store.Result, len(reads))
			for i := range out {
				out[i].Err = err
			}
			return out
		}
	}
	return p.Store.Fetch(ctx, reads)
}

func immutable(key string) bool { return strings.HasSuffix(key, ".puffin") }

func read(t *testing.T, s store.Store, key string, tag store.Tag, spans ...store.Span) []string {
	t.Helper()
	r := s.Fetch(t.Context(), []store.Read{{Key: key, Tag: tag, Spans: spans}})[0]
	require.NoError(t, r.Err)
	var out []string
	for _, b := range r.Data {
		out = append(out, string(b))
	}
	return out
}

func TestServesWhatLiesWithinASpan(t *testing.T) {
	p := &probe{Store: mem.New()}
	s := cache.New(p, 1<<20, nil)
	tag := p.Overwrite("o", []byte("0123456789"))
	require.Equal(t, []string{"23456"}, read(t, s, "o", tag, store.Span{Off: 2, Len: 5}))
	require.EqualValues(t, 1, p.spans.Load())
	require.Equal(t, []string{"34", "23456", "6", ""}, read(t, s, "o", tag, store.Span{Off: 3, Len: 2}, store.Span{Off: 2, Len: 5}, store.Span{Off: 6, Len: 1}, store.Span{Off: 4}))
	require.EqualValues(t, 1, p.spans.Load())
	require.Equal(t, []string{"34", "67"}, read(t, s, "o", tag, store.Span{Off: 3, Len: 2}, store.Span{Off: 6, Len: 2}))
	require.EqualValues(t, 2, p.spans.Load(), "only what is missing is read")
	require.Equal(t, []string{"89"}, read(t, s, "o", tag, store.Suffix(2)))
	require.Equal(t, []string{"9", "8"}, read(t, s, "o", tag, store.Suffix(1), store.Span{Off: 8, Len: 1}))
	require.EqualValues(t, 3, p.spans.Load(), "a suffix is a span")
	require.Equal(t, []string{"0123456789"}, read(t, s, "o", tag))
	require.Equal(t, []string{"0123456789", "6789", "0123456789"}, read(t, s, "o", tag, store.Span{Len: 10}, store.Suffix(4), store.Suffix(99)))
	require.Equal(t, []string{"0123456789"}, read(t, s, "o", tag))
	require.EqualValues(t, 4, p.spans.Load(), "the whole object is a span")
	r := s.Fetch(t.Context(), []store.Read{{Key: "o", Tag: tag, Spans: []store.Span{{Off: 8, Len: 3}}}})[0]
	require.Equal(t, fault.Corrupt, fault.ClassOf(r.Err))
	require.Equal(t, store.Result{Data: [][]byte{[]byte("0")}, Tag: tag, Size: 10}, s.Fetch(t.Context(), []store.Read{{Key: "o", Tag: tag, Spans: []store.Span{{Len: 1}}}})[0])
}

func TestNeverBytesOfAnotherTag(t *testing.T) {
	p := &probe{Store: mem.New()}
	s := cache.New(p, 1<<20, nil)
	old := p.Overwrite("o", []byte("old"))
	require.Equal(t, []string{"old"}, read(t, s, "o", ""))
	require.Equal(t, []string{"old"}, read(t, s, "o", old), "kept under the tag that came back")
	require.EqualValues(t, 1, p.spans.Load())
	tag := p.Overwrite("o", []byte("new"))
	require.Equal(t, []string{"new"}, read(t, s, "o", ""), "without a tag a key that may change is read")
	require.Equal(t, []string{"new"}, read(t, s, "o", tag))
	require.EqualValues(t, 2, p.spans.Load())
	r := s.Fetch(t.Context(), []store.Read{{Key: "o", Tag: old}})[0]
	require.Equal(t, fault.Stale, fault.ClassOf(r.Err))
}

func TestImmutableKeysNeedNoTag(t *testing.T) {
	p := &probe{Store: mem.New()}
	s := cache.New(p, 1<<20, immutable)
	tag := p.Overwrite("a.puffin", []byte("0123456789"))
	for range 3 {
		r := s.Fetch(t.Context(), []store.Read{{Key: "a.puffin", Spans: []store.Span{{Off: 1, Len: 3}}}})[0]
		require.Equal(t, store.Result{Data: [][]byte{[]byte("123")}, Tag: tag, Size: 10}, r)
	}
	require.EqualValues(t, 1, p.spans.Load())
	require.Equal(t, []string{"12", "4"}, read(t, s, "a.puffin", "", store.Span{Off: 1, Len: 2}, store.Span{Off: 4, Len: 1}))
	require.EqualValues(t, 2, p.spans.Load())
	require.NoError(t, s.Delete(t.Context(), []string{"a.puffin"}))
	r := s.Fetch(t.Context(), []store.Read{{Key: "a.puffin", Spans: []store.Span{{Off: 1, Len: 3}}}})[0]
	require.Equal(t, fault.NotFound, fault.ClassOf(r.Err), "a delete that went through the cache is noticed")
}

func TestErrorsAreNotKept(t *testing.T) {
	broken := errors.New("broken")
	p := &probe{Store: mem.New(), before: func(context.Context) error { return broken }}
	s := cache.New(p, 1<<20, immutable)
	tag := p.Overwrite("a.puffin", []byte("0123456789"))
	for range 2 {
		r := s.Fetch(t.Context(), []store.Read{{Key: "a.puffin", Tag: tag}, {Key: "a.puffin"}})
		require.ErrorIs(t, r[0].Err, broken)
		require.ErrorIs(t, r[1].Err, broken)
	}
	p.before = nil
	require.Equal(t, []string{"0123456789"}, read(t, s, "a.puffin", tag))
}

func TestIdenticalReadsAreOne(t *testing.T) {
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	p := &probe{Store: mem.New(), before: func(context.Context) error {
		arrived <- struct{}{}
		<-release
		return nil
	}}
	s := cache.New(p, 1<<20, nil)
	tag := p.Overwrite("o", []byte("0123456789"))
	var wg sync.WaitGroup
	one := func() {
		r := s.Fetch(t.Context(), []store.Read{{Key: "o", Tag: tag, Spans: []store.Span{{Len: 4}, {Len: 4}}}})[0]
		if r.Err != nil || string(r.Data[0]) != "0123" || string(r.Data[1]) != "0123" || r.Tag != tag {
			t.Errorf("%v", r)
		}
	}
	wg.Go(one)
	<-arrived
	for range 10 {
		wg.Go(one)
	}
	for s.Stats().Joined < 21 { // ten times two, and the second span of the first
		time.Sleep(time.Millisecond)
	}
	close(release)
	wg.Wait()
	require.EqualValues(t, 1, p.spans.Load())
}

// TestWaitersDoNotInheritFailure: whoever waits for a read that fails or is cancelled reads itself.
func TestWaitersDoNotInheritFailure(t *testing.T) {
	arrived := make(chan struct{})
	var calls atomic.Int64
	p := &probe{Store: mem.New(), before: func(ctx context.Context) error {
		if calls.Add(1) > 1 {
			return nil
		}
		close(arrived)
		<-ctx.Done()
		return ctx.Err()
	}}
	s := cache.New(p, 1<<20, nil)
	tag := p.Overwrite("o", []byte("0123456789"))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if r := s.Fetch(ctx, []store.Read{{Key: "o", Tag: tag}}); !errors.Is(r[0].Err, context.Canceled) {
			t.Errorf("%v", r[0].Err)
		}
	})
	<-arrived
	wg.Go(func() {
		if r := s.Fetch(t.Context(), []store.Read{{Key: "o", Tag: tag}}); r[0].Err != nil || string(r[0].Data[0]) != "0123456789" {
			t.Errorf("%v", r[0])
		}
	})
	wg.Go(func() { // one that gives up while it waits
		impatient, stop := context.WithCancel(t.Context())
		go func() {
			for s.Stats().Joined < 2 {
				time.Sleep(time.Millisecond)
			}
			stop()
		}()
		if r := s.Fetch(impatient, []store.Read{{Key: "o", Tag: tag}}); !errors.Is(r[0].Err, context.Canceled) {
			t.Errorf("%v", r[0].Err)
		}
		cancel()
	})
	wg.Wait()
}

func TestStaysWithinItsBytes(t *testing.T) {
	p := &probe{Store: mem.New()}
	const limit = 100_000
	s := cache.New(p, limit, immutable)
	content := strings.Repeat("0123456789", 1000)
	for i := range 100 {
		p.Overwrite(fmt.Sprintf("%d.puffin", i), []byte(content))
	}
	for round := range 3 {
		for i := range 100 {
			key := fmt.Sprintf("%d.puffin", i)
			read(t, s, key, "", store.Span{Off: int64(round), Len: 3000}, store.Span{Off: 5000, Len: int64(1 + i)})
			read(t, s, "0.puffin", "", store.Span{Len: 10}) // what is used stays
			require.LessOrEqual(t, s.Stats().Bytes, int64(limit))
		}
	}
	require.Greater(t, s.Stats().Bytes, int64(limit/2), "the cache is used")
	before := p.spans.Load()
	read(t, s, "0.puffin", "", store.Span{Len: 10})
	require.Equal(t, before, p.spans.Load(), "the most used piece was evicted")
	p.Overwrite("large.puffin", []byte(strings.Repeat("x", limit/2)))
	held := s.Stats().Bytes
	read(t, s, "large.puffin", "")
	require.Equal(t, held, s.Stats().Bytes, "one large object does not sweep the cache")
}

// TestRandomAgainstNoCache reads random spans of objects that are overwritten, with and without tags, and compares with
// the store itself.
func TestRandomAgainstNoCache(t *testing.T) {
	rnd := storetest.Rand(t)
	p := &probe{Store: mem.New(mem.WithGap(0))}
	s := cache.New(p, 20_000, immutable)
	tags := map[string]store.Tag{}
	keys := []string{"a", "b", "c.puffin", "d.puffin"}
	overwrite := func(key string) {
		b := make([]byte, 1+rnd.IntN(3000))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		tags[key] = p.Overwrite(key, b)
	}
	for _, k := range keys {
		overwrite(k)
	}
	for range 20_000 {
		key := keys[rnd.IntN(len(keys))]
		if !immutable(key) && rnd.IntN(50) == 0 {
			overwrite(key)
		}
		r := store.Read{Key: key}
		if rnd.IntN(2) == 0 {
			r.Tag = tags[key]
		}
		for range rnd.IntN(4) {
			span := store.Span{Off: rnd.Int64N(3000), Len: rnd.Int64N(300)}
			if rnd.IntN(4) == 0 {
				span = store.Suffix(rnd.Int64N(3500))
			}
			r.Spans = append(r.Spans, span)
		}
		want, got := p.Store.Fetch(t.Context(), []store.Read{r})[0], s.Fetch(t.Context(), []store.Read{r})[0]
		require.Equal(t, fault.ClassOf(want.Err), fault.ClassOf(got.Err), "%v: %v", want.Err, got.Err)
		require.Equal(t, want.Data, got.Data)
		if want.Err == nil {
			require.Equal(t, want, got)
		}
	}
	st := s.Stats()
	require.Greater(t, st.Hits, int64(1000))
	require.Greater(t, st.Misses, int64(1000))
}
