package local

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/skomerdb/skomer/internal/fault"
)

// locked runs f while no other locked call for key runs, in this process or another. The lock is flock(2) on a file
// beside key; the kernel frees it when a process dies. The file is removed by its holder, so a waiter that wakes up with
// a file that has lost its name starts again.
func locked(ctx context.Context, key string, f func() error) error {
	path := sibling(key, ".lock")
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		if err := ctx.Err(); err != nil {
			return fault.About(key, err)
		}
		lock, err := tryLock(path)
		if err != nil {
			return err
		}
		if lock != nil {
			defer lock.Close()
			defer os.Remove(path)
			return f()
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait/2 + rand.N(wait)):
		}
	}
}

// tryLock returns the locked file, or nil if somebody else has it.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil && samePath(f, path) {
		return f, nil
	}
	f.Close()
	if err == nil || errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, nil
	}
	return nil, err
}

func samePath(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(open, named)
}
