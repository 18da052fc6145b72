package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The pages whose ```console blocks are run, from the repository's root.
var pages = []string{"README.md"}

var (
	consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
	// varying is what may differ from run to run: ids, places, times, sizes and what depends on them.
	varying = regexp.MustCompile(`-[0-9a-f]{10}\b|[~.]?/\S*|\d+\.\d+ (s|ms)\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|[0-9.]+ (B|kB|MB)\b|"(bytes|seconds)":[0-9.e-]+`)
	spaces  = regexp.MustCompile(`[ ─]+`)
)

// TestPagesShowWhatHappens runs every command of every ```console block and compares what it prints with what the page says,
// standard error included. SKOMER_GOLDEN=write writes the pages anew.
func TestPagesShowWhatHappens(t *testing.T) {
	_, self, _, _ := runtime.Caller(0)
	repository := filepath.Join(filepath.Dir(self), "..", "..")
	for _, name := range pages {
		page := filepath.Join(repository, name)
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		newShell(t)
		commands := 0
		rewritten := consoleBlock.ReplaceAllStringFunc(string(text), func(block string) string {
			var out strings.Builder
			out.WriteString("```console\n")
			for line := range strings.Lines(block) {
				command, ok := strings.CutPrefix(line, "$ skomer ")
				if !ok {
					continue
				}
				commands++
				out.WriteString(line + runLine(t, strings.TrimSpace(command)))
			}
			return out.String() + "```"
		})
		require.Positive(t, commands, "%s shows nothing", name)
		if os.Getenv("SKOMER_GOLDEN") == "write" && normal(string(text)) != normal(rewritten) {
			require.NoError(t, os.WriteFile(page, []byte(rewritten), 0o644))
			continue
		}
		require.Equal(t, normal(string(text)), normal(rewritten), "%s shows what does not happen: SKOMER_GOLDEN=write go test ./internal/cli", name)
	}
}

// TestTheHookIsMeasured holds the figures of the README's first sentence against the demo's first row, which is run.
func TestTheHookIsMeasured(t *testing.T) {
	_, self, _, _ := runtime.Caller(0)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(self), "..", "..", "README.md"))
	require.NoError(t, err)
	hook := regexp.MustCompile(`(\d+) requests and (\d+) kB instead of (\d+) requests and ([\d.]+ MB)`).FindStringSubmatch(string(text))
	require.NotNil(t, hook)
	row := regexp.MustCompile(`(?m)^flight_id = '7CBWH4K3' +1 +60 +(\d+) +([\d.]+ MB) +1 +(\d+) +(\d+)\.\d kB$`).FindStringSubmatch(string(text))
	require.NotNil(t, row)
	require.Equal(t, []string{row[3], row[4], row[1], row[2]}, hook[1:])
}

func normal(text string) string {
	return spaces.ReplaceAllString(varying.ReplaceAllString(text, "…"), " ")
}

// runLine is what a command prints, with the folders of the test named as a user's would be.
func runLine(t *testing.T, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var out bytes.Buffer
	require.Zero(t, Run(ctx, shellWords(line), &out, &out), "skomer %s\n%s", line, out.String())
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	if strings.HasPrefix(line, "demo") {
		cache, err := os.UserCacheDir()
		require.NoError(t, err)
		require.NoError(t, protect(cache, 0, 0o200)) // so that the test can clean up
	}
	return strings.NewReplacer(
		filepath.Join(home, "cache"), "/home/ada/.cache", filepath.Join(home, "data"), "/home/ada/.local/share", home, "/home/ada/.cache/skomer/demo",
	).Replace(out.String())
}
