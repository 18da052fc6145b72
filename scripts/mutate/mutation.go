package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// mutation is one broken rule. Its file has a head of "key: value" lines and then, once or more, whole lines of the source file
// and what replaces them:
//
//	case: O07
//	rule: what the case demands
//	file: internal/parquetio/judge.go
//	test: internal/parquetio TestO07DeprecatedStringBounds
//	--- old
//	lines that occur exactly once
//	--- new
//	lines, or none
type mutation struct {
	name string // of its file: the case, and what sets it apart from others of the case
	key  string // the case
	rule string
	file string // that is changed, from the root
	pkg  string // folder of the test, from the root
	test string
	cuts []cut
}

type cut struct{ old, new string }

func readAll(dir string) ([]*mutation, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var out []*mutation
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimSuffix(filepath.Base(path), ".txt"), string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, m)
	}
	return out, nil
}

func parse(name, text string) (*mutation, error) {
	m := &mutation{name: name}
	head, body, _ := strings.Cut(text, "--- old\n")
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "case":
			m.key = value
		case "rule":
			m.rule = value
		case "file":
			m.file = value
		case "test":
			m.pkg, m.test, _ = strings.Cut(value, " ")
		default:
			return nil, fmt.Errorf("%q is neither case, rule, file nor test", strings.TrimSpace(line))
		}
	}
	for part := range strings.SplitSeq(body, "--- old\n") {
		old, replacement, ok := strings.Cut(part, "--- new\n")
		if !ok || old == "" || old == replacement {
			return nil, fmt.Errorf("%q has no lines to replace, or nothing else in their place", old)
		}
		m.cuts = append(m.cuts, cut{old, replacement})
	}
	if m.rule == "" || m.file == "" || !regexp.MustCompile(`^Test\w+$`).MatchString(m.test) {
		return nil, fmt.Errorf("rule, file and the package and name of one test are needed")
	}
	if !strings.HasPrefix(name, m.key) || m.key == "" {
		return nil, fmt.Errorf("a mutation of case %s is named after it", m.key)
	}
	return m, nil
}

// apply is the mutated source. Lines that are gone, or that stand there twice, are an error.
func (m *mutation) apply(source string) (string, error) {
	for _, c := range m.cuts {
		at, n := -1, 0
		for i := range source {
			if (i == 0 || source[i-1] == '\n') && strings.HasPrefix(source[i:], c.old) {
				at, n = i, n+1
			}
		}
		if n != 1 {
			return "", fmt.Errorf("%s has these lines %d times instead of once:\n%s", m.file, n, c.old)
		}
		source = source[:at] + c.new + source[at+len(c.old):]
	}
	return source, nil
}
