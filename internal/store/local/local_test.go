package local_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

func TestContract(t *testing.T) {
	for name, options := range map[string]func(dir string) []local.Option{
		"Everywhere": func(string) []local.Option { return nil },
		"Under":      func(dir string) []local.Option { return []local.Option{local.Under(dir)} },
		"OneAtATime": func(string) []local.Option { return []local.Option{local.WithParallel(1), local.WithGap(0)} },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Subject {
				dir := t.TempDir()
				t.Cleanup(func() { requireNoOwnFiles(t, dir) })
				return storetest.Subject{Store: local.New(options(dir)...), Root: dir + "/"}
			})
		})
	}
}

// requireNoOwnFiles fails when the store left something of its own behind, under whatever name.
func requireNoOwnFiles(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		require.NotContains(t, path, ".skomer-", "left behind")
		return err
	}))
}

func TestO50VerbatimPaths(t *testing.T) {
	dir := t.TempDir()
	s := local.New()
	for _, part := range []string{"dir%20x", "dir x", "a+b", "a#b", "k=v", "é"} {
		path := dir + "/data/" + part + "/f" + part + ".parquet"
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(part), 0o666))
		out := s.Fetch(t.Context(), []store.Read{{Key: path}})
		require.NoError(t, out[0].Err)
		require.Equal(t, part, string(out[0].Data[0]))
		infos, err := s.List(t.Context(), filepath.Dir(path)+"/", "", 10)
		require.NoError(t, err)
		require.Len(t, infos, 1)
		require.Equal(t, path, infos[0].Key)
	}
	require.Len(t, fetchErr(t, s, dir+"/data/dir x/fdir%20x.parquet"), 1, "nothing is decoded")
}

// fetchErr reads key, which must fail, and gives the error in a slice.
func fetchErr(t *testing.T, s store.Store, key string) []error {
	t.Helper()
	out := s.Fetch(t.Context(), []store.Read{{Key: key}})
	require.Error(t, out[0].Err, key)
	return []error{out[0].Err}
}

func TestWhatIsNoObject(t *testing.T) {
	dir := t.TempDir()
	s := local.New()
	require.NoError(t, os.Mkdir(dir+"/folder", 0o777))
	require.NoError(t, os.WriteFile(dir+"/file", nil, 0o666))
	require.NoError(t, unix.Mkfifo(dir+"/pipe", 0o666))
	require.NoError(t, os.Symlink("loop", dir+"/loop"))
	require.NoError(t, os.Symlink("nowhere", dir+"/dangling"))
	for key, want := range map[string]struct {
		class  fault.Class
		reason string
	}{
		dir + "/folder":                      {fault.NotFound, "is a directory"},
		dir + "/folder/":                     {fault.Invalid, "a directory"},
		dir + "/pipe":                        {fault.NotFound, "not a regular file"},
		dir + "/loop":                        {fault.NotFound, "symbolic links"},
		dir + "/dangling":                    {fault.NotFound, "no such file"},
		dir + "/file/below":                  {fault.NotFound, "not a directory"},
		"relative/path":                      {fault.Invalid, "not an absolute path"},
		"file:///etc/passwd":                 {fault.Invalid, "not an absolute path"},
		"":                                   {fault.Invalid, "not an absolute path"},
		dir + "/zero\x00":                    {fault.Invalid, "zero byte"},
		dir + "/" + strings.Repeat("n", 300): {fault.Invalid, "too long"},
	} {
		for _, err := range []error{fetchErr(t, s, key)[0], s.Stat(t.Context(), []string{key})[0].Err} {
			require.Equal(t, want.class, fault.ClassOf(err), "%q: %v", key, err)
			require.ErrorContains(t, err, want.reason)
			require.ErrorContains(t, err, key)
		}
	}
}

