package limit

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
)

var slowDown = fault.New(fault.Exhausted, "o", "slow down").WithRetry()

func enter(t *testing.T, g *Gate) Pass {
	t.Helper()
	p, err := g.Enter(t.Context())
	require.NoError(t, err)
	return p
}

// TestU50RequestsAreBounded: many goroutines, few requests at once, and everybody gets a turn.
func TestU50RequestsAreBounded(t *testing.T) {
	g := New(7)
	var now, most atomic.Int64
	var wg sync.WaitGroup
	for range 500 {
		wg.Go(func() {
			p, err := g.Enter(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			n := now.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			now.Add(-1)
			p.Leave(nil)
		})
	}
	wg.Wait()
	require.LessOrEqual(t, most.Load(), int64(7))
	require.Zero(t, g.inside)
	require.False(t, g.Crowded())
}

// TestU51ThrottlingNarrowsTheGate: by half once per round of requests, down to one, and successes widen it again.
func TestU51ThrottlingNarrowsTheGate(t *testing.T) {
	g := New(16)
	var all []Pass
	for range 16 {
		all = append(all, enter(t, g))
	}
	for _, p := range all {
		p.Leave(slowDown)
	}
	require.Equal(t, 8, g.Width(), "requests of one round tell of one moment")
	for range 10 {
		enter(t, g).Leave(slowDown)
	}
	require.Equal(t, 1, g.Width(), "one request may always be sent")
	widths := []int{}
	for range 200 {
		enter(t, g).Leave(nil)
		if w := g.Width(); len(widths) == 0 || widths[len(widths)-1] != w {
			widths = append(widths, w)
		}
	}
	require.Equal(t, []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, widths)
}

func TestOnlyThrottlingNarrows(t *testing.T) {
	g := New(4)
	for _, err := range []error{
		fault.New(fault.NotFound, "o", ""),
		fault.New(fault.Exhausted, "o", "a read of more bytes than allowed"),
		fault.New(fault.Unclassified, "o", "connection broke").WithRetry(),
		context.Canceled,
	} {
		enter(t, g).Leave(err)
		require.Equal(t, 4, g.Width())
	}
}

// TestThoseWhoWait: a narrow gate makes requests wait, in their order; who gives up loses no place for the others.
func TestThoseWhoWait(t *testing.T) {
	g := New(1)
	first := enter(t, g)
	ctx, cancel := context.WithCancel(t.Context())
	gone, order := make(chan error), make(chan int, 2)
	go func() {
		_, err := g.Enter(ctx)
		gone <- err
	}()
	waiting := func(n int) func() bool {
		return func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.waiting.Len() == n
		}
	}
	require.Eventually(t, waiting(1), time.Minute, time.Millisecond)
	for i := range 2 {
		go func() {
			p, err := g.Enter(t.Context())
			if err != nil {
				t.Error(err)
			}
			order <- i
			p.Leave(nil)
		}()
		require.Eventually(t, waiting(2+i), time.Minute, time.Millisecond)
	}
	require.True(t, g.Crowded())
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	first.Leave(nil)
	require.Equal(t, []int{0, 1}, []int{<-order, <-order})
	_, err := g.Enter(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// TestEachSendsAllBehindTheGate: never more at once than the gate lets in, and the first error by the order of keys.
func TestEachSendsAllBehindTheGate(t *testing.T) {
	g := New(2)
	var now, most, sent atomic.Int64
	err := g.Each(t.Context(), []string{"a", "b", "c", "d", "e"}, func(key string) error {
		for n, seen := now.Add(1), most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		defer now.Add(-1)
		sent.Add(1)
		if key == "b" || key == "d" {
			return fault.New(fault.Denied, key, "no")
		}
		return nil
	})
	require.Equal(t, "b: no", err.Error())
	require.EqualValues(t, 5, sent.Load())
	require.LessOrEqual(t, most.Load(), int64(2))

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = g.Each(ended, []string{"a", "b"}, func(string) error { sent.Add(1); return nil })
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, err.Error(), "a")
	require.EqualValues(t, 5, sent.Load())
}
