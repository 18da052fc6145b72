// Package cache answers: do I hold these bytes already? It decorates a store with a cache in memory, bounded in bytes.
//
// Bytes are kept by (key, tag, span) and answer any span that lies within one span that was read; a suffix or a whole
// object is a span once the size is known. A read that names a tag is answered only with bytes of that tag. A read without
// a tag is answered from the cache only if its key is one of those that the constructor was told never change, such as
// bundles; bytes that came back without a tag are kept only for those keys. Errors are not kept. Identical reads at the
// same time become one. A read that is answered from the cache sends no request, so it cannot notice an overwrite.
package cache

import (
	"context"
	"io"

	"github.com/skomerdb/skomer/internal/store"
)

// Store is a caching decorator.
type Store struct {
	store.Store
	immutable func(key string) bool
	held      held
	flights   flights
}

var _ store.Store = (*Store)(nil)

// Inner implements store.Decorator.
func (s *Store) Inner() store.Store { return s.Store }

// New caches up to limit bytes of inner. immutable tells the keys whose objects never change once they exist; nil: none.
// A span of more than a quarter of the limit is not kept.
func New(inner store.Store, limit int64, immutable func(key string) bool) *Store {
	if immutable == nil {
		immutable = func(string) bool { return false }
	}
	return &Store{Store: inner, immutable: immutable, held: newHeld(limit), flights: flights{m: map[flightKey]*flight{}}}
}

// Stats tells how well a cache does. Hits, Misses and Joined count spans.
type Stats struct {
	Hits   int64 // answered from the cache
	Misses int64 // asked of the store
	Joined int64 // waited for the same read of another caller
	Bytes  int64 // held now, with an estimate of the bookkeeping
}

// Stats is the sum so far.
func (s *Store) Stats() Stats { return s.held.snapshot() }

// Fetch implements store.Store: one wave for what is missing, none if nothing is.
func (s *Store) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	if ctx.Err() != nil {
		return s.Store.Fetch(ctx, reads) // gives the error for every read
	}
	all := make([]*pending, len(reads))
	for i, r := range reads {
		all[i] = s.look(r)
	}
	s.fetch(ctx, all)
	if s.await(ctx, all) {
		s.fetch(ctx, all) // others failed to bring what was waited for
	}
	out := make([]store.Result, len(reads))
	for i, p := range all {
		out[i] = p.result()
	}
	return out
}

// PutNew implements store.Store.
func (s *Store) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	defer s.held.forget(key)
	return s.Store.PutNew(ctx, key, r)
}

// PutIf implements store.Store.
func (s *Store) PutIf(ctx context.Context, key string, old store.Tag, b []byte) (store.Tag, error) {
	defer s.held.forget(key)
	return s.Store.PutIf(ctx, key, old, b)
}

// Forget drops what is kept of an object: its bytes failed their checksum, and were perhaps damaged on the way.
func (s *Store) Forget(key string) { s.held.forget(key) }

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, keys []string) error {
	defer func() {
		for _, k := range keys {
			s.held.forget(k)
		}
	}()
	return s.Store.Delete(ctx, keys)
}
