package house

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	caseRow   = regexp.MustCompile(`(?m)^\| (O\d\d) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`)
	ticked    = regexp.MustCompile("`([^`]+)`")
	mutatedBy = regexp.MustCompile(`(?m)^(case|test): (.+)$`)
)

// TestCasesAreProven holds docs/cases.md: every case has a row, every test it names exists and carries the case's number, and
// its mutations are exactly the files of the case, each aimed at a test of the row.
func TestCasesAreProven(t *testing.T) {
	want := numbers(1, 36)
	want = append(want, numbers(44, 51)...)
	var got []string
	for _, row := range caseRow.FindAllStringSubmatch(read(t, filepath.Join(root(), "docs", "cases.md")), -1) {
		got = append(got, row[1])
		tests := provenBy(t, row[1], row[3])
		var named []string
		for _, m := range ticked.FindAllStringSubmatch(row[4], -1) {
			named = append(named, m[1])
		}
		require.NotEmpty(t, named, "%s has no mutation", row[1])
		require.Equal(t, mutationsOf(t, row[1]), named, row[1])
		for _, name := range named {
			checkMutation(t, name, row[1], tests)
		}
	}
	require.Equal(t, want, got)
}

func numbers(from, to int) (out []string) {
	for n := from; n <= to; n++ {
		out = append(out, fmt.Sprintf("O%02d", n))
	}
	return out
}

// provenBy is the tests of a row, as "package Name".
func provenBy(t *testing.T, key, cell string) (out []string) {
	t.Helper()
	pkg := ""
	for _, m := range ticked.FindAllStringSubmatch(cell, -1) {
		if !strings.HasPrefix(m[1], "Test") {
			pkg = m[1]
			continue
		}
		require.Contains(t, m[1], key, "tests are named after their case")
		require.True(t, testExists(t, pkg, m[1]), "%s: package %q has no test %s", key, pkg, m[1])
		out = append(out, pkg+" "+m[1])
	}
	require.NotEmpty(t, out, "%s has no test", key)
	return out
}

func testExists(t *testing.T, pkg, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(), filepath.FromSlash(pkg), "*_test.go"))
	require.NoError(t, err)
	return slices.ContainsFunc(files, func(path string) bool { return strings.Contains(read(t, path), "\nfunc "+name+"(t *testing.T)") })
}

func mutationsOf(t *testing.T, key string) (out []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(), "testdata", "mutations", key+"*.txt"))
	require.NoError(t, err)
	for _, path := range files {
		out = append(out, strings.TrimSuffix(filepath.Base(path), ".txt"))
	}
	slices.Sort(out)
	return out
}

// checkMutation wants a mutation to be of the case and to name one of its tests.
func checkMutation(t *testing.T, name, key string, tests []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(), "testdata", "mutations", name+".txt"))
	require.NoError(t, err)
	head, _, _ := strings.Cut(string(text), "--- old")
	for _, m := range mutatedBy.FindAllStringSubmatch(head, -1) {
		if m[1] == "case" {
			require.Equal(t, key, m[2], name)
		} else {
			require.Contains(t, tests, m[2], "mutation %s is aimed at a test that its row does not name", name)
		}
	}
}
