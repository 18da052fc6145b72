package cli

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lab makes a SQL catalog with tables in the namespace web, by name their folders, and makes it the default.
func lab(t *testing.T, tables map[string]string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lab.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Exec(`CREATE TABLE iceberg_tables (catalog_name TEXT, table_namespace TEXT, table_name TEXT, metadata_location TEXT, previous_metadata_location TEXT)`)
	require.NoError(t, err)
	for name, folder := range tables {
		found, err := filepath.Glob(filepath.Join(folder, "metadata", "*.metadata.json"))
		require.NoError(t, err)
		at := folder + "/metadata/none.metadata.json"
		if len(found) > 0 {
			at = found[len(found)-1]
		}
		_, err = db.Exec(`INSERT INTO iceberg_tables VALUES ('lab', 'web', ?, ?, NULL)`, name, "file://"+at)
		require.NoError(t, err)
	}
	t.Setenv("SKOMER_CATALOG__LAB__TYPE", "sql")
	t.Setenv("SKOMER_CATALOG__LAB__URI", "sqlite:///"+path)
}

// TestSyncOfAPattern: all mounted tables of a namespace are synced, one that fails does not keep the others from it, and tells the exit code.
func TestSyncOfAPattern(t *testing.T) {
	s := newShell(t)
	tables := map[string]string{"flights": s.flights, "lost": filepath.Join(t.TempDir(), "lost")}
	lab(t, tables)
	s.run("mount", "lab.web.flights")
	s.run("index", "add", "lab.web.flights", "bloom(state)")
	r := s.try("sync", "lab.web.z*")
	require.Equal(t, exitNotFound, r.code)
	require.Contains(t, r.err, "matches 0 tables")
	t.Setenv("SKOMER_OVERLAY_ROOT", t.TempDir())
	r = s.try("sync", "lab.web.f*")
	require.Equal(t, exitNotFound, r.code)
	require.Contains(t, r.err, "matches 1 table, and none is mounted")
	t.Setenv("SKOMER_OVERLAY_ROOT", "")

	r = s.try("sync", "lab.web.[fl]*")
	require.Equal(t, exitNotFound, r.code, r.err)
	require.Contains(t, r.out, "lab.web.flights  snapshot 1001")
	require.Contains(t, r.out, "60 files indexed")
	require.Contains(t, r.err, "lab.web.lost: ")
	require.Contains(t, s.run("status", "lab.web.flights"), "100%")

	r = s.try("sync", "lab.web.[lf]*", "-o", "json")
	require.Equal(t, exitNotFound, r.code)
	var all []syncedTable
	require.NoError(t, json.Unmarshal([]byte(r.out), &all))
	require.Len(t, all, 2)
	require.Equal(t, "lab.web.flights", all[0].Table)
	require.Zero(t, all[0].Report.FilesIndexed)
	require.Equal(t, exitNotFound, all[1].Error.Code)
	require.Equal(t, "lab.web.flights", strings.TrimSpace(strings.SplitN(s.run("sync", "lab.web.f*"), "  ", 2)[0]))

	s.run("index", "add", "lab.web.flights", "bloom(origin)")
	require.Contains(t, s.try("sync", "lab.web.f*", "--max-cost", "0.0000001").err, "ended early")
	for _, more := range []string{"--follow=1m", "--overlay=/x"} {
		require.Equal(t, exitUsage, s.try("sync", "lab.web.*", more).code)
	}
}
