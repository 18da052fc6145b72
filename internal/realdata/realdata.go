// Package realdata answers, for tests only: where are the real files with known answers?
//
// They live outside the repository, in the folder named by SKOMER_TESTDATA (default: shared/data beside the checkout).
// Outside CI a test without them is skipped with a message; under CI=true it fails.
package realdata

import (
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"testing"
)

// Root is the folder of the real files. It skips or fails the test when the folder is absent.
func Root(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SKOMER_TESTDATA")
	if dir == "" {
		_, self, _, _ := runtime.Caller(0)
		dir = filepath.Join(filepath.Dir(self), "..", "..", "..", "shared", "data")
	}
	if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
		missing(t, "real files not found at %s: set SKOMER_TESTDATA", dir)
	}
	return dir
}

// Path is the absolute path of one real file or folder.
func Path(t testing.TB, rel string) string {
	t.Helper()
	p := filepath.Join(Root(t), filepath.FromSlash(rel))
	if _, err := os.Stat(p); err != nil {
		missing(t, "real file %s not found", rel)
	}
	return p
}

// Glob is the sorted absolute paths that match pattern under Root; matching nothing fails the test.
func Glob(t testing.TB, pattern string) []string {
	t.Helper()
	hits, err := filepath.Glob(filepath.Join(Root(t), filepath.FromSlash(pattern)))
	if err != nil {
		t.Fatalf("pattern %q: %v", pattern, err)
	}
	if len(hits) == 0 {
		t.Fatalf("pattern %q matches no real file", pattern)
	}
	sort.Strings(hits)
	return hits
}

func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
