package lake

import (
	"container/list"
	"sync"

	"github.com/skomerdb/skomer/internal/lake/manifest"
)

// cache keeps decoded manifests by location, least recently used first out, up to a number of bytes. Manifests are
// immutable, so an entry never goes stale.
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

func (c *cache) put(location string, m *manifest.Manifest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes := m.Bytes()
	if c.items[location] != nil || bytes > c.limit {
		return
	}
	c.items[location] = c.order.PushFront(&cached{location, m, bytes})
	c.used += bytes
	for c.used > c.limit {
		oldest := c.order.Back()
		old := c.order.Remove(oldest).(*cached)
		delete(c.items, old.location)
		c.used -= old.bytes
	}
}
