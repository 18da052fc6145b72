package lake

import (
	"container/list"
	"sync"

	"github.com/skomerdb/skomer/internal/lake/manifest"
)

// cache keeps decoded manifests by location, least recently used first out, up to a number of bytes. Manifests are
// immutable, so an entry never goes stale; one of which more was read takes the place of one of which less was.
type cache struct {
	mu    sync.Mutex
	limit int64
	used  int64
	order *list.List // of *cached, most recent in front
	items map[string]*list.Element
}

type cached struct {
	location string
	m        *manifest.Manifest
	bytes    int64
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, order: list.New(), items: map[string]*list.Element{}}
}

func (c *cache) get(location string) *manifest.Manifest {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.items[location]
	if e == nil {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).m
}

// put keeps m in the place of what is kept of the manifest, which says less.
func (c *cache) put(location string, m *manifest.Manifest) {
	bytes := m.Bytes()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.items[location])
	if bytes > c.limit {
		return
	}
	c.items[location] = c.order.PushFront(&cached{location, m, bytes})
	c.used += bytes
	for c.used > c.limit {
		c.remove(c.order.Back())
	}
}

func (c *cache) remove(e *list.Element) {
	if e == nil {
		return
	}
	old := c.order.Remove(e).(*cached)
	delete(c.items, old.location)
	c.used -= old.bytes
}
