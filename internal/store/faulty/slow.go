package faulty

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Latency is a model of an object store: each request has a connection of its own, waits for its first byte, and then
// receives at a constant rate. Waits are log-normal with the given median and 99th percentile.
type Latency struct {
	P50, P99       time.Duration
	BytesPerSecond float64
	Gap            int64 // by which reads coalesce in the model; give the store below the same
}

// S3 is like one region of S3.
var S3 = Latency{P50: 30 * time.Millisecond, P99: 80 * time.Millisecond, BytesPerSecond: 90e6, Gap: 512 << 10}

// z99 is the 99th percentile of the standard normal distribution.
const z99 = 2.3263478740408408

// request draws the time that one request for n bytes takes.
func (l Latency) request(rnd *rand.Rand, n int64) time.Duration {
	sigma := math.Log(float64(l.P99)/float64(l.P50)) / z99
	wait := float64(l.P50) * math.Exp(sigma*rnd.NormFloat64())
	return time.Duration(wait + float64(n)/l.BytesPerSecond*float64(time.Second))
}

// bodies is how many bytes each request of a read brought.
func (l Latency) bodies(r store.Read, res store.Result) []int64 {
	if res.Err != nil || res.Size < 0 {
		return []int64{0}
	}
	plan, err := store.PlanRead(r, res.Size, l.Gap)
	if err != nil || len(plan.Requests) == 0 {
		return []int64{0}
	}
	var out []int64
	for _, q := range plan.Requests {
		out = append(out, q.Len)
	}
	return out
}

// slow delays the answers of a store.
type slow struct {
	inner   store.Store
	latency Latency
	sleep   func(context.Context, time.Duration) error

	mu  sync.Mutex
	rnd *rand.Rand
}

// Slow decorates inner with a latency; the time that inner takes itself is part of it. A wave takes as long as its
// slowest request.
func Slow(inner store.Store, l Latency, seed uint64) store.Store {
	return &slow{inner: inner, latency: l, sleep: sleep, rnd: rand.New(rand.NewPCG(seed, 0))}
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// wait sleeps as long as the slowest of several requests, by their bytes, would have taken since start.
func (s *slow) wait(ctx context.Context, start time.Time, requests ...int64) error {
	var longest time.Duration
	s.mu.Lock()
	for _, n := range requests {
		longest = max(longest, s.latency.request(s.rnd, n))
	}
	s.mu.Unlock()
	return s.sleep(ctx, longest-time.Since(start))
}

func (s *slow) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	start := time.Now()
	out := s.inner.Fetch(ctx, reads)
	var requests []int64
	for i, r := range reads {
		requests = append(requests, s.latency.bodies(r, out[i])...)
	}
	if err := s.wait(ctx, start, requests...); err != nil {
		for i, r := range reads {
			out[i] = store.Result{Size: -1, Err: fault.About(r.Key, err)}
		}
	}
	return out
}

func (s *slow) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	start := time.Now()
	tag, err := s.inner.PutNew(ctx, key, r)
	n, seekErr := r.Seek(0, io.SeekEnd)
	if seekErr != nil {
		n = 0
	}
	return s.written(ctx, key, start, n, tag, err)
}

func (s *slow) PutIf(ctx context.Context, key string, old store.Tag, b []byte) (store.Tag, error) {
	start := time.Now()
	tag, err := s.inner.PutIf(ctx, key, old, b)
	return s.written(ctx, key, start, int64(len(b)), tag, err)
}

// written waits for the answer to a write; a caller that gives up meanwhile does not learn it.
func (s *slow) written(ctx context.Context, key string, start time.Time, n int64, tag store.Tag, err error) (store.Tag, error) {
	if waitErr := s.wait(ctx, start, n); waitErr != nil && err == nil {
		return "", fault.About(key, waitErr)
	}
	return tag, err
}

func (s *slow) Stat(ctx context.Context, keys []string) []store.Info {
	start := time.Now()
	out := s.inner.Stat(ctx, keys)
	if err := s.wait(ctx, start, make([]int64, len(keys))...); err != nil {
		for i, key := range keys {
			out[i] = store.Info{Key: key, Err: fault.About(key, err)}
		}
	}
	return out
}

func (s *slow) List(ctx context.Context, prefix, after string, most int) ([]store.Info, error) {
	start := time.Now()
	out, err := s.inner.List(ctx, prefix, after, most)
	if waitErr := s.wait(ctx, start, 0); waitErr != nil && err == nil {
		return nil, fault.About(prefix, waitErr)
	}
	return out, err
}

func (s *slow) Delete(ctx context.Context, keys []string) error {
	start := time.Now()
	err := s.inner.Delete(ctx, keys)
	if waitErr := s.wait(ctx, start, make([]int64, len(keys))...); waitErr != nil && err == nil {
		return waitErr
	}
	return err
}
