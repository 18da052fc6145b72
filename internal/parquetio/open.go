package parquetio

import (
	"container/list"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// TailBytes is the first suffix read of a data file: footer and, with most writers, the page index before it.
const TailBytes = 64 << 10

// Footers keeps parsed footers by path and entity tag, up to a number of bytes. It is safe for concurrent use.
type Footers struct {
	mu     sync.Mutex
	limit  int64
	used   int64
	order  *list.List
	byPath map[string]*list.Element

	hits, misses int64
}

type footer struct {
	path  string
	tag   store.Tag
	file  *File
	bytes int64
}

// NewFooters keeps up to limit bytes of footers.
func NewFooters(limit int64) *Footers {
	return &Footers{limit: limit, order: list.New(), byPath: map[string]*list.Element{}}
}

func (c *Footers) get(path string, tag store.Tag) *footer {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byPath[path]
	if e == nil {
		c.misses++
		return nil
	}
	f := e.Value.(*footer)
	if tag != "" && tag != f.tag {
		c.misses++
		return nil
	}
	c.hits++
	c.order.MoveToFront(e)
	return f
}

// Has reports whether the footer of a file is kept, as it was under a tag.
func (c *Footers) Has(path string, tag store.Tag) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byPath[path]
	return e != nil && e.Value.(*footer).tag == tag
}

// Count is how many footers were asked for and kept, and were not.
func (c *Footers) Count() (hits, misses int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hits, c.misses
}

func (c *Footers) put(f *footer) {
	f.bytes = f.file.MemorySize() + int64(len(f.path)) + 256
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(f.path)
	c.byPath[f.path] = c.order.PushFront(f)
	c.used += f.bytes
	for c.used > c.limit && c.order.Len() > 1 {
		c.remove(c.order.Back().Value.(*footer).path)
	}
}

// Forget drops the footer of a file.
func (c *Footers) Forget(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(path)
}

func (c *Footers) remove(path string) {
	if e := c.byPath[path]; e != nil {
		c.used -= e.Value.(*footer).bytes
		c.order.Remove(e)
		delete(c.byPath, path)
	}
}

// Opened is a data file whose footer is known.
type Opened struct {
	File *File
	Tag  store.Tag
	Size int64
	Tail Held // bytes of the tail that came with the footer
}

// Open reads the footers of files in at most two waves: one for all tails, one more for footers that are longer. Errors are
// per file: errs runs parallel to paths. tags that are not empty must match.
func Open(ctx context.Context, st store.Store, cache *Footers, paths []string, tags []store.Tag) (files []*Opened, errs []error) {
	files = make([]*Opened, len(paths))
	errs = make([]error, len(paths))
	want := make(map[int]int64)
	for i, p := range paths {
		if f := cache.get(p, tags[i]); f != nil {
			files[i] = &Opened{File: f.file, Tag: f.tag, Size: f.file.Size()}
			continue
		}
		want[i] = TailBytes
	}
	for round := 0; len(want) > 0; round++ {
		ids := slices.Sorted(maps.Keys(want))
		reads := make([]store.Read, len(ids))
		for k, i := range ids {
			reads[k] = store.Read{Key: paths[i], Tag: tags[i], Spans: []store.Span{store.Suffix(want[i])}}
		}
		for k, res := range st.Fetch(ctx, reads) {
			i := ids[k]
			n := want[i]
			delete(want, i)
			if res.Err != nil {
				errs[i] = res.Err
				continue
			}
			tail := res.Data[0]
			pf, need, err := ParseFooter(paths[i], tail, res.Size, res.Tag)
			switch {
			case err != nil:
				errs[i] = err
			case need > n && round == 0:
				want[i] = need
			case need > 0:
				errs[i] = fault.New(fault.Corrupt, paths[i], "footer asks for %d bytes after %d were read", need, n)
			default:
				o := &Opened{File: pf, Tag: res.Tag, Size: res.Size}
				o.Tail.Add(res.Size-int64(len(tail)), tail)
				files[i] = o
				cache.put(&footer{path: paths[i], tag: res.Tag, file: pf})
			}
		}
	}
	return files, errs
}

// HasFieldIDs reports whether columns are found by field id: the file has any.
func (f *File) HasFieldIDs() bool { return f.hasIDs }

// Clear forgets everything.
func (c *Footers) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.Init()
	clear(c.byPath)
	c.used = 0
}
