package local

import (
	"os"
	"path/filepath"

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
			return "", nil, fault.Wrap(fault.Exhausted, os.TempDir(), err)
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
