package wave

import (
	"container/list"
	"sync"

	"github.com/skomerdb/skomer/internal/index"
)

// readerOverhead is what an opened reader is taken to hold beyond its root, per root byte.
const readerOverhead = 3

// Kept is a byte-bounded Readers that forgets the least recently used.
type Kept struct {
	mu    sync.Mutex
	limit int64
	used  int64
	order *list.List
	byKey map[readerKey]*list.Element

	hits, misses int64
}

type readerKey struct {
	bundle string
	root   int64
}

type keptReader struct {
	key    readerKey
	reader index.Reader
	bytes  int64
}

// NewKept keeps readers whose roots take up to about limit bytes of memory.
func NewKept(limit int64) *Kept {
	return &Kept{limit: limit, order: list.New(), byKey: map[readerKey]*list.Element{}}
}

// Get returns a kept reader or nil.
func (k *Kept) Get(bundle string, root int64) index.Reader {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.byKey[readerKey{bundle, root}]
	if e == nil {
		k.misses++
		return nil
	}
	k.hits++
	k.order.MoveToFront(e)
	return e.Value.(*keptReader).reader
}

// Count is how often Get has returned a reader and nil.
func (k *Kept) Count() (hits, misses int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.hits, k.misses
}

// Put keeps a reader whose root has rootBytes bytes.
func (k *Kept) Put(bundle string, root int64, r index.Reader, rootBytes int) {
	cost := int64(rootBytes)*readerOverhead + 512
	key := readerKey{bundle, root}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byKey[key] != nil || cost > k.limit {
		return
	}
	k.byKey[key] = k.order.PushFront(&keptReader{key, r, cost})
	k.used += cost
	for k.used > k.limit {
		last := k.order.Remove(k.order.Back()).(*keptReader)
		delete(k.byKey, last.key)
		k.used -= last.bytes
	}
}

// Drop forgets every reader of a bundle.
func (k *Kept) Drop(bundle string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for e := k.order.Front(); e != nil; {
		next := e.Next()
		if r := e.Value.(*keptReader); r.key.bundle == bundle {
			k.order.Remove(e)
			delete(k.byKey, r.key)
			k.used -= r.bytes
		}
		e = next
	}
}
