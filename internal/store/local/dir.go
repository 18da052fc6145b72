package local

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// inDirectory runs write with the directory of key and creates that directory when it is missing. A concurrent Delete
// may remove it again before anything is in it, hence the attempts.
func inDirectory(key string, write func(dir string) error) error {
	dir := parent(key)
	const attempts = 20
	for range attempts - 1 {
		err := write(dir)
		if !errors.Is(err, unix.ENOENT) {
			return err
		}
		if err := makeDirs(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return write(dir)
}

// makeDirs creates dir and its parents, and makes each new name durable.
func makeDirs(dir string) error {
	err := makeDir(dir)
	if !errors.Is(err, unix.ENOENT) || dir == "/" {
		return err
	}
	if err := makeDirs(parent(strings.TrimRight(dir, "/"))); err != nil {
		return err
	}
	return makeDir(dir) // some file systems, such as /proc, say of what they do not allow that it is not there
}

func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o777)
	switch {
	case err == nil:
		return syncDir(parent(dir))
	case errors.Is(err, unix.EEXIST):
		return nil
	}
	return err
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// prune removes dir and its parents while they are empty and lie below the directory that the store is confined to.
func (s *Store) prune(dir string) {
	for s.under != "" && strings.HasPrefix(dir, s.under+"/") {
		if unix.Rmdir(dir) != nil {
			return // not empty, or somebody else was faster
		}
		dir = parent(dir)
	}
}
