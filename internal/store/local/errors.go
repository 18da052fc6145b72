package local

import (
	"errors"
	"io/fs"

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
	return &fault.Error{Class: class, Subject: key, Retry: retry, Cause: err}
}
