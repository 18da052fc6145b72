// Package meter answers: what did all operations that went through here cost? It decorates a store with totals.
//
// What one query cost, however many run at once, is counted by store.WithCounter in that query's context; both count what
// the backend reports, after coalescing, so a meter above a cache sees only what the cache let through.
package meter

import (
	"context"
	"io"

	"github.com/skomerdb/skomer/internal/store"
)

// Store is a metering decorator.
type Store struct {
	inner store.Store
	total store.Counter
}

var _ store.Store = (*Store)(nil)

// New meters inner.
func New(inner store.Store) *Store { return &Store{inner: inner} }

// Inner implements store.Decorator.
func (s *Store) Inner() store.Store { return s.inner }

// Total is the usage so far.
func (s *Store) Total() store.Usage { return s.total.Usage() }

// Fetch implements store.Store.
func (s *Store) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	return s.inner.Fetch(store.WithCounter(ctx, &s.total), reads)
}

// PutNew implements store.Store.
func (s *Store) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	return s.inner.PutNew(store.WithCounter(ctx, &s.total), key, r)
}

// PutIf implements store.Store.
func (s *Store) PutIf(ctx context.Context, key string, old store.Tag, b []byte) (store.Tag, error) {
	return s.inner.PutIf(store.WithCounter(ctx, &s.total), key, old, b)
}

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, keys []string) []store.Info {
	return s.inner.Stat(store.WithCounter(ctx, &s.total), keys)
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, prefix, after string, most int) ([]store.Info, error) {
	return s.inner.List(store.WithCounter(ctx, &s.total), prefix, after, most)
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, keys []string) error {
	return s.inner.Delete(store.WithCounter(ctx, &s.total), keys)
}
