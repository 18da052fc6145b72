package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecoverDoesNotBringBackWhatWasErased: the version of an erasure is damaged while everything from before it lies there still, as where it was
// killed behind its commit or older objects were brought back. A recovery uses none of it, says so, and an erasure deletes it.
func TestRecoverDoesNotBringBackWhatWasErased(t *testing.T) {
	p := plant(t)
	s := p.shell()
	where, kept := filepath.Join(filepath.Dir(p.dir), "over"), filepath.Join(filepath.Dir(p.dir), "kept")
	run := func(args ...string) string { return s.run(append(args, "--overlay", "over")...) }
	run("mount", "TABLE")
	run("index", "add", "TABLE", "bloom(name)", "ordered(id)", "bitmap(tag)", "ngram(name)", "sketch(name)")
	p.delete()
	run("sync", "TABLE")
	before := asked(s, 0)
	require.NoError(t, os.CopyFS(kept, os.DirFS(where)))
	require.NotEmpty(t, p.found(kept))
	run("erase", "TABLE", "--where", "name LIKE '%planted%'")
	require.Empty(t, p.found(where))

	versions, err := os.ReadDir(filepath.Join(where, "versions"))
	require.NoError(t, err)
	old, err := os.ReadDir(filepath.Join(kept, "versions"))
	require.NoError(t, err)
	for _, v := range versions[:len(versions)-len(old)] { // the newest come first: those of the erasure
		require.NoError(t, os.WriteFile(filepath.Join(where, "versions", v.Name()), []byte("damaged beyond recognition"), 0o600))
	}
	for _, v := range old {
		require.NoError(t, os.Remove(filepath.Join(where, "versions", v.Name())), "a stub")
	}
	require.NoError(t, filepath.WalkDir(kept, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(kept, path)
		require.NoError(t, err)
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		to := filepath.Join(where, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		return os.WriteFile(to, raw, 0o600)
	}))

	broken := s.try("sync", "TABLE", "--overlay", "over")
	require.NotZero(t, broken.code)
	text := run("overlay", "recover", "TABLE")
	require.Contains(t, text, "skomer erase "+p.dir+" --snapshot-gone")
	require.Contains(t, text, "ordered(id)", "the declarations are there")
	require.Equal(t, before, asked(s, 0))
	for _, to := range []string{"1", "2", "3"} {
		require.NotZero(t, s.try("overlay", "rollback", "TABLE", "--to", to, "--overlay", "over").code)
	}

	require.NotEmpty(t, p.found(where), "unused, and there")
	run("erase", "TABLE", "--snapshot-gone")
	require.Empty(t, p.found(where))
	run("sync", "TABLE")
	require.Empty(t, p.found(where), "what was marked is not built from again")
	require.Equal(t, before, asked(s, 0))
	require.NotContains(t, run("scrub", "TABLE"), "lost")
}
