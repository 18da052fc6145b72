package cli

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/bytescan"
)

func TestLooseSidecarsAreListedAndMigratedAndNeverBelieved(t *testing.T) {
	s := newShell(t)
	answer := s.run("query", "TABLE", "-w", lifeFilter, "-o", "json")
	s.run("mount", "TABLE")
	dir := filepath.Join(filepath.Dir(s.flights), "sidecars")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	payload := []byte("claims that no row matches")
	sum := sha256.Sum256(payload)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.idx"), payload, 0o600))
	record := func(id, category, algorithm, column, path, checksum string) string {
		return fmt.Sprintf(`{"format_version": 1, "index_id": %q, "index_category": %q, "algorithm": %q, "column_name": %q, "source_snapshot_id": 0,
			"source_data_checksum": "", "source_record_count": 0, "file_path": %q, "index_checksum": %q}`, id, category, algorithm, column, path, checksum)
	}
	manifest := fmt.Sprintf(`{"entries": [{"data_file": "x.parquet", "index_files": [%s, %s, %s, %s, %s]}]}`,
		record("1", "bloom", "bloom_v1", "flight_id", "a.idx", hex.EncodeToString(sum[:])),
		record("2", "scalar", "inverted_i32", "delay", "a.idx", ""),
		record("3", "vector", "hnsw_f32", "delay", "b.idx", ""),
		record("4", "bloom", "bloom_v1", "no_such_column", "a.idx", hex.EncodeToString(sum[:31])+"00"),
		record("5", "scalar", "inverted_i32", "delay", filepath.Join(dir, "a.idx"), ""))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(manifest), 0o600))

	var all []skomer.LegacySidecar
	require.NoError(t, json.Unmarshal([]byte(s.run("overlay", "legacy", "TABLE", "--from", dir, "-o", "json")), &all))
	var got [][3]string
	for _, x := range all {
		require.Equal(t, x.Becomes == "", x.Reason != "", x)
		got = append(got, [3]string{x.IndexID, x.State, x.Becomes})
	}
	require.Equal(t, [][3]string{
		{"1", "checksum matches", "bloom(flight_id)"},
		{"2", "unverified", "ordered(delay)"},
		{"3", "missing", ""},
		{"4", "checksum differs", ""},
		{"5", "unverified", "ordered(delay)"},
	}, got)
	require.NotContains(t, s.run("index", "list", "TABLE"), "bloom", "listing declares nothing")
	require.Contains(t, s.run("overlay", "legacy", "TABLE", "--from", filepath.Join(dir, "manifest.json")), "hnsw_f32")

	s.run("reindex", "TABLE", "--from", dir)
	s.same(answer, "built from the data, whatever the sidecars claim")
	require.Equal(t, exitOK, s.try("status", "TABLE", "--fail-on", "coverage<100,rejected>0").code)
	list := s.run("index", "list", "TABLE")
	require.Contains(t, list, "bloom(flight_id)")
	require.Contains(t, list, "ordered(delay)")
	s.run("reindex", "TABLE", "--from", dir)
	require.Equal(t, list, s.run("index", "list", "TABLE"), "again")
	left, err := os.ReadFile(filepath.Join(dir, "a.idx"))
	require.NoError(t, err)
	require.Equal(t, payload, left)

	require.Equal(t, exitUsage, s.try("overlay", "legacy", "TABLE").code)
	require.Equal(t, exitUsage, s.try("reindex", "TABLE", "bloom(flight_id)", "--from", dir).code)
	require.Equal(t, exitNotFound, s.try("overlay", "legacy", "TABLE", "--from", filepath.Join(dir, "nothing")).code)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "broken.json"), []byte("{"), 0o600))
	require.Equal(t, exitRefused, s.try("overlay", "legacy", "TABLE", "--from", dir).code)
}

func TestUpgradeThroughTheCommand(t *testing.T) {
	s := newShell(t)
	answer := s.run("query", "TABLE", "-w", lifeFilter, "-o", "json")
	s.run("mount", "TABLE", "--overlay", "over")
	s.run("index", "add", "TABLE", "bloom(flight_id)", "--overlay", "over")
	versions, err := filepath.Glob(filepath.Join("over", "versions", "*"))
	require.NoError(t, err)
	raw, err := os.ReadFile(versions[0])
	require.NoError(t, err)
	old := append([]byte(nil), raw[:len(raw)-6]...) // format 1 ended before the counts of lists and erased files, here zero
	old[4] = 1
	old = binary.LittleEndian.AppendUint32(old, bytescan.CRC32C(old))
	require.NoError(t, os.Chmod(versions[0], 0o600))
	require.NoError(t, os.WriteFile(versions[0], old, 0o600))
	list := s.run("index", "list", "TABLE", "--overlay", "over")
	var r skomer.UpgradeReport
	require.NoError(t, json.Unmarshal([]byte(s.run("overlay", "upgrade", "TABLE", "--overlay", "over", "-o", "json")), &r))
	require.Equal(t, skomer.UpgradeReport{From: 1, To: 2, Version: 3, Changed: true}, r)
	require.Equal(t, list, s.run("index", "list", "TABLE", "--overlay", "over"))
	s.run("sync", "TABLE", "--overlay", "over")
	s.same(answer, "upgraded", "--overlay", "over")
	require.NoError(t, json.Unmarshal([]byte(s.run("overlay", "upgrade", "TABLE", "--overlay", "over", "-o", "json")), &r))
	require.False(t, r.Changed, "again")
	require.Equal(t, r.From, r.To)
	require.Contains(t, s.run("overlay", "upgrade", "TABLE", "--overlay", "over"), "format now")
	require.Equal(t, exitNotFound, s.try("overlay", "upgrade", "TABLE", "--overlay", "nowhere").code)
}
