package retry

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/mem"
)

func unanswered(key string) error { return fault.New(fault.Unreachable, key, "injected").WithRetry() }

// hang is an operation without an end of its own.
func hang(ctx context.Context, _ faulty.Op, _ string) { <-ctx.Done() }

// TestHurryTriesFewTimes: what gets no answer is tried three times, what is throttled as often as ever, and after one answer everything is.
func TestHurryTriesFewTimes(t *testing.T) {
	down := false
	bad := faulty.New(mem.New(), 1, faulty.Rule{Rate: 1, Err: func(key string) error {
		switch {
		case down:
			return unanswered(key)
		case strings.HasPrefix(key, "busy"):
			return faulty.Throttled(key)
		}
		return fault.New(fault.NotFound, key, "injected")
	}})
	s, _ := quick(New(bad, Options{Tries: 7}))
	ctx, end := Hurry(t.Context(), time.Hour)
	defer end()
	made := func(ask func()) int {
		before := bad.Injected()[0]
		ask()
		return bad.Injected()[0] - before
	}
	require.Equal(t, 7, made(func() { s.Stat(ctx, []string{"busy"}) }))
	down = true
	require.Equal(t, 3, made(func() { s.Stat(ctx, []string{"o"}) }))
	require.Equal(t, 3, made(func() { _, _ = s.List(ctx, "", "", 1) }))
	require.Equal(t, 6, made(func() { s.Fetch(ctx, []store.Read{{Key: "o"}, {Key: "p"}}) }))
	require.Equal(t, 7, made(func() { s.Stat(t.Context(), []string{"o"}) }), "who is in no hurry is patient")
	down = false
	require.Equal(t, 1, made(func() { s.Stat(ctx, []string{"o"}) }))
	down = true
	require.Equal(t, 7, made(func() { s.Stat(ctx, []string{"o"}) }))
}

// TestHurryEndsInTime: a server that is silent is left when the time is over; one that has answered once, or was not asked, is not.
func TestHurryEndsInTime(t *testing.T) {
	slow := func(key string) bool { return key == "slow" }
	for name, c := range map[string]struct {
		most  time.Duration
		first string // "": nothing
		ends  bool
	}{
		"silent": {2 * time.Second, "slow", true}, "answered": {2 * time.Second, "o", false}, "not asked": {2 * time.Second, "", false}, "no bound": {0, "slow", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(faulty.New(mem.New(), 1, faulty.Rule{Rate: 1, Key: slow, Do: hang, Err: unanswered}), Options{})
				outer, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				ctx, end := Hurry(outer, c.most)
				defer end()
				if c.first != "" {
					s.Stat(ctx, []string{c.first})
				}
				start := time.Now()
				<-time.After(10 * time.Second)
				require.Equal(t, c.ends || c.first == "slow", ctx.Err() != nil)
				require.Equal(t, c.ends, outer.Err() == nil && ctx.Err() != nil, "%s", time.Since(start))
			})
		})
	}
}
