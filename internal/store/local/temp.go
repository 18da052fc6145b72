package local

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
)

// temp is a file that has no key yet.
type temp struct {
	*os.File
	path  string
	named bool // path is in the directory, not only in /proc
}

// newTemp creates a file in dir. Where the system can, it has no name there, so that nothing is left of a killed writer,
// and publishing changes its ctime, and with it the tag, only once.
func newTemp(dir string) (*temp, error) {
	if f, path, err := openUnnamed(dir); err == nil {
		return &temp{File: f, path: path}, nil
	}
	return newNamed(dir)
}

func newNamed(dir string) (*temp, error) {
	path := dir + "/" + reserved + strconv.FormatUint(rand.Uint64(), 16) + ".new"
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &temp{File: f, path: path, named: true}, nil
}

// publish gives the file its key; it fails with EEXIST if the key exists.
func (t *temp) publish(key string) error {
	if !t.named {
		return linkUnnamed(t.path, key)
	}
	if err := os.Link(t.path, key); err != nil {
		return err
	}
	t.named = false
	return os.Remove(t.path)
}

// discard closes the file and removes its own name.
func (t *temp) discard() {
	t.Close()
	if t.named {
		os.Remove(t.path)
	}
}

// sibling is a reserved name beside key that is the same in all processes. Keys of one directory may share it.
func sibling(key, ext string) string {
	h := fnv.New64a()
	h.Write([]byte(key))
	return parent(key) + "/" + reserved + strconv.FormatUint(h.Sum64(), 16) + ext
}
