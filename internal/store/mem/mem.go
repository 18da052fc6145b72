// Package mem answers: what if the object store were a map? It holds objects in memory, for tests, benches and demos.
//
// A tag is the generation of the object, unique within the store: an object that is deleted and created again has
// another one. Keys are any non-empty string.
package mem

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Gap is the coalescing gap in bytes unless WithGap says otherwise.
const Gap = 16 << 10

// Store is an object store in memory.
type Store struct {
	gap   int64
	clock func() time.Time

	mu      sync.RWMutex
	objects map[string]object
	keys    []string // of objects, ascending
	gen     uint64
}

type object struct {
	data     []byte // never changed
	tag      store.Tag
	modified time.Time
}

var _ store.Store = (*Store)(nil)

// Option configures New.
type Option func(*Store)

// WithGap sets the coalescing gap in bytes.
func WithGap(n int64) Option { return func(s *Store) { s.gap = n } }

// WithClock sets the clock that stamps objects.
func WithClock(now func() time.Time) Option { return func(s *Store) { s.clock = now } }

// New is an empty store.
func New(opts ...Option) *Store {
	s := &Store{gap: Gap, clock: time.Now, objects: map[string]object{}}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Fetch implements store.Store.
func (s *Store) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	out := make([]store.Result, len(reads))
	var used store.Usage
	for i, r := range reads {
		out[i] = s.fetch(ctx, r, &used)
	}
	if used.Gets > 0 {
		used.Waves = 1
	}
	store.Count(ctx, used)
	return out
}

func (s *Store) fetch(ctx context.Context, r store.Read, used *store.Usage) store.Result {
	if err := ctx.Err(); err != nil {
		return store.Result{Size: -1, Err: fault.About(r.Key, err)}
	}
	o, err := s.get(r.Key)
	if err == nil {
		err = store.CheckTag(r.Key, r.Tag, o.tag)
	}
	if err != nil {
		used.Gets++
		return store.Result{Size: -1, Err: err}
	}
	size := int64(len(o.data))
	plan, err := store.PlanRead(r, size, s.gap)
	if err != nil {
		used.Gets++
		return store.Result{Tag: o.tag, Size: size, Err: err}
	}
	bodies := make([]store.Body, len(plan.Requests))
	for i, q := range plan.Requests {
		bodies[i] = store.Body{Off: q.Off, Data: o.data[q.Off:q.End()]}
		used.BytesRead += q.Len
	}
	used.Gets += int64(max(1, len(plan.Requests)))
	data, err := plan.Cut(bodies)
	return store.Result{Data: data, Tag: o.tag, Size: size, Err: err}
}

func (s *Store) get(key string) (object, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	o, ok := s.objects[key]
	if !ok {
		return object{}, fault.New(fault.NotFound, key, "no such object")
	}
	return o, nil
}

// PutNew implements store.Store.
func (s *Store) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return "", fault.About(key, err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return "", fault.About(key, err)
	}
	return s.put(ctx, key, b, func(_ object, exists bool) bool { return !exists })
}

// PutIf implements store.Store.
func (s *Store) PutIf(ctx context.Context, key string, old store.Tag, b []byte) (store.Tag, error) {
	return s.put(ctx, key, bytes.Clone(b), func(o object, exists bool) bool {
		return exists && o.tag == old || !exists && old == ""
	})
}

// Overwrite puts an object whatever is there: what a writer that breaks the rules does to a table's files.
func (s *Store) Overwrite(key string, b []byte) store.Tag {
	tag, _ := s.put(context.Background(), key, bytes.Clone(b), func(object, bool) bool { return true })
	return tag
}

func (s *Store) put(ctx context.Context, key string, b []byte, may func(object, bool) bool) (store.Tag, error) {
	if err := ctx.Err(); err != nil {
		return "", fault.About(key, err)
	}
	if key == "" {
		return "", fault.New(fault.Invalid, key, "an object needs a key")
	}
	store.Count(ctx, store.Usage{Puts: 1, BytesWritten: int64(len(b))})
	s.mu.Lock()
	defer s.mu.Unlock()
	o, exists := s.objects[key]
	if !may(o, exists) {
		return "", fault.New(fault.Conflict, key, "somebody else wrote it first: tag %q", o.tag)
	}
	s.gen++
	o = object{data: b, tag: store.Tag("g" + strconv.FormatUint(s.gen, 10)), modified: s.clock()}
	s.objects[key] = o
	if !exists {
		at, _ := slices.BinarySearch(s.keys, key)
		s.keys = slices.Insert(s.keys, at, key)
	}
	return o.tag, nil
}

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, keys []string) []store.Info {
	out := make([]store.Info, len(keys))
	for i, key := range keys {
		out[i].Key = key
		if err := ctx.Err(); err != nil {
			out[i].Err = fault.About(key, err)
		} else if o, err := s.get(key); err != nil {
			out[i].Err = err
		} else {
			out[i] = o.info(key)
		}
	}
	store.Count(ctx, store.Usage{Heads: int64(len(keys))})
	return out
}

func (o object) info(key string) store.Info {
	return store.Info{Key: key, Size: int64(len(o.data)), Tag: o.tag, Modified: o.modified}
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, prefix, after string, most int) ([]store.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.About(prefix, err)
	}
	store.Count(ctx, store.Usage{Lists: 1})
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []store.Info
	at, _ := slices.BinarySearch(s.keys, max(prefix, after))
	for _, key := range s.keys[at:] {
		if len(out) >= most || !strings.HasPrefix(key, prefix) {
			break
		}
		if key > after {
			out = append(out, s.objects[key].info(key))
		}
	}
	return out, nil
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, keys []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	store.Count(ctx, store.Usage{Deletes: int64(len(keys))})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if at, ok := slices.BinarySearch(s.keys, key); ok {
			s.keys = slices.Delete(s.keys, at, at+1)
			delete(s.objects, key)
		}
	}
	return nil
}
