package cache

import (
	"sync"

	"github.com/skomerdb/skomer/internal/store"
)

// flights are the reads that are under way.
type flights struct {
	mu sync.Mutex
	m  map[flightKey]*flight
}

type flightKey struct {
	key  string
	tag  store.Tag
	span store.Span
}

// flight is one span on its way. landed is set before done is closed; without data it failed.
type flight struct {
	key    flightKey
	done   chan struct{}
	landed landed
}

type landed struct {
	data []byte
	tag  store.Tag
	size int64
}

// join gives the flight of k, and whether the caller has to fly it.
func (f *flights) join(k flightKey) (*flight, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old := f.m[k]; old != nil {
		return old, false
	}
	n := &flight{key: k, done: make(chan struct{})}
	f.m[k] = n
	return n, true
}

func (f *flights) land(n *flight, l landed) {
	f.mu.Lock()
	delete(f.m, n.key)
	f.mu.Unlock()
	n.landed = l
	close(n.done)
}
