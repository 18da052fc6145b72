package local

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/skomerdb/skomer/internal/fault"
)

// classify turns a file system error about key into a fault.
func classify(key string, err error) error {
	if err == nil {
		return nil
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err // the key is the subject already
	}
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return fault.About(key, err)
	}
	class, retry := fault.Unclassified, false
	switch errno {
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
		class = fault.NotFound
	case unix.EACCES, unix.EPERM, unix.EROFS:
		class = fault.Denied
	case unix.EMFILE, unix.ENFILE, unix.EAGAIN, unix.ENOMEM, unix.ESTALE:
		class, retry = fault.Exhausted, true
	case unix.ENOSPC, unix.EDQUOT, unix.EFBIG:
		class = fault.Exhausted
	case unix.ENAMETOOLONG, unix.EINVAL, unix.EISDIR:
		class = fault.Invalid
	}
	return &fault.Error{Class: class, Subject: key, Retry: retry, Cause: err, Fix: wayOut(key, errno)}
}

// wayOut is what the user can do about an error, or "".
func wayOut(key string, errno unix.Errno) string {
	switch errno {
	case unix.EACCES, unix.EPERM:
		return "the user " + strconv.Itoa(os.Geteuid()) + " needs " + lacking(key) + ": see ls -ld"
	case unix.EROFS:
		return "the file system is mounted for reading only"
	case unix.ENOSPC, unix.EDQUOT:
		return "make room on the disk of " + key
	}
	return ""
}

// lacking is the permission that the process lacks to reach a key, or to write it.
func lacking(key string) string {
	for at := 1; at < len(key); at++ { // the folders above it, the outermost first
		if key[at] == '/' && denied(key[:at], unix.X_OK) {
			return "permission to search (x) " + key[:at]
		}
	}
	if denied(key, unix.R_OK) {
		return "permission to read (r) " + key
	}
	folder := parent(key) // where the key is made, or the nearest above it that exists
	for folder != "/" && unix.Faccessat(unix.AT_FDCWD, folder, unix.F_OK, 0) != nil {
		folder = parent(folder)
	}
	switch {
	case denied(folder, unix.W_OK|unix.X_OK):
		return "permission to write and search (wx) " + folder
	case denied(key, unix.W_OK):
		return "permission to write (w) " + key
	}
	return "permission for " + key
}

// inTheWay is what stands where a path to a key needs a folder.
func inTheWay(key string) string {
	for at := 1; at < len(key); at++ {
		if key[at] != '/' {
			continue
		}
		if info, err := os.Stat(key[:at]); err == nil && !info.IsDir() {
			return key[:at]
		}
	}
	return "a file"
}

func denied(path string, mode uint32) bool {
	return errors.Is(unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS), unix.EACCES)
}
