package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
)

const lifeFilter = "flight_id = '7CBWH4K3' OR delay > 1200"

// indexed is a shell whose table has two indexes, and the answer to lifeFilter.
func indexed(t *testing.T) (s *shell, answer, where string) {
	t.Helper()
	s = newShell(t)
	answer = s.run("query", "TABLE", "-w", lifeFilter, "-o", "json")
	s.run("mount", "TABLE")
	s.run("index", "add", "TABLE", "bloom(flight_id)", "ordered(delay)")
	s.run("sync", "TABLE")
	var st skomer.Status
	require.NoError(t, json.Unmarshal([]byte(s.run("status", "TABLE", "-o", "json")), &st))
	return s, answer, st.Overlay
}

func (s *shell) same(answer, what string, more ...string) {
	s.t.Helper()
	require.Equal(s.t, answer, s.run(append([]string{"query", "TABLE", "-w", lifeFilter, "-o", "json"}, more...)...), what)
}

func (s *shell) report(args ...string) skomer.VacuumReport {
	s.t.Helper()
	var r skomer.VacuumReport
	require.NoError(s.t, json.Unmarshal([]byte(s.run(append(args, "-o", "json")...)), &r))
	return r
}

func bytesBelow(t *testing.T, dir, ext string) (n int64) {
	t.Helper()
	_ = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && strings.HasSuffix(path, ext) {
			n += info.Size()
		}
		return nil
	})
	return n
}

func TestVacuumThroughTheCommand(t *testing.T) {
	s, answer, where := indexed(t)
	untouched := everythingBelow(t, s.flights)
	s.run("index", "drop", "TABLE", "bloom(flight_id)", "ordered(delay)")
	s.run("index", "add", "TABLE", "zonemap(delay)")
	s.run("sync", "TABLE")
	full := bytesBelow(t, where, ".puffin")
	require.Empty(t, s.report("vacuum", "TABLE").Deleted, "everything is young, and its versions are retained")
	dry := s.report("vacuum", "TABLE", "--retain", "1", "--grace", "0s", "--dry-run")
	require.True(t, dry.DryRun)
	require.Equal(t, full, bytesBelow(t, where, ".puffin"))
	text := s.run("vacuum", "TABLE", "--retain", "1", "--grace", "0s")
	require.Contains(t, text, "no retained version names it")
	require.Contains(t, text, "body of an expired version")
	require.Less(t, bytesBelow(t, where, ".puffin"), full/2)
	s.same(answer, "after a vacuum")
	require.Contains(t, s.run("status", "TABLE"), "zonemap(delay)")
	require.Contains(t, s.run("overlay", "versions", "TABLE"), "expired")
	require.Equal(t, exitNotFound, s.try("overlay", "rollback", "TABLE", "--to", "3").code)
	require.Equal(t, untouched, everythingBelow(t, s.flights))
	require.Equal(t, exitOK, s.try("vacuum", "TABLE", "--retain", "1", "--grace", "0s").code, "again")

	s.run("index", "drop", "TABLE", "zonemap(delay)")
	r := s.try("vacuum", "TABLE", "--retain", "1", "--grace", "0s")
	for range 2 { // the version before the drop is retained by the first one
		r = s.try("vacuum", "TABLE", "--retain", "1", "--grace", "0s")
	}
	require.Equal(t, exitRefused, r.code)
	require.Contains(t, r.err, "--allow-empty")
	s.run("vacuum", "TABLE", "--retain", "1", "--grace", "0s", "--allow-empty")
	require.Zero(t, bytesBelow(t, where, ".puffin"))
	s.same(answer, "without any index")
	require.Equal(t, exitUsage, s.try("vacuum", "TABLE", "--retain-for", "soon").code)
}

// TestU34: no empty folder is left behind.
func TestU34NoEmptyFoldersAreLeft(t *testing.T) {
	s, _, where := indexed(t)
	require.NoError(t, os.MkdirAll(filepath.Join(where, "data", "left", "empty"), 0o755))
	s.run("index", "drop", "TABLE", "bloom(flight_id)", "--purge")
	s.run("index", "drop", "TABLE", "ordered(delay)", "--purge")
	require.Zero(t, bytesBelow(t, where, ".puffin"))
	require.NoError(t, filepath.Walk(where, func(path string, info os.FileInfo, err error) error {
		require.NoError(t, err)
		if info.IsDir() {
			entries, err := os.ReadDir(path)
			require.NoError(t, err)
			require.NotEmpty(t, entries, path)
		}
		return nil
	}))
}

