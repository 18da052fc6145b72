package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// outcome is what became of a mutation.
type outcome string

const (
	killed       outcome = "killed" // the only good one
	survived     outcome = "survived"
	doesNotApply outcome = "does not apply"
	doesNotBuild outcome = "does not compile"
	panicked     outcome = "panicked, no assertion failed"
	timedOut     outcome = "timed out"
	notRun       outcome = "the test did not run"
	failsAnyway  outcome = "the test fails without the mutation"
	broken       outcome = "the test could not be run"
)

const (
	parallel     = 2
	compileLimit = 5 * time.Minute
	runLimit     = 2 * time.Minute
)

type result struct {
	outcome outcome
	output  string
	took    time.Duration
}

// lab compiles and runs tests, in root, with files in work.
type lab struct{ root, work string }

// runAll settles every mutation. The tests of a package are compiled and run without mutations first; what they need stays in
// go's build cache, so that a mutation compiles only its package, what stands between that and the test, and the link.
func (l *lab) runAll(ctx context.Context, all []*mutation) ([]result, error) {
	tests := map[string][]string{}
	var packages []string
	for _, m := range all {
		if tests[m.pkg] == nil {
			packages = append(packages, m.pkg)
		}
		tests[m.pkg] = append(tests[m.pkg], m.test)
	}
	sound := make([]map[string]result, len(packages))
	each(len(packages), func(i int) { sound[i] = l.sound(ctx, packages[i], tests[packages[i]]) })
	results := make([]result, len(all))
	each(len(all), func(i int) {
		m, start := all[i], time.Now()
		if results[i] = sound[slices.Index(packages, m.pkg)][m.test]; results[i].outcome == survived {
			results[i] = l.mutate(ctx, m, fmt.Sprint("m", i))
		}
		results[i].took = time.Since(start)
		fmt.Fprintf(os.Stderr, "%s: %s in %.1f s\n", m.name, results[i].outcome, results[i].took.Seconds())
	})
	return results, ctx.Err()
}

// each calls work for 0 to n-1, some at a time.
func each(n int, work func(int)) {
	next := make(chan int)
	var g sync.WaitGroup
	for range parallel {
		g.Go(func() {
			for i := range next {
				work(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	g.Wait()
}

// sound runs the tests of a package as the code stands: each must pass, which is to survive no mutation.
func (l *lab) sound(ctx context.Context, pkg string, tests []string) map[string]result {
	out := map[string]result{}
	binary := filepath.Join(l.work, strings.NewReplacer("/", "_", ".", "_").Replace(pkg)+".test")
	built := l.compile(ctx, pkg, binary, "")
	for _, test := range tests {
		if _, done := out[test]; done {
			continue
		}
		out[test] = built
		if built.outcome == survived {
			r := l.test(ctx, pkg, binary, test)
			if r.outcome == killed {
				r.outcome = failsAnyway
			}
			out[test] = r
		}
	}
	os.Remove(binary)
	return out
}

// mutate settles one mutation whose test is sound.
func (l *lab) mutate(ctx context.Context, m *mutation, id string) result {
	path := filepath.Join(l.root, filepath.FromSlash(m.file))
	source, err := os.ReadFile(path)
	if err != nil {
		return result{outcome: doesNotApply, output: err.Error() + "\n"}
	}
	mutated, err := m.apply(string(source))
	if err != nil {
		return result{outcome: doesNotApply, output: err.Error() + "\n"}
	}
	overlay := filepath.Join(l.work, id+".json")
	if err := writeOverlay(overlay, path, mutated); err != nil {
		return result{outcome: broken, output: err.Error() + "\n"}
	}
	binary := filepath.Join(l.work, id+".test")
	defer os.Remove(binary)
	if built := l.compile(ctx, m.pkg, binary, overlay); built.outcome != survived {
		return built
	}
	return l.test(ctx, m.pkg, binary, m.test)
}

// writeOverlay writes the mutated source and the file that puts it in place of path.
func writeOverlay(overlay, path, mutated string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": {abs: overlay + ".go"}})
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(overlay+".go", []byte(mutated), 0o600), os.WriteFile(overlay, b, 0o600))
}

// compile builds the tests of a package; its outcome is survived when that went well.
func (l *lab) compile(ctx context.Context, pkg, binary, overlay string) result {
	ctx, cancel := context.WithTimeout(ctx, compileLimit)
	defer cancel()
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...)
	cmd.Dir = l.root
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return result{outcome: timedOut, output: string(out)}
	case err != nil:
		return result{outcome: doesNotBuild, output: string(out)}
	}
	return result{outcome: survived}
}

// test runs one test of a binary in the package's folder, as go test does.
func (l *lab) test(ctx context.Context, pkg, binary, test string) result {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^"+test+"$", "-test.v", "-test.count=1")
	cmd.Dir = filepath.Join(l.root, filepath.FromSlash(pkg))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return result{outcome: timedOut, output: string(out)}
	}
	return result{outcome: judge(test, string(out), err), output: string(out)}
}

var panicLine = regexp.MustCompile(`(?m)^(panic: |fatal error: )`)

// judge tells from the verbose output of one test, and the error of its process, what became of it.
func judge(test, output string, err error) outcome {
	said := func(what string) bool {
		return regexp.MustCompile(`(?m)^--- ` + what + `: ` + test + ` `).MatchString(output)
	}
	switch {
	case panicLine.MatchString(output):
		return panicked
	case err == nil && said("PASS"):
		return survived
	case err == nil:
		return notRun
	case said("FAIL"):
		return killed
	default:
		return broken
	}
}
