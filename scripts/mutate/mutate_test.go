package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// TestMutationsApply tells within a second what make mutate would tell in minutes: a rule moved away from its mutation.
func TestMutationsApply(t *testing.T) {
	all, err := readAll(filepath.Join(root, folder))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, m := range all {
		source, err := os.ReadFile(filepath.Join(root, m.file))
		require.NoError(t, err, m.name)
		_, err = m.apply(string(source))
		require.NoError(t, err, "mutation %s: move it along with its rule", m.name)
	}
}

func TestParse(t *testing.T) {
	m, err := parse("O07-x", "case: O07\nrule: some: rule\nfile: a/b.go\ntest: a TestA\n--- old\nx\ny\n--- new\nz\n--- old\nv\n--- new\n")
	require.NoError(t, err)
	require.Equal(t, &mutation{
		name: "O07-x", key: "O07", rule: "some: rule", file: "a/b.go", pkg: "a", test: "TestA", cuts: []cut{{"x\ny\n", "z\n"}, {"v\n", ""}},
	}, m)
	for what, text := range map[string]string{
		"no test":      "case: O07\nrule: r\nfile: f\n--- old\nx\n--- new\n",
		"no lines":     "case: O07\nrule: r\nfile: f\ntest: a TestA\n",
		"no new":       "case: O07\nrule: r\nfile: f\ntest: a TestA\n--- old\nx\n",
		"same":         "case: O07\nrule: r\nfile: f\ntest: a TestA\n--- old\nx\n--- new\nx\n",
		"other case":   "case: O08\nrule: r\nfile: f\ntest: a TestA\n--- old\nx\n--- new\n",
		"unknown key":  "case: O07\nwhy: r\nrule: r\nfile: f\ntest: a TestA\n--- old\nx\n--- new\n",
		"many tests":   "case: O07\nrule: r\nfile: f\ntest: a TestA|TestB\n--- old\nx\n--- new\n",
		"old is empty": "case: O07\nrule: r\nfile: f\ntest: a TestA\n--- old\n--- new\nx\n",
	} {
		_, err := parse("O07", text)
		require.Error(t, err, what)
	}
}

func TestApply(t *testing.T) {
	m := &mutation{file: "f", cuts: []cut{{"\tb\n", "\tc\n\td\n"}, {"a\n", ""}}}
	got, err := m.apply("a\n\tb\nx\n")
	require.NoError(t, err)
	require.Equal(t, "\tc\n\td\nx\n", got)
	for _, source := range []string{"a\nx\n", "a\n\tb\n\tb\n", "a\n\t\tb\n"} {
		_, err := m.apply(source)
		require.Error(t, err, source)
	}
}

func TestJudge(t *testing.T) {
	failed := errors.New("exit status 1")
	for _, c := range []struct {
		output string
		err    error
		want   outcome
	}{
		{"=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n", nil, survived},
		{"=== RUN   TestA\n    a_test.go:1: b\n--- FAIL: TestA (0.00s)\nFAIL\n", failed, killed},
		{"--- FAIL: TestA (0.00s)\npanic: nil\n", failed, panicked},
		{"--- FAIL: TestAB (0.00s)\nFAIL\n", failed, broken},
		{"--- SKIP: TestA (0.00s)\nPASS\n", nil, notRun},
		{"testing: warning: no tests to run\nPASS\n", nil, notRun},
		{"flag provided but not defined\n", failed, broken},
	} {
		require.Equal(t, c.want, judge("TestA", c.output, c.err), c.output)
	}
}

// module is a module with a rule and its test.
func module(t *testing.T) *lab {
	t.Helper()
	l := &lab{root: t.TempDir(), work: t.TempDir()}
	for name, text := range map[string]string{
		"go.mod":        "module m\n\ngo 1.26\n",
		"p/p.go":        "package p\n\nfunc F(x int) int {\n\tx++\n\treturn x\n}\n\nfunc g() int { return 1 }\n",
		"p/p_test.go":   "package p\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) {\n\tif F(1) != 2 {\n\t\tt.Error(\"F\")\n\t}\n}\n",
		"p/bad_test.go": "package p\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Error(g()) }\n\nfunc TestSkipped(t *testing.T) { t.Skip() }\n",
	} {
		path := filepath.Join(l.root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return l
}

func TestOutcomes(t *testing.T) {
	l := module(t)
	of := func(test, old, replacement string) *mutation {
		return &mutation{name: test, file: "p/p.go", pkg: "p", test: test, cuts: []cut{{old, replacement}}}
	}
	all := []*mutation{
		of("TestF", "\tx++\n", ""), of("TestF", "\tx++\n", "\tx += 1\n"), of("TestF", "\tx--\n", ""), of("TestF", "\tx++\n", "\ty++\n"),
		of("TestF", "\tx++\n", "\tpanic(x)\n"), of("TestBad", "\tx++\n", ""), of("TestSkipped", "\tx++\n", ""), of("TestNone", "\tx++\n", ""),
	}
	results, err := l.runAll(t.Context(), all)
	require.NoError(t, err)
	var got []outcome
	for _, r := range results {
		got = append(got, r.outcome)
	}
	require.Equal(t, []outcome{killed, survived, doesNotApply, doesNotBuild, panicked, failsAnyway, notRun, notRun}, got)
}
