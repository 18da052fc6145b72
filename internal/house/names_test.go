package house

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxLines is the size at which a file holds more than one thought.
const maxLines = 600

// emptyNames say where code lies and not what it does.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "base", "shared"}

func TestPackageNamesSayWhatTheyDo(t *testing.T) {
	for _, p := range listPackages(t) {
		rel := strings.TrimPrefix(p.ImportPath, module)
		for part := range strings.SplitSeq(rel, "/") {
			require.NotContains(t, emptyNames, part, "%s: name it by what it does", p.ImportPath)
		}
	}
}

func TestMainPackagesStayInCmd(t *testing.T) {
	for _, p := range listPackages(t) {
		if key, _ := roomOf(p.ImportPath); key == "cmd" {
			require.Len(t, p.GoFiles, 1, "%s: main only, the commands live in internal/cli", p.ImportPath)
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	files := goFiles(t)
	require.NotEmpty(t, files)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if bytes.Contains(text[:min(len(text), 500)], []byte("// Code generated ")) {
			continue
		}
		if n := bytes.Count(text, []byte{'\n'}); n > maxLines {
			t.Errorf("%s has %d lines, more than %d: cut it where the thought changes", relative(path), n, maxLines)
		}
	}
}

// placeholders are words that stand where something is missing. Spelled apart so that this file does not match itself.
var placeholders = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b|not ` + `implemented`)

func TestNothingIsLeftOpen(t *testing.T) {
	for _, path := range goFiles(t) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if at := placeholders.FindIndex(text); at != nil {
			line := 1 + bytes.Count(text[:at[0]], []byte{'\n'})
			t.Errorf("%s:%d: %q", relative(path), line, text[at[0]:at[1]])
		}
	}
}

// goFiles is every Go file of the repository that git would keep.
func goFiles(t *testing.T) []string { return filesWith(t, ".go") }

func filesWith(t *testing.T, extension string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root(), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root() && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"bin", "testdata", "node_modules"}, d.Name())):
			return filepath.SkipDir
		case !d.IsDir() && filepath.Ext(path) == extension:
			out = append(out, path)
		}
		return nil
	})
	require.NoError(t, err)
	return out
}

func relative(path string) string {
	rel, err := filepath.Rel(root(), path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}
