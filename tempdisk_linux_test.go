package skomer_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
)

// TestFullTemporaryDisk: a sync whose temporary files fill their disk names the folder and the way out, and leaves nothing there.
func TestFullTemporaryDisk(t *testing.T) {
	dir := planted(t, func(n int) int64 { return int64(n) }, func(n int) int { return n })
	temp := t.TempDir()
	if err := unix.Mount("tmpfs", temp, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("no small disk can be mounted: ", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(temp, 0)) })
	table := clientOf(t, skomer.Config{OverlayRoot: t.TempDir()}, dir)
	ctx := context.Background()
	require.NoError(t, table.Mount(ctx))
	_, err := table.AddIndex(ctx, "ordered(payload)")
	require.NoError(t, err)
	t.Setenv("TMPDIR", temp)
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.Equal(t, fault.Exhausted, fault.ClassOf(err), "%v", err)
	require.True(t, strings.HasPrefix(err.Error(), temp+": "), "%v", err)
	require.Contains(t, fault.FixOf(err), "TMPDIR")
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestAdviceSweeps: estimates and advice remove what killed processes left among the temporary files, and leave nothing themselves.
func TestAdviceSweeps(t *testing.T) {
	dir := planted(t, func(n int) int64 { return int64(n) }, func(n int) int { return n % 7 })
	table := clientOf(t, skomer.Config{OverlayRoot: t.TempDir()}, dir)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for name, work := range map[string]func() error{
		"estimate": func() error {
			_, err := table.Estimate(t.Context(), []string{"ordered(payload)"}, skomer.Price{})
			return err
		},
		"advise": func() error { _, err := table.Advise(t.Context(), nil, skomer.Price{}); return err },
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(temp, "skomer-work-"+name+"-killed", "values"), 0o700))
		require.NoError(t, work(), name)
		left, err := os.ReadDir(temp)
		require.NoError(t, err)
		require.Empty(t, left, name)
	}
}
