package local

import (
	"errors"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// procFD tells whether open files can be named, which linking an unnamed one needs.
var procFD = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/self/fd")
	return err == nil
})

// openUnnamed creates a file in dir that has no name there (open(2), O_TMPFILE), and gives its path while it is open.
func openUnnamed(dir string) (*os.File, string, error) {
	if !procFD() {
		return nil, "", errors.ErrUnsupported
	}
	f, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, 0o666)
	if err != nil {
		return nil, "", err
	}
	return f, "/proc/self/fd/" + strconv.Itoa(int(f.Fd())), nil
}

// linkUnnamed names such a file.
func linkUnnamed(path, key string) error {
	return unix.Linkat(unix.AT_FDCWD, path, unix.AT_FDCWD, key, unix.AT_SYMLINK_FOLLOW)
}
