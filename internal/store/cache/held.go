package cache

import (
	"bytes"
	"cmp"
	"container/list"
	"slices"
	"sync"

	"github.com/skomerdb/skomer/internal/store"
)

// overhead is what a piece costs besides its bytes, roughly.
const overhead = 200

// held is the cached bytes, least recently used first out. Of an object only one tag is held: an object has one content
// at a time, and that of another tag takes its place.
type held struct {
	limit int64

	mu      sync.Mutex
	stats   Stats
	objects map[string]*object
	recent  *list.List // of *piece, most recently used first
}

// object is the pieces of one content. No piece lies within another, so ascending offsets are ascending ends.
type object struct {
	key    string
	tag    store.Tag
	size   int64 // -1: unknown
	pieces []*piece
}

type piece struct {
	of   *object
	off  int64
	data []byte
	at   *list.Element
}

func (p *piece) end() int64 { return p.off + int64(len(p.data)) }

func newHeld(limit int64) held {
	return held{limit: limit, objects: map[string]*object{}, recent: list.New()}
}

func (h *held) snapshot() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stats
}

func (h *held) count(hits, misses, joined int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stats.Hits += int64(hits)
	h.stats.Misses += int64(misses)
	h.stats.Joined += int64(joined)
}

// find gives the bytes of the spans that are held, nil for each that is not, and the tag and size of the object. An empty
// tag asks for whatever is held.
func (h *held) find(key string, tag store.Tag, spans []store.Span) (data [][]byte, got store.Tag, size int64) {
	data = make([][]byte, len(spans))
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.objects[key]
	if o == nil || tag != "" && o.tag != tag {
		return data, tag, -1
	}
	for i, s := range spans {
		data[i] = h.cut(o, s)
	}
	return data, o.tag, o.size
}

// cut gives the bytes of one span, or nil.
func (h *held) cut(o *object, s store.Span) []byte {
	if s.Off < 0 && o.size >= 0 { // a suffix, or whole
		n := o.size
		if s.Off > -o.size {
			n = -s.Off
		}
		s = store.Span{Off: o.size - n, Len: n}
	}
	if s.Off < 0 || s.Len < 0 {
		return nil
	}
	i, found := slices.BinarySearchFunc(o.pieces, s.Off, func(p *piece, off int64) int { return cmp.Compare(p.off, off) })
	if !found {
		i--
	}
	if i < 0 || s.Len > o.pieces[i].end()-s.Off { // not s.End(): it may overflow
		return nil
	}
	p := o.pieces[i]
	h.recent.MoveToFront(p.at)
	lo := s.Off - p.off
	return p.data[lo : lo+s.Len : lo+s.Len]
}

// keep copies data, which begins at off, into the cache.
func (h *held) keep(key string, tag store.Tag, size, off int64, data []byte) {
	if int64(len(data)) > h.limit/4 || len(data) == 0 {
		return
	}
	data = bytes.Clone(data) // it may be a small part of a large request's memory
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.objects[key]
	if o != nil && o.tag != tag {
		h.drop(o)
		o = nil
	}
	if o == nil {
		o = &object{key: key, tag: tag, size: size}
		h.objects[key] = o
	}
	o.size = max(o.size, size)
	h.insert(o, &piece{of: o, off: off, data: data})
	for h.stats.Bytes > h.limit {
		h.remove(h.recent.Back().Value.(*piece))
	}
}

// insert adds a piece unless it lies within another, and removes those that lie within it.
func (h *held) insert(o *object, p *piece) {
	i, found := slices.BinarySearchFunc(o.pieces, p.off, func(q *piece, off int64) int { return cmp.Compare(q.off, off) })
	before := i - 1
	if found {
		before = i
	}
	if before >= 0 && o.pieces[before].end() >= p.end() {
		h.recent.MoveToFront(o.pieces[before].at)
		return
	}
	for i < len(o.pieces) && o.pieces[i].end() <= p.end() {
		h.detach(o.pieces[i])
		o.pieces = slices.Delete(o.pieces, i, i+1)
	}
	o.pieces = slices.Insert(o.pieces, i, p)
	p.at = h.recent.PushFront(p)
	h.stats.Bytes += int64(len(p.data)) + overhead
}

// detach takes a piece out of the order of use.
func (h *held) detach(p *piece) {
	h.recent.Remove(p.at)
	h.stats.Bytes -= int64(len(p.data)) + overhead
}

// remove evicts a piece, and its object with the last one.
func (h *held) remove(p *piece) {
	h.detach(p)
	o := p.of
	o.pieces = slices.DeleteFunc(o.pieces, func(q *piece) bool { return q == p })
	if len(o.pieces) == 0 {
		delete(h.objects, o.key)
	}
}

func (h *held) drop(o *object) {
	for _, p := range o.pieces {
		h.detach(p)
	}
	delete(h.objects, o.key)
}

// forget drops all that is held of a key.
func (h *held) forget(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o := h.objects[key]; o != nil {
		h.drop(o)
	}
}