func TestDropWithPurgeFreesTheBytesNow(t *testing.T) {
	s, answer, where := indexed(t)
	full := bytesBelow(t, where, ".puffin")
	r := s.try("index", "drop", "TABLE", "bloom(flight_id)", "--purge")
	require.Equal(t, exitOK, r.code, r.err)
	s.same(answer, "one purged")
	require.NotContains(t, s.run("index", "list", "TABLE"), "bloom")
	require.LessOrEqual(t, bytesBelow(t, where, ".puffin"), full)
	s.run("index", "drop", "TABLE", "ordered(delay)", "--purge")
	require.Zero(t, bytesBelow(t, where, ".puffin"), "bundles that both shared go with the last of them")
	s.same(answer, "both purged")
	s.run("overlay", "rollback", "TABLE", "--to", "4")
	require.NotContains(t, s.run("index", "list", "TABLE"), "bloom", "what was purged stays dropped")
	s.same(answer, "rolled back")
}

func TestUnmountWithPurge(t *testing.T) {
	s, answer, where := indexed(t)
	other := filepath.Join(filepath.Dir(s.flights), "elsewhere")
	require.Equal(t, exitNotFound, s.try("unmount", "TABLE", "--purge", "--overlay", other).code)
	require.NotEqual(t, exitOK, s.try("unmount", "TABLE", "--purge", "--overlay", s.flights).code)
	untouched := everythingBelow(t, s.flights)
	text := s.run("unmount", "TABLE", "--purge")
	require.Contains(t, text, "purged")
	require.Equal(t, untouched, everythingBelow(t, s.flights))
	left := everythingBelow(t, where)
	require.Len(t, left, 3, "the folder, versions/ and the record of the newest: %v", left)
	require.Less(t, bytesBelow(t, where, ""), int64(4096))
	s.same(answer, "purged")
	require.Contains(t, s.run("status", "TABLE"), "(not mounted)")
	s.run("mount", "TABLE")
	require.NotContains(t, s.run("status", "TABLE"), "warning")
	s.run("index", "add", "TABLE", "bloom(flight_id)")
	s.run("sync", "TABLE")
	s.same(answer, "built again")
	require.Equal(t, exitOK, s.try("status", "TABLE", "--fail-on", "coverage<100,rejected>0").code)
}

func TestRollback(t *testing.T) {
	s, answer, _ := indexed(t)
	before := s.run("index", "list", "TABLE")
	var versions []skomer.OverlayVersion
	require.NoError(t, json.Unmarshal([]byte(s.run("overlay", "versions", "TABLE", "-o", "json")), &versions))
	require.Equal(t, "newest", versions[0].State)
	s.run("index", "drop", "TABLE", "bloom(flight_id)", "ordered(delay)")
	s.run("overlay", "rollback", "TABLE", "--to", strconv.FormatUint(versions[0].Version, 10))
	require.Equal(t, before, s.run("index", "list", "TABLE"))
	s.same(answer, "rolled back")
	require.Equal(t, exitOK, s.try("status", "TABLE", "--fail-on", "coverage<100,rejected>0").code)
	require.Equal(t, exitNotFound, s.try("overlay", "rollback", "TABLE", "--to", "999").code)
	require.Equal(t, exitUsage, s.try("overlay", "rollback", "TABLE").code)
}

func TestRecoverADamagedOverlay(t *testing.T) {
	s, answer, where := indexed(t)
	newest, err := filepath.Glob(filepath.Join(where, "versions", "*"))
	require.NoError(t, err)
	require.NoError(t, os.Chmod(newest[0], 0o600))
	require.NoError(t, os.WriteFile(newest[0], []byte("damaged"), 0o600))
	s.same(answer, "damaged")
	r := s.try("index", "drop", "TABLE", "bloom(flight_id)")
	require.NotEqual(t, exitOK, r.code)
	s.run("overlay", "recover", "TABLE")
	s.run("sync", "TABLE")
	s.same(answer, "recovered")
	require.Equal(t, exitOK, s.try("status", "TABLE", "--fail-on", "coverage<100,rejected>0").code)
	require.Equal(t, exitOK, s.try("overlay", "recover", "TABLE").code, "nothing to recover")
}

