package interop_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/interop"
	"github.com/skomerdb/skomer/internal/puffin"
)

// TestInteropBundlesAreOpened: PyIceberg's and Java's Puffin readers find the same blobs with the same bytes in our bundles.
func TestInteropBundlesAreOpened(t *testing.T) {
	files := bundles(t, filepath.Join(interop.Folder(t, "spark"), "db", "types_v2"))
	var want []string
	for _, path := range files {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		footer, _, err := puffin.ParseFooter(path, b, int64(len(b)))
		require.NoError(t, err)
		for _, blob := range footer.Blobs {
			fields := strings.ReplaceAll(fmt.Sprint(blob.Fields), " ", ", ")
			want = append(want, fmt.Sprintf("%s %s %d %d %d %d %x", blob.Type, fields, blob.SnapshotID, blob.SequenceNumber,
				blob.Offset, blob.Length, sha256.Sum256(b[blob.Offset:blob.Offset+blob.Length])))
		}
	}
	require.Greater(t, len(want), 9)
	python := append([]string{filepath.Join("python", "bundles.py")}, files...)
	require.Equal(t, want, interop.Lines(t, interop.Python(t), python...))
	require.Equal(t, want, interop.Lines(t, "java", append(interop.Java(t, "Bundles"), files...)...))
}

// bundles indexes a table and lists the bundles of its overlay.
func bundles(t *testing.T, location string) []string {
	t.Helper()
	ctx := context.Background()
	overlay := t.TempDir()
	client, err := skomer.New(skomer.Config{})
	require.NoError(t, err)
	table, err := client.Open(ctx, location, skomer.TableOptions{Overlay: overlay})
	require.NoError(t, err)
	require.NoError(t, table.Mount(ctx))
	for _, expr := range []string{"zonemap(i)", "bloom(s)", "ordered(l)", "ordered(d)", "sketch(l)", "sketch(s)"} {
		_, err := table.AddIndex(ctx, expr)
		require.NoError(t, err)
	}
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	table.Close()
	var out []string
	require.NoError(t, filepath.WalkDir(overlay, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".puffin") {
			out = append(out, path)
		}
		return err
	}))
	return out
}
