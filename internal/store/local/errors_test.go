package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// TestDeniedNamesThePermission: an error of a missing permission says which one, and on what.
func TestDeniedNamesThePermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may do everything")
	}
	s, dir := New(), t.TempDir()
	file, closed, fixed := filepath.Join(dir, "file"), filepath.Join(dir, "closed"), filepath.Join(dir, "fixed")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o200))
	for folder, mode := range map[string]os.FileMode{closed: 0o600, fixed: 0o500} {
		require.NoError(t, os.Mkdir(folder, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "o"), nil, 0o400))
		require.NoError(t, os.Chmod(folder, mode))
		t.Cleanup(func() { _ = os.Chmod(folder, 0o700) })
	}
	read := func(key string) error { return s.Fetch(t.Context(), []store.Read{{Key: key}})[0].Err }
	write := func(key string) error {
		_, err := s.PutNew(t.Context(), key, strings.NewReader("y"))
		return err
	}
	for want, err := range map[string]error{
		"permission to read (r) " + file:                     read(file),
		"permission to search (x) " + closed:                 read(closed + "/o"),
		"permission to write and search (wx) " + fixed:       write(fixed + "/new"),
		"permission to write and search (wx) " + fixed + ":": write(fixed + "/a/b/new"),
	} {
		require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
		require.Contains(t, fault.FixOf(err), want)
		require.Equal(t, 1, strings.Count(err.Error(), "permission denied"), "%v", err)
	}
}

// TestWaysOut: errors of the disk say what to do.
func TestWaysOut(t *testing.T) {
	for errno, fix := range map[unix.Errno]string{
		unix.EACCES: "needs permission", unix.EROFS: "for reading only", unix.ENOSPC: "make room on the disk of /d/o", unix.EIO: "",
	} {
		err := classify("/d/o", &os.PathError{Op: "write", Path: "/d/.skomer-1.new", Err: errno})
		if fix == "" {
			require.Empty(t, fault.FixOf(err))
		}
		require.Contains(t, fault.FixOf(err), fix)
	}
}

// TestFoldersThatCannotBeMade: a file system that says of a new folder that it is not there, as /proc does, and a file in the way are errors that
// say so.
func TestFoldersThatCannotBeMade(t *testing.T) {
	s := New()
	_, err := s.PutNew(t.Context(), "/proc/skomer/a/b", strings.NewReader("x"))
	require.Equal(t, fault.Denied, fault.ClassOf(err))
	require.EqualError(t, err, "/proc/skomer/a/b: no folder can be made at /proc/skomer/a")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = s.PutNew(t.Context(), file+"/a/b", strings.NewReader("x"))
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
	require.EqualError(t, err, file+"/a/b: a path cannot lead through "+file+", which is no folder")
	require.NotEmpty(t, fault.FixOf(err))
}
