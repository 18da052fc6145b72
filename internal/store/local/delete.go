package local

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Delete implements store.Store. It goes on after an error and returns all of them. A store confined by Under also removes
// the directories that become empty, up to but not including the one it is confined to; another store removes none.
func (s *Store) Delete(ctx context.Context, keys []string) error {
	errs := make([]error, len(keys))
	s.pool.each(len(keys), func(i int) {
		if errs[i] = ctx.Err(); errs[i] == nil {
			errs[i] = s.remove(ctx, keys[i])
		}
	})
	store.Count(ctx, store.Usage{Deletes: int64(len(keys))})
	return joinFaults(errs)
}

// remove takes the key's lock, so that a PutIf in progress cannot bring the object back.
func (s *Store) remove(ctx context.Context, key string) error {
	if err := s.checkWrite(key); err != nil {
		return err
	}
	err := locked(ctx, key, func() error { return unix.Unlink(key) })
	switch {
	case err == nil, errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		s.prune(parent(key))
		return nil
	case errors.Is(err, unix.EISDIR):
		return fault.New(fault.Invalid, key, "is a directory, not a file")
	}
	return writeFault(key, err)
}

// joinFaults keeps the class of the first error and the text of all.
func joinFaults(errs []error) error {
	err := errors.Join(errs...)
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.ClassOf(err), "", err)
}
