// Package local answers: what if the object store is a file system?
//
// A key is an absolute path, taken verbatim: nothing is decoded, cleaned or expanded. A tag is inode, size, mtime and
// ctime, so a file that was replaced or rewritten has another one (two writes in place within one tick of the kernel's
// clock, some milliseconds, can share it).
//
// A directory is not an object: reading one says so. Listings follow symbolic links to files, but do not descend into
// linked directories. Names that begin with ".skomer-" are the store's own (unfinished writes and locks): never listed,
// never written by a caller. The rules hold between processes on one file system that has hard links and flock.
package local

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Gap is the coalescing gap in bytes unless WithGap says otherwise: copying so much costs about as much as another call.
const Gap = 16 << 10

// Parallel is how many files of a store are read at once, unless WithParallel says otherwise.
const Parallel = 16

// reserved begins the names that belong to the store itself.
const reserved = ".skomer-"

// Store reads and writes files.
type Store struct {
	gap   int64
	under string // no trailing slash; "" is the whole file system
	pool  pool
}

var _ store.Store = (*Store)(nil)

// Option configures New.
type Option func(*Store)

// WithGap sets the coalescing gap in bytes.
func WithGap(n int64) Option { return func(s *Store) { s.gap = n } }

// WithParallel sets how many files are read at once.
func WithParallel(n int) Option { return func(s *Store) { s.pool = newPool(n) } }

// Under confines the store to keys below dir, an absolute path, and makes Delete remove the directories below dir that
// it leaves empty. The check is by name: symbolic links below dir are followed.
func Under(dir string) Option { return func(s *Store) { s.under = strings.TrimRight(dir, "/") } }

// New is a store over the file system. Without Under it reaches all of it and never removes a directory.
func New(opts ...Option) *Store {
	s := &Store{gap: Gap, pool: newPool(Parallel)}
	for _, o := range opts {
		o(s)
	}
	return s
}

// check refuses keys that cannot name an object of this store.
func (s *Store) check(key string) error {
	switch {
	case !strings.HasPrefix(key, "/"):
		return fault.New(fault.Invalid, key, "not an absolute path")
	case strings.HasSuffix(key, "/"):
		return fault.New(fault.Invalid, key, "a directory, not a file")
	case strings.IndexByte(key, 0) >= 0:
		return fault.New(fault.Invalid, key, "a path cannot hold a zero byte")
	case s.under != "" && !confined(key, s.under):
		return fault.New(fault.Refused, key, "outside of %s, to which this store is confined", s.under)
	}
	return nil
}

// checkWrite also refuses the store's own names.
func (s *Store) checkWrite(key string) error {
	if err := s.check(key); err != nil {
		return err
	}
	if strings.HasPrefix(filepath.Base(key), reserved) {
		return fault.New(fault.Invalid, key, "names that begin with %q are the store's own", reserved)
	}
	return nil
}

// confined reports whether key lies below dir and names no directory twice or upwards: every part of it is a plain name.
// The last part may be empty, as in a prefix.
func confined(key, dir string) bool {
	rest, ok := strings.CutPrefix(key, dir+"/")
	if !ok {
		return false
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		if part == "." || part == ".." || part == "" && i < len(parts)-1 {
			return false
		}
	}
	return true
}

// parent is the directory part of a key, verbatim.
func parent(key string) string {
	if i := strings.LastIndexByte(key, '/'); i > 0 {
		return key[:i]
	}
	return "/"
}

// notFile says what is wrong with a path that exists but is no regular file.
func notFile(key string, mode os.FileMode) error {
	if mode.IsDir() {
		return fault.New(fault.NotFound, key, "is a directory, not a file").WithFix("name a file in it")
	}
	return fault.New(fault.NotFound, key, "is not a regular file")
}
