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

// Runs keeps opened runs of file maps between queries and forgets the least recently used beyond a number of bytes. It is safe for
// concurrent use.
type Runs struct {
	mu    sync.Mutex
	limit int64
	used  int64
	order *list.List
	byKey map[readerKey]*list.Element
}

type keptRun struct {
	key readerKey
	run *filemap.Run
}

// NewRuns keeps about limit bytes of opened runs.
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
	return k.load(ctx, st, prefix, v, func(e *overlay.Derived) bool { return want(e.Index) }, true)
}

// LoadStored is Load for who keeps the runs: roots that the overlay lists whole are read all the same, so that an object that is gone or
// damaged is noticed.
func (k *Runs) LoadStored(ctx context.Context, st store.Store, prefix string, v *overlay.Version, want func(index string) bool) ([]*ListedRun, error) {
	return k.load(ctx, st, prefix, v, func(e *overlay.Derived) bool { return want(e.Index) }, false)
}

// LoadNamed is LoadStored for the runs with the names.
func (k *Runs) LoadNamed(ctx context.Context, st store.Store, prefix string, v *overlay.Version, names []string) ([]*ListedRun, error) {
	return k.load(ctx, st, prefix, v, func(e *overlay.Derived) bool { return slices.Contains(names, e.Name) }, false)
}

func (k *Runs) load(ctx context.Context, st store.Store, prefix string, v *overlay.Version, want func(*overlay.Derived) bool, inline bool) ([]*ListedRun, error) {
	var out []*ListedRun
	var reads []store.Read
	var who []*ListedRun
	for _, e := range v.Derived(filemap.Kind) {
		if !want(&e) {
			continue
		}
		r := &ListedRun{Derived: e}
		out = append(out, r)
		if r.Meta, r.Err = filemap.ParseMeta(e.Name, e.Meta); r.Err != nil {
			continue
		}
		if inline || len(r.Meta.Root) == 0 {
			if r.Run = k.get(r.key(prefix)); r.Run != nil {
				continue
			}
		}
		if inline && len(r.Meta.Root) > 0 {
			if r.Run, r.Err = r.Meta.OpenChecked(r.Name, r.Meta.Root, r.CRC); r.Err == nil {
				k.put(r.key(prefix), r.Run)
				continue
			}
		}
		reads = append(reads, store.Read{Key: r.key(prefix).bundle, Spans: []store.Span{{Off: e.Off, Len: e.Len}}})
		who = append(who, r)
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
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.byKey[key]
	if e == nil {
		return nil
	}
	k.order.MoveToFront(e)
	return e.Value.(*keptRun).run
}

func (k *Runs) put(key readerKey, r *filemap.Run) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byKey[key] != nil || r.Bytes() > k.limit {
		return
	}
	k.byKey[key] = k.order.PushFront(&keptRun{key, r})
	k.used += r.Bytes()
	for k.used > k.limit {
		last := k.order.Remove(k.order.Back()).(*keptRun)
		delete(k.byKey, last.key)
		k.used -= last.run.Bytes()
	}
}

// Bytes is the memory that the kept runs hold.
func (k *Runs) Bytes() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.used
}
