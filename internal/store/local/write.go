package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// PutNew implements store.Store: the bytes are written and synced under a name of the store's own, then linked to the
// key, which fails if the key exists. Missing directories are created. When it returns, object and name survive a crash.
func (s *Store) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	if err := s.checkWrite(key); err != nil {
		return "", err
	}
	var tag store.Tag
	err := inDirectory(key, func(dir string) error {
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return err
		}
		f, err := newTemp(dir)
		if err != nil {
			return err
		}
		defer f.discard()
		n, err := io.Copy(f.File, &ctxReader{ctx, r})
		store.Count(ctx, store.Usage{Puts: 1, BytesWritten: n})
		if err == nil {
			err = stamp(f.path, time.Time{})
		}
		if err == nil {
			err = f.Sync()
		}
		if err == nil {
			err = f.publish(key)
		}
		if err == nil {
			tag, err = seal(key, f.File)
		}
		return err
	})
	if errors.Is(err, unix.EEXIST) {
		return "", taken(key)
	}
	return tag, writeFault(key, err)
}

// PutIf implements store.Store. Writers of one key take turns through a lock file beside it, across processes.
func (s *Store) PutIf(ctx context.Context, key string, old store.Tag, b []byte) (store.Tag, error) {
	if old == "" {
		return s.PutNew(ctx, key, bytes.NewReader(b))
	}
	if err := s.checkWrite(key); err != nil {
		return "", err
	}
	var tag store.Tag
	err := locked(ctx, key, func() error {
		info, err := statPath(key)
		if err != nil {
			return err
		}
		if info.Tag != old {
			return fault.New(fault.Conflict, key, "somebody else wrote it first: tag %q, expected %q", info.Tag, old)
		}
		store.Count(ctx, store.Usage{Puts: 1, BytesWritten: int64(len(b))})
		tag, err = replace(key, b, info.Modified)
		return err
	})
	if fault.Is(err, fault.NotFound) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return "", fault.New(fault.Conflict, key, "is gone, expected tag %q", old)
	}
	return tag, writeFault(key, err)
}

// replace writes b beside key and renames it over key. The caller holds the lock of key.
func replace(key string, b []byte, modified time.Time) (store.Tag, error) {
	temp := sibling(key, ".tmp")
	if err := os.Remove(temp); err != nil && !errors.Is(err, unix.ENOENT) { // left by a writer that was killed
		return "", err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, err = f.Write(b)
	if err == nil {
		err = stamp(temp, modified)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(temp, key)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(temp))
	}
	return seal(key, f)
}

// stamp gives a new file the time of the wall clock in nanoseconds, and a later one than the file that it replaces. The
// kernel's own stamps have its tick, and a freed inode number is used again at once: without this, two states of one key
// could have one tag.
func stamp(path string, previous time.Time) error {
	at := time.Now()
	if !at.After(previous) {
		at = previous.Add(time.Nanosecond)
	}
	return os.Chtimes(path, at, at)
}

// seal makes the name of a published file durable and gives its tag.
func seal(key string, f *os.File) (store.Tag, error) {
	if err := syncDir(parent(key)); err != nil {
		return "", err
	}
	info, _, err := describe(key, f)
	return info.Tag, err
}

func taken(key string) error { return fault.New(fault.Conflict, key, "exists already") }

// writeFault classifies an error of a write: a path through a file can never be written, nor one through a folder that cannot be made.
func writeFault(key string, err error) error {
	if errors.Is(err, unix.ENOENT) {
		return fault.New(fault.Denied, key, "no folder can be made at %s", parent(key)).WithFix("choose another place")
	}
	if errors.Is(err, unix.ENOTDIR) {
		return fault.New(fault.Invalid, key, "a path cannot lead through %s, which is no folder", inTheWay(key)).WithFix("choose another place")
	}
	if fault.ClassOf(err) != fault.Unclassified {
		return err
	}
	return classify(key, err)
}

type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *ctxReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
