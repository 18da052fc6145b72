package faulty

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/mem"
)

func TestLatencyHasItsQuantiles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	draws := make([]time.Duration, 100_000)
	for i := range draws {
		draws[i] = S3.request(rnd, 0)
	}
	slices.Sort(draws)
	require.InEpsilon(t, 30*time.Millisecond, draws[len(draws)/2], 0.02)
	require.InEpsilon(t, 80*time.Millisecond, draws[len(draws)*99/100], 0.03)
	require.Greater(t, S3.request(rnd, 90e6), time.Second, "90 MB take a second")
}

// TestWaveWaitsForItsSlowestRequest records the waits instead of sleeping.
func TestWaveWaitsForItsSlowestRequest(t *testing.T) {
	l := Latency{P50: time.Hour, P99: time.Hour + 1, BytesPerSecond: 1e6, Gap: 10}
	inner := mem.New()
	inner.Overwrite("o", []byte(strings.Repeat("x", 3_000_000)))
	var waits []time.Duration
	s := Slow(inner, l, 1).(*slow)
	s.sleep = func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}
	near := []store.Span{{Off: 0, Len: 1_000_000}, {Off: 1_000_005, Len: 1_000_000}}
	far := []store.Span{{Off: 0, Len: 1_000_000}, {Off: 1_500_000, Len: 1_000_000}}
	s.Fetch(t.Context(), []store.Read{{Key: "o"}, {Key: "missing"}})
	s.Fetch(t.Context(), []store.Read{{Key: "o", Spans: near}})
	s.Fetch(t.Context(), []store.Read{{Key: "o", Spans: far}, {Key: "o", Spans: far}})
	s.Stat(t.Context(), []string{"o", "o"})
	_, err := s.PutNew(t.Context(), "p", strings.NewReader(strings.Repeat("x", 4_000_000)))
	require.NoError(t, err)
	for i, seconds := range []int{3, 2, 1, 0, 4} {
		want := time.Hour + time.Duration(seconds)*time.Second
		require.InDelta(t, want, waits[i], float64(400*time.Millisecond), "operation %d", i)
	}
}
