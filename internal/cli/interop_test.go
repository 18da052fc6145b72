package cli

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/cli/inspect"
)

// TestInteropPyIcebergOpensBundles builds one index of every kind and has PyIceberg list and hash every blob.
func TestInteropPyIcebergOpensBundles(t *testing.T) {
	python := os.Getenv("SKOMER_PYTHON")
	if python == "" {
		t.Skip("SKOMER_PYTHON is not set: run make interop")
	}
	s := newShell(t)
	s.run("mount", "TABLE", "--overlay", "over")
	s.run("index", "add", "TABLE", "zonemap(distance)", "bloom(destination)", "ordered(delay)", "--overlay", "over")
	s.run("sync", "TABLE", "--overlay", "over")
	bundles, bodies := 0, 0
	require.NoError(t, filepath.WalkDir("over", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".puffin") {
			bundles++
			bodies += comparePuffin(t, s, python, path)
		}
		return err
	}))
	require.Positive(t, bundles)
	require.Positive(t, bodies)
}

// comparePuffin tells how many bodies of artifacts PyIceberg read as inspect does: file maps and facts have none.
func comparePuffin(t *testing.T, s *shell, python, path string) (checked int) {
	t.Helper()
	const script = `
import hashlib, json, sys
from pyiceberg.table.puffin import PuffinFile
puffin = PuffinFile(open(sys.argv[1], "rb").read())
print(json.dumps([{
    "type": b.type, "fields": b.fields, "offset": b.offset, "length": b.length, "snapshot": b.snapshot_id,
    "sum": hashlib.sha256(puffin.get_blob_payload(b)).hexdigest()} for b in puffin.footer.blobs]))
`
	out, err := exec.CommandContext(t.Context(), python, "-c", script, path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	var theirs []struct {
		Type, Sum                string
		Fields                   []int32
		Offset, Length, Snapshot int64
	}
	require.NoError(t, json.Unmarshal(out, &theirs), "%s", out)
	var ours inspect.Report
	require.NoError(t, json.Unmarshal([]byte(s.run("inspect", path, "--deep", "-o", "json")), &ours))
	require.Len(t, theirs, len(ours.Puffin.Blobs))
	bodies := map[int64]string{}
	for _, a := range ours.Puffin.Artifacts {
		require.Empty(t, a.Problem)
		bodies[a.BodyOffset] = a.BodySHA256
	}
	for i, b := range ours.Puffin.Blobs {
		require.Equal(t, b.Type, theirs[i].Type)
		require.Equal(t, b.Fields, theirs[i].Fields)
		require.Equal(t, []int64{b.Offset, b.Length, b.SnapshotID}, []int64{theirs[i].Offset, theirs[i].Length, theirs[i].Snapshot})
		if sum, ok := bodies[b.Offset]; ok && b.Length > 0 {
			require.Equal(t, sum, theirs[i].Sum, b.Type)
			checked++
		}
	}
	return checked
}
