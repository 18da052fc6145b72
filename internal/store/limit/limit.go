// Package limit answers: may one more request be on its way to this store? Backends ask a gate before every physical request,
// and tell it how the request went.
//
// A gate is wide open at first. When the server throttles, it narrows by half, and then widens by one request per round of
// successes: additive increase, multiplicative decrease (Chiu and Jain, Analysis of the Increase and Decrease Algorithms for
// Congestion Avoidance in Computer Networks, 1989). Requests that were on their way when it narrowed do not narrow it again: they
// tell of the same moment.
//
// It knows nothing of objects, and does not try again.
package limit

import (
	"container/list"
	"context"
	"sync"

	"github.com/skomerdb/skomer/internal/fault"
)

// Default is how many requests of a store are on their way at once, unless it is configured.
const Default = 64

// Gate bounds how many requests are on their way. It is safe for concurrent use.
type Gate struct {
	most int

	mu       sync.Mutex
	width    float64 // from 1 to most: how many may be on their way now
	inside   int
	waiting  list.List // of chan struct{}, closed when its owner may enter
	narrowed uint64    // how often the gate was narrowed
}

// New makes a gate for most requests; 0: Default.
func New(most int) *Gate {
	if most <= 0 {
		most = Default
	}
	return &Gate{most: most, width: float64(most)}
}

// Pass is the right to send one request.
type Pass struct {
	gate  *Gate
	round uint64 // how often the gate had been narrowed when the request was sent
}

// Enter waits until a request may be sent. Pass.Leave must follow if it gives no error, which is always the context's.
func (g *Gate) Enter(ctx context.Context) (Pass, error) {
	if err := ctx.Err(); err != nil { // of several ready cases, select takes any
		return Pass{}, err
	}
	g.mu.Lock()
	if g.waiting.Len() == 0 && g.room() {
		defer g.mu.Unlock()
		return g.admit(), nil
	}
	turn := make(chan struct{})
	place := g.waiting.PushBack(turn)
	g.mu.Unlock()
	select {
	case <-turn:
		g.mu.Lock()
		defer g.mu.Unlock()
		return Pass{gate: g, round: g.narrowed}, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-turn: // admitted meanwhile: the place goes to the next
		g.inside--
		g.call()
	default:
		g.waiting.Remove(place)
	}
	return Pass{}, ctx.Err()
}

// room reports whether one more request may be sent. One always may.
func (g *Gate) room() bool { return g.inside < max(1, int(g.width)) }

func (g *Gate) admit() Pass {
	g.inside++
	return Pass{gate: g, round: g.narrowed}
}

// call lets in as many of those who wait as there is room for.
func (g *Gate) call() {
	for g.waiting.Len() > 0 && g.room() {
		g.inside++
		close(g.waiting.Remove(g.waiting.Front()).(chan struct{}))
	}
}

// Leave tells how the request went. Whatever is no trouble that passes counts as a success: a missing object is an answer.
func (p Pass) Leave(err error) {
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	switch {
	case Throttled(err):
		if p.round == g.narrowed {
			g.width = max(1, g.width/2)
			g.narrowed++
		}
	case !fault.Retryable(err):
		g.width = min(float64(g.most), g.width+1/g.width)
	}
	g.call()
}

// Each sends one request of every key, side by side, and waits for all of them. It gives the first error by the order of keys; those
// behind a key whose request could not be sent, because ctx ended, are not sent either.
func (g *Gate) Each(ctx context.Context, keys []string, send func(key string) error) error {
	errs := make([]error, len(keys))
	var wg sync.WaitGroup
	for i, key := range keys {
		pass, err := g.Enter(ctx)
		if err != nil {
			errs[i] = fault.About(key, err)
			break
		}
		wg.Go(func() {
			errs[i] = send(key)
			pass.Leave(errs[i])
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Throttled reports whether a server asked for fewer requests.
func Throttled(err error) bool { return fault.Is(err, fault.Exhausted) && fault.Retryable(err) }

// Width is how many requests may be on their way now.
func (g *Gate) Width() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(1, int(g.width))
}

// Crowded reports whether requests wait for their turn: a slow answer then does not tell of a slow server.
func (g *Gate) Crowded() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting.Len() > 0
}