func TestWriteWhereNoneCanBe(t *testing.T) {
	dir := t.TempDir()
	s := local.New(local.Under(dir))
	require.NoError(t, os.Mkdir(dir+"/folder", 0o777))
	require.NoError(t, os.WriteFile(dir+"/file", nil, 0o666))
	for key, want := range map[string]fault.Class{
		dir + "/file/below":     fault.Invalid,
		dir + "/.skomer-x":      fault.Invalid,
		dir + "/a/.skomer-lock": fault.Invalid,
		dir + "/x/":             fault.Invalid,
		dir:                     fault.Refused,
		dir + "-beside/o":       fault.Refused,
		dir + "/../o":           fault.Refused,
		dir + "//o":             fault.Refused,
		dir + "/a/./o":          fault.Refused,
		dir + "/a/../../o":      fault.Refused,
		"/etc/skomer":           fault.Refused,
	} {
		_, err := s.PutNew(t.Context(), key, strings.NewReader("x"))
		require.Equal(t, want, fault.ClassOf(err), "%q: %v", key, err)
		_, err = s.PutIf(t.Context(), key, "", []byte("x"))
		require.Equal(t, want, fault.ClassOf(err), "%q: %v", key, err)
		if want == fault.Refused {
			require.Equal(t, want, fault.ClassOf(s.Delete(t.Context(), []string{key})), key)
			require.Equal(t, want, fault.ClassOf(fetchErr(t, s, key)[0]), key)
		}
	}
	_, err := s.List(t.Context(), "/etc/", "", 1)
	require.Equal(t, fault.Refused, fault.ClassOf(err))
	_, err = s.List(t.Context(), dir, "", 1)
	require.Equal(t, fault.Refused, fault.ClassOf(err), "the prefix without its slash also begins names beside it")
	require.Equal(t, fault.Invalid, fault.ClassOf(s.Delete(t.Context(), []string{dir + "/folder"})), "a directory is not deleted")
	_, err = s.PutNew(t.Context(), dir+"/folder", strings.NewReader("x"))
	require.Error(t, err)
	requireNoOwnFiles(t, dir)
}

func TestOnlyAConfinedStoreRemovesEmptyDirectories(t *testing.T) {
	base := t.TempDir()
	for _, confined := range []bool{true, false} {
		dir := base + "/overlay"
		s := local.New()
		if confined {
			s = local.New(local.Under(dir))
		}
		var keys []string
		for _, name := range []string{"a/b/c/o", "a/b/p", "a/q"} {
			keys = append(keys, dir+"/"+name)
			_, err := s.PutNew(t.Context(), dir+"/"+name, strings.NewReader("x"))
			require.NoError(t, err)
		}
		require.NoError(t, s.Delete(t.Context(), keys[:1]))
		if confined {
			require.NoDirExists(t, dir+"/a/b/c")
		}
		require.DirExists(t, dir+"/a/b", "not empty")
		require.NoError(t, s.Delete(t.Context(), keys))
		require.DirExists(t, dir, "the directory of the store stays")
		if !confined {
			require.DirExists(t, dir+"/a/b/c", "directories of others are left alone")
		} else {
			require.NoDirExists(t, dir+"/a")
		}
	}
}

func TestListFollowsLinksToFilesOnly(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/real", 0o777))
	require.NoError(t, os.WriteFile(dir+"/real/o", []byte("12345"), 0o666))
	require.NoError(t, os.Symlink("real/o", dir+"/file-link"))
	require.NoError(t, os.Symlink(dir, dir+"/real/cycle"))
	require.NoError(t, unix.Mkfifo(dir+"/pipe", 0o666))
	require.NoError(t, os.WriteFile(dir+"/.skomer-0123.tmp", nil, 0o666))
	infos, err := local.New().List(t.Context(), dir+"/", "", 100)
	require.NoError(t, err)
	require.Len(t, infos, 2)
	require.Equal(t, dir+"/file-link", infos[0].Key)
	require.EqualValues(t, 5, infos[0].Size)
	require.Equal(t, dir+"/real/o", infos[1].Key)
	infos, err = local.New().List(t.Context(), dir+"/real/cycle/", "", 1)
	require.NoError(t, err, "the prefix itself may go through a link")
	require.Len(t, infos, 1)
}

func TestTagChangesWithTheFile(t *testing.T) {
	path := t.TempDir() + "/o"
	s := local.New()
	tag := func() store.Tag {
		i := s.Stat(t.Context(), []string{path})[0]
		require.NoError(t, i.Err)
		return i.Tag
	}
	require.NoError(t, os.WriteFile(path, []byte("one"), 0o666))
	first := tag()
	require.Equal(t, first, tag())
	modified := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, modified, modified))
	second := tag()
	require.NotEqual(t, first, second)
	time.Sleep(20 * time.Millisecond) // longer than a tick of the kernel's clock
	require.NoError(t, os.WriteFile(path, []byte("two"), 0o666))
	require.NoError(t, os.Chtimes(path, modified, modified))
	require.NotEqual(t, second, tag(), "a rewrite that restores size and mtime shows in the ctime")
}
