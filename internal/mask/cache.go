package mask

import (
	"container/list"
	"sync"
)

// Cache keeps decoded deletes up to a number of bytes, the least recently used going first. It is safe for concurrent use.
// Its values are immutable.
type Cache struct {
	mu    sync.Mutex
	limit int64
	used  int64
	order *list.List
	byKey map[any]*list.Element

	hits, misses int64
}

type cached struct {
	key   any
	value any
	bytes int64
}

// NewCache keeps up to limit bytes.
func NewCache(limit int64) *Cache {
	return &Cache{limit: limit, order: list.New(), byKey: map[any]*list.Element{}}
}

// Used is the bytes that are kept.
func (c *Cache) Used() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

// Count is how many values were asked for and kept, and were not.
func (c *Cache) Count() (hits, misses int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hits, c.misses
}

func get[V any](c *Cache, key any) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		c.misses++
		return v, false
	}
	c.hits++
	c.order.MoveToFront(e)
	v, ok = e.Value.(*cached).value.(V)
	return v, ok
}

// put keeps a value of about so many bytes. One that is larger than the whole cache is not kept.
func (c *Cache) put(key, value any, bytes int64) {
	bytes += 200
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(c.byKey[key])
	if bytes > c.limit {
		return
	}
	c.byKey[key] = c.order.PushFront(&cached{key, value, bytes})
	c.used += bytes
	for c.used > c.limit {
		c.remove(c.order.Back())
	}
}

func (c *Cache) remove(e *list.Element) {
	if e == nil {
		return
	}
	old := e.Value.(*cached)
	c.used -= old.bytes
	c.order.Remove(e)
	delete(c.byKey, old.key)
}

// The keys. All parts are facts of immutable files, so that a value is never wrong, only no longer wanted.
type (
	// identity is an object of the table as its manifest states it.
	identity struct {
		Path string
		Size int64
	}
	// contentKey is a position delete file, read whole.
	contentKey struct{ File identity }
	// positionKey is the merged position deletes of a data file: Deletes is the sorted set of delete file identities.
	positionKey struct {
		Stated  string
		File    identity
		Deletes string
	}
	// vectorKey is a deletion vector.
	vectorKey struct {
		File           identity
		Offset, Length int64
	}
	// keysKey is the key rows of an equality delete file, read as the types that Columns names.
	keysKey struct {
		File    identity
		Columns string
	}
	// pairKey is what one equality delete file deletes from one incarnation of a data file.
	pairKey struct {
		Data    identity
		Tag     string
		Delete  identity
		Columns string
	}
)

// Clear forgets everything.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.Init()
	clear(c.byKey)
	c.used = 0
}
