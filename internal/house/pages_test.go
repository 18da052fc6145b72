package house

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```[^\n]*$")
	link    = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	// pathRef is a name in backticks that starts with a folder of this repository.
	pathRef = regexp.MustCompile("`((?:internal|docs|scripts|examples|cmd|bench|api|python|\\.ci)/[A-Za-z0-9_./-]*[A-Za-z0-9_])`")
)

// TestLinksLeadSomewhere follows every relative link of every page, anchors included.
func TestLinksLeadSomewhere(t *testing.T) {
	links := 0
	for _, page := range filesWith(t, ".md") {
		text := fence.ReplaceAllString(read(t, page), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			if why := follow(t, page, m[1]); why != "" {
				t.Errorf("%s: link to %s: %s", relative(page), m[1], why)
			}
		}
	}
	require.Greater(t, links, 5, "too few links were seen for this test to mean anything")
}

func follow(t *testing.T, page, target string) string {
	t.Helper()
	file, anchor, _ := strings.Cut(target, "#")
	path := page
	if file != "" {
		path = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
	}
	if _, err := os.Stat(path); err != nil {
		return "no such file"
	}
	if anchor == "" {
		return ""
	}
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(read(t, path), ""), -1) {
		if slug(h[1]) == anchor {
			return ""
		}
	}
	return fmt.Sprintf("no heading #%s", anchor)
}

// slug is the anchor that code hosts give a heading.
func slug(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

// TestPagesNameWhatExists checks every path in backticks. A path without its file extension may name a package.
func TestPagesNameWhatExists(t *testing.T) {
	refs := 0
	for _, page := range filesWith(t, ".md") {
		for _, m := range pathRef.FindAllStringSubmatch(read(t, page), -1) {
			refs++
			if _, err := os.Stat(filepath.Join(root(), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s names %s, which does not exist", relative(page), m[1])
			}
		}
	}
	require.Greater(t, refs, 5, "too few paths were seen for this test to mean anything")
}

// TestArchitectureNamesEveryRoom makes sure that a newcomer finds every room that exists.
func TestArchitectureNamesEveryRoom(t *testing.T) {
	page := read(t, filepath.Join(root(), "ARCHITECTURE.md"))
	for _, p := range listPackages(t) {
		key, ok := roomOf(p.ImportPath)
		if ok && key != "" && !strings.Contains(page, "`"+key+"`") {
			t.Errorf("ARCHITECTURE.md does not name `%s`", key)
		}
	}
}

// TestDecisionsAreListed keeps the table of contents of docs/adr whole.
func TestDecisionsAreListed(t *testing.T) {
	index := read(t, filepath.Join(root(), "docs", "adr", "README.md"))
	pages, err := filepath.Glob(filepath.Join(root(), "docs", "adr", "0*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		require.Contains(t, index, "("+filepath.Base(page)+")", "docs/adr/README.md")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
