package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/demo"
	"github.com/skomerdb/skomer/internal/store/local"
)

// TestStatusOfAll: every overlay below the root is listed with how it stands, those of tables that are gone as stranded, and what is not an
// overlay, or was purged, is not.
func TestStatusOfAll(t *testing.T) {
	s := newShell(t)
	r := s.try("status")
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.err, "no overlay lies below the overlay root")
	s.run("mount", "TABLE")
	s.run("index", "add", "TABLE", "bloom(state)")
	s.run("sync", "TABLE")
	root, err := filepath.Abs(filepath.Join("data", "skomer"))
	require.NoError(t, err)
	var st skomer.Status
	require.NoError(t, json.Unmarshal([]byte(s.run("status", "TABLE", "-o", "json")), &st))

	copied := func(name string) string { // another folder with the same table
		place := filepath.Join(root, name)
		require.NoError(t, os.CopyFS(place, os.DirFS(st.Overlay)))
		return place
	}
	require.NoError(t, os.MkdirAll(filepath.Join(root, "else", "versions"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "else", "versions", "note.txt"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, "0-file"), nil, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, filepath.Base(st.Overlay)+"1"), nil, 0o644))
	damaged := copied("damaged")
	versions, err := filepath.Glob(filepath.Join(damaged, "versions", "*"))
	require.NoError(t, err)
	for _, v := range versions {
		require.NoError(t, os.WriteFile(v, []byte("x"), 0o644))
	}
	off := copied("off")
	s.run("unmount", "TABLE", "--overlay", off)
	purged := copied("purged")
	s.run("unmount", "TABLE", "--purge", "--overlay", purged)
	gone := filepath.Join(t.TempDir(), "gone")
	require.NoError(t, demo.Write(t.Context(), local.New(), gone))
	s.run("mount", gone, "--overlay", filepath.Join(root, "gone"))
	require.NoError(t, os.RemoveAll(gone))

	list := func() map[string]skomer.OverlayState {
		var all []skomer.OverlayState
		require.NoError(t, json.Unmarshal([]byte(s.run("status", "-o", "json")), &all))
		by := map[string]skomer.OverlayState{}
		for _, o := range all {
			by[filepath.Base(o.Overlay)] = o
		}
		return by
	}
	all := list()
	require.Len(t, all, 4, "%v", all)
	here := all[filepath.Base(st.Overlay)]
	require.Equal(t, skomer.OverlayMounted, here.State, here.Reason)
	require.Equal(t, st.Indexes, here.Status.Indexes)
	require.Equal(t, s.flights, here.Table)
	require.Equal(t, skomer.OverlayUnmounted, all["off"].State)
	require.Equal(t, skomer.OverlayUnusable, all["damaged"].State)
	require.Equal(t, skomer.OverlayStranded, all["gone"].State)
	require.Equal(t, gone, all["gone"].Table)
	require.Nil(t, all["gone"].Status)

	r = s.try("status", "--fail-on", "coverage<95")
	require.Equal(t, exitUnhealthy, r.code)
	require.Contains(t, r.err, "unhealthy: "+gone+": stranded")
	require.Contains(t, r.err, "unhealthy: "+damaged+": unusable")
	require.NotContains(t, r.err, s.flights)
	for _, place := range []string{all["gone"].Overlay, damaged} {
		s.run("unmount", "--purge", "--overlay", place)
	}
	require.Len(t, list(), 2)
	s.run("status", "--fail-on", "coverage<95")
	require.Equal(t, exitUnhealthy, s.try("status", "--fail-on", "coverage<95,backlog>0", "--map", s.flights+"="+gone).code, "the table is elsewhere")

	require.NoError(t, os.Chmod(s.flights, 0o755))
	require.Equal(t, exitUsage, s.try("status", "--overlay", off).code)
}
