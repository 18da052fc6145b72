package indextest

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

// Golden compares an artifact with testdata/<name>.golden, a text with a comment and the bytes in hex. -rewrite writes it.
// The comment says what was built; reading ignores lines that start with #.
func Golden(t *testing.T, name, comment string, a Artifact) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	var out strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(comment), "\n") {
		fmt.Fprintf(&out, "# %s\n", line)
	}
	out.WriteString("root\n" + hex.Dump(a.Root) + "body\n" + hex.Dump(a.Body))
	if *rewrite {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != out.String() {
		t.Errorf("%s: the bytes changed; if the format version changed with them, run with -rewrite. Now:\n%s", file, out.String())
	}
	kept := ReadGolden(t, name)
	if !bytes.Equal(kept.Root, a.Root) || !bytes.Equal(kept.Body, a.Body) {
		t.Errorf("%s does not read back", file)
	}
}

// ReadGolden reads the artifact in testdata/<name>.golden.
func ReadGolden(t testing.TB, name string) Artifact {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".golden"))
	if err != nil {
		t.Fatal(err)
	}
	var a Artifact
	into := &a.Root
	for _, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "" || line[0] == '#' || line == "root":
		case line == "body":
			into = &a.Body
		default:
			b, err := hex.DecodeString(strings.ReplaceAll(strings.SplitN(line[8:], "|", 2)[0], " ", ""))
			if err != nil {
				t.Fatalf("%s: %q: %v", name, line, err)
			}
			*into = append(*into, b...)
		}
	}
	return a
}
