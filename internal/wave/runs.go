package wave

import (
	"container/list"
	"context"
	"slices"
	"sync"

	"github.com/skomerdb/skomer/internal/filemap"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// Runs keeps opened runs of file maps, and the layouts of their files, between queries and forgets the least recently used beyond a number of bytes. It is safe for
// concurrent use.
type Runs struct {
	mu    sync.Mutex
	limit int64
	used  int64
	order *list.List
	byKey map[readerKey]*list.Element
}

// keptRun is a run, or the layouts of one.
type keptRun struct {
	key     readerKey
	run     *filemap.Run
	layouts *filemap.Layouts
	bytes   int64
}

// NewRuns keeps about limit bytes of opened runs and layouts.
func NewRuns(limit int64) *Runs {
	return &Runs{limit: limit, order: list.New(), byKey: map[readerKey]*list.Element{}}
}

// ListedRun is a run as an overlay lists it. Run is nil, and Err tells why, where it could not be read.
type ListedRun struct {
	overlay.Derived
	Meta *filemap.Meta
	Run  *filemap.Run
	Err  error
}

// Load opens every run of the version's file maps that want accepts, in one wave for those that are not kept. prefix is the overlay's. Only a
// cancelled context is an error of the whole.
func (k *Runs) Load(ctx context.Context, st store.Store, prefix string, v *overlay.Version, want func(index string) bool) ([]*ListedRun, error) {
	return k.load(ctx, st, prefix, v, func(e *overlay.Derived) bool { return want(e.Index) }, loading{inline: true})
}

// LoadStored is Load for who keeps the runs: roots that the overlay lists whole are read all the same, so that an object that is gone or
// damaged is noticed.
func (k *Runs) LoadStored(ctx context.Context, st store.Store, prefix string, v *overlay.Version, want func(index string) bool) ([]*ListedRun, error) {
	return k.load(ctx, st, prefix, v, func(e *overlay.Derived) bool { return want(e.Index) }, loading{})
}

// LoadNamed is LoadStored for the runs with the names, and brings the layouts of their files.
func (k *Runs) LoadNamed(ctx context.Context, st store.Store, prefix string, v *overlay.Version, names []string) ([]*ListedRun, error) {
	return k.load(ctx, st, prefix, v, func(e *overlay.Derived) bool { return slices.Contains(names, e.Name) }, loading{layouts: true})
}

// loading is how runs are loaded.
type loading struct {
	inline  bool // roots that the overlay lists whole are not read
	layouts bool // layouts that are not kept are read, too
}

func (k *Runs) load(ctx context.Context, st store.Store, prefix string, v *overlay.Version, want func(*overlay.Derived) bool, how loading) ([]*ListedRun, error) {
	var out []*ListedRun
	var reads []store.Read
	var who []*ListedRun
	beside := map[*ListedRun]*Task{}
	for _, e := range v.Derived(filemap.Kind) {
		if !want(&e) {
			continue
		}
		r := &ListedRun{Derived: e}
		out = append(out, r)
		if r.Meta, r.Err = filemap.ParseMeta(e.Name, e.Meta); r.Err != nil {
			continue
		}
		if how.inline || len(r.Meta.Root) == 0 {
			if r.Run = k.get(r.key(prefix)); r.Run != nil {
				continue
			}
		}
		if how.inline && len(r.Meta.Root) > 0 {
			if r.Run, r.Err = r.Meta.OpenChecked(r.Name, r.Meta.Root, r.CRC); r.Err == nil {
				k.put(r.key(prefix), r.Run)
				continue
			}
		}
		read := store.Read{Key: r.key(prefix).bundle, Spans: []store.Span{{Off: e.Off, Len: e.Len}}}
		if how.layouts {
			for _, t := range k.Layouts(prefix, r).AppendTask(nil) {
				read.Spans, beside[r] = append(read.Spans, t.Steps.Need()...), t
			}
		}
		reads, who = append(reads, read), append(who, r)
	}
	if len(reads) == 0 {
		return out, nil
	}
	results := st.Fetch(ctx, reads)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for i, res := range results {
		r := who[i]
		if r.Err = res.Err; r.Err != nil {
			continue
		}
		if r.Run, r.Err = r.Meta.OpenChecked(r.Name, res.Data[0], r.CRC); r.Err == nil {
			k.put(r.key(prefix), r.Run)
			if t := beside[r]; t != nil {
				t.Err = t.Steps.Feed(res.Data[1:])
			}
		} else if f, ok := st.(forgetter); ok {
			f.Forget(reads[i].Key)
		}
	}
	return out, nil
}

// Unread is the runs of the version's file maps that want accepts and of which Load would read the root, and the bytes of these roots.
func (k *Runs) Unread(prefix string, v *overlay.Version, want func(index string) bool) (runs int, bytes int64) {
	for _, e := range v.Derived(filemap.Kind) {
		if !want(e.Index) || k.get((&ListedRun{Derived: e}).key(prefix)) != nil {
			continue
		}
		if m, err := filemap.ParseMeta(e.Name, e.Meta); err == nil && len(m.Root) == 0 {
			runs, bytes = runs+1, bytes+e.Len
		}
	}
	return runs, bytes
}

func (r *ListedRun) key(prefix string) readerKey { return readerKey{prefix + "/" + r.Key, r.Off} }

func (k *Runs) get(key readerKey) *filemap.Run {
	if e := k.find(key); e != nil {
		return e.run
	}
	return nil
}

func (k *Runs) put(key readerKey, r *filemap.Run) {
	k.keep(&keptRun{key: key, run: r, bytes: r.Bytes()})
}

func (k *Runs) find(key readerKey) *keptRun {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.byKey[key]
	if e == nil {
		return nil
	}
	k.order.MoveToFront(e)
	return e.Value.(*keptRun)
}

func (k *Runs) keep(r *keptRun) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byKey[r.key] != nil || r.bytes > k.limit {
		return
	}
	k.byKey[r.key] = k.order.PushFront(r)
	k.used += r.bytes
	for k.used > k.limit {
		last := k.order.Remove(k.order.Back()).(*keptRun)
		delete(k.byKey, last.key)
		k.used -= last.bytes
	}
}

// Bytes is the memory that the kept runs and layouts hold.
func (k *Runs) Bytes() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.used
}
