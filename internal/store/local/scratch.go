package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/skomerdb/skomer/internal/fault"
)

// scratchPrefix begins the names of the folders that Scratch makes.
const scratchPrefix = "skomer-work-"

// Scratch makes a folder for temporary files below the system's one, and removes those of processes that were killed: values of a table must
// not lie there forever. A folder in use is locked by flock(2), which ends with its process. done removes the folder.
func Scratch(name string) (dir string, done func(), err error) {
	Abandoned()
	for {
		if dir, err = os.MkdirTemp("", scratchPrefix+name+"-"); err != nil {
			return "", nil, fault.New(fault.Exhausted, os.TempDir(), "no temporary folder can be made").WithCause(err).WithFix(otherTemp)
		}
		f, err := os.Open(dir)
		if err == nil {
			_ = unix.Flock(int(f.Fd()), unix.LOCK_EX) // where there are no locks, nobody else gets one and removes it
			if _, err = os.Stat(dir); err == nil {
				return dir, func() { _ = os.RemoveAll(dir); _ = f.Close() }, nil
			}
			_ = f.Close()
		}
		if !os.IsNotExist(err) { // not removed before it was locked
			return "", nil, fault.Wrap(fault.Exhausted, dir, err)
		}
	}
}

const otherTemp = "set TMPDIR to a folder that can be written to, on a disk with more room"

// Spilled is the error of work that has temporary files in a folder of Scratch: where the disk below it is full, that is Exhausted and says so.
// Other errors, and nil, stay what they are.
func Spilled(err error) error {
	var at *fs.PathError
	if !errors.As(err, &at) || !strings.HasPrefix(at.Path, strings.TrimRight(os.TempDir(), "/")+"/") {
		return err
	}
	if !errors.Is(at, unix.ENOSPC) && !errors.Is(at, unix.EDQUOT) {
		return err
	}
	return fault.New(fault.Exhausted, os.TempDir(), "there is no room for temporary files").WithCause(at.Err).WithFix(otherTemp)
}

// Abandoned removes the folders of Scratch that no process uses any more and returns how many there were. Those of other users stay.
func Abandoned() (removed int) {
	folders, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPrefix+"*")) // the pattern is well formed
	for _, dir := range folders {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil && os.RemoveAll(dir) == nil {
			removed++
		}
		_ = unix.Close(fd)
	}
	return removed
}