func TestCopyOfAnOverlayAnswersTheSame(t *testing.T) {
	s, answer, where := indexed(t)
	to := filepath.Join(filepath.Dir(s.flights), "copy")
	bundles, err := filepath.Glob(filepath.Join(where, "data", "*.puffin"))
	require.NoError(t, err)
	bundles = slices.DeleteFunc(bundles, func(path string) bool { return strings.Contains(path, "-map") })
	raw, err := os.ReadFile(bundles[0])
	require.NoError(t, err)
	require.NoError(t, os.Chmod(bundles[0], 0o600))
	damaged := append([]byte(nil), raw...)
	damaged[len(damaged)/2] ^= 1
	require.NoError(t, os.WriteFile(bundles[0], damaged, 0o600))
	require.Equal(t, exitRefused, s.try("overlay", "copy", "TABLE", "--to", to).code, "a damaged bundle is not copied")
	require.Equal(t, exitNotFound, s.try("index", "list", "TABLE", "--overlay", to).code, "there is no overlay until it is whole")
	require.NoError(t, os.WriteFile(bundles[0], raw, 0o600))
	s.run("overlay", "copy", "TABLE", "--to", to)
	s.same(answer, "copied", "--overlay", to)
	require.Equal(t, s.run("index", "list", "TABLE"), s.run("index", "list", "TABLE", "--overlay", to))
	r := s.try("query", "TABLE", "-c", "-w", "flight_id = '7CBWH4K3'", "--stats", "--overlay", to)
	require.Contains(t, r.err, `"indexes_used":["bloom(flight_id)"]`)
	require.Equal(t, exitOK, s.try("status", "TABLE", "--overlay", to, "--fail-on", "coverage<100,rejected>0").code)
	require.Equal(t, exitRefused, s.try("overlay", "copy", "TABLE", "--to", to).code, "an overlay is there")
	require.Equal(t, exitRefused, s.try("overlay", "copy", "TABLE", "--to", where+"/inside").code)
	require.Equal(t, exitRefused, s.try("overlay", "copy", "TABLE", "--to", s.flights+"/index").code)
	require.NoError(t, os.RemoveAll(where))
	s.same(answer, "the original is gone", "--overlay", to)
	s.run("index", "drop", "TABLE", "ordered(delay)", "--overlay", to)
	s.run("sync", "TABLE", "--overlay", to)
}

// TestPurgeOfAnOverlayWhoseTableIsGone: what was derived from a table can be deleted after the table is.
func TestPurgeOfAnOverlayWhoseTableIsGone(t *testing.T) {
	s, _, where := indexed(t)
	require.NoError(t, os.Chmod(s.flights, 0o755))
	require.NoError(t, os.Rename(s.flights, s.flights+".gone"))
	require.Equal(t, exitNotFound, s.try("unmount", "TABLE", "--purge").code)
	require.Equal(t, exitUsage, s.try("unmount").code)
	require.Equal(t, exitUsage, s.try("unmount", "--purge").code)
	require.Equal(t, exitUsage, s.try("unmount", "--overlay", where).code)
	require.Equal(t, exitNotFound, s.try("unmount", "--purge", "--overlay", where+"x").code)
	require.Positive(t, bytesBelow(t, where, ""))
	r := s.report("unmount", "--purge", "--overlay", where)
	require.NotEmpty(t, r.Deleted)
	require.Zero(t, bytesBelow(t, where, ".puffin"))
	require.Less(t, bytesBelow(t, where, ""), int64(2000))
}

// TestPurgeOfAnUnreadableOverlay: an overlay that no version tells of is deleted only by its place.
func TestPurgeOfAnUnreadableOverlay(t *testing.T) {
	s, answer, where := indexed(t)
	versions, err := filepath.Glob(filepath.Join(where, "versions", "*"))
	require.NoError(t, err)
	for _, v := range versions {
		require.NoError(t, os.Truncate(v, 50))
	}
	refused := s.try("unmount", "TABLE", "--purge")
	require.Equal(t, exitRefused, refused.code)
	require.Contains(t, refused.err, "skomer unmount --purge --overlay "+where)
	s.run("unmount", "--purge", "--overlay", where)
	require.Zero(t, bytesBelow(t, where, ".puffin"))
	s.same(answer, "nothing is mounted")
	s.run("mount", "TABLE")
}
