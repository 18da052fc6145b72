package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	oneKey   = "0123456789abcdef0123456789abcdef"
	otherKey = "fedcba9876543210fedcba9876543210"
)

func TestSignedOverlays(t *testing.T) {
	t.Setenv("SKOMER_OVERLAY_KEY", oneKey)
	s, answer, _ := indexed(t)
	uses := func(want bool, what string) {
		t.Helper()
		s.same(answer, what)
		r := s.try("query", "TABLE", "-c", "-w", "flight_id = '7CBWH4K3'", "--stats")
		require.Equal(t, exitOK, r.code, what)
		if want {
			require.Contains(t, r.err, `"indexes_used":["bloom(flight_id)"]`, what)
		} else {
			require.Contains(t, r.err, `"indexes_used":[]`, what)
		}
	}
	uses(true, "signed")
	t.Setenv("SKOMER_OVERLAY_KEY", "")
	uses(true, "without a key the signature is not asked for")
	r := s.try("index", "drop", "TABLE", "bloom(flight_id)")
	require.Equal(t, exitRefused, r.code)
	require.Contains(t, r.err, "SKOMER_OVERLAY_KEY")
	t.Setenv("SKOMER_OVERLAY_KEY", otherKey)
	uses(false, "another key")
	require.Contains(t, s.run("status", "TABLE"), "not signed with the configured overlay key")
	require.Equal(t, exitRefused, s.try("sync", "TABLE").code)
	s.run("overlay", "sign", "TABLE")
	uses(true, "signed anew")
	s.run("index", "drop", "TABLE", "ordered(delay)")
	uses(true, "and changed")
	t.Setenv("SKOMER_OVERLAY_KEY", oneKey)
	uses(false, "the first key")
	t.Setenv("SKOMER_OVERLAY_KEY", "short")
	require.Equal(t, exitUsage, s.try("query", "TABLE", "-c", "-w", "delay > 5").code)
}

func TestAnUnsignedOverlayIsIgnoredWhereAKeyIsConfigured(t *testing.T) {
	s, answer, where := indexed(t)
	t.Setenv("SKOMER_OVERLAY_KEY", oneKey)
	r := s.try("query", "TABLE", "-c", "-w", "flight_id = '7CBWH4K3'", "--stats")
	require.Contains(t, r.err, `"indexes_used":[]`)
	s.same(answer, "ignored")
	s.run("overlay", "sign", "TABLE")
	require.Equal(t, exitOK, s.try("status", "TABLE", "--fail-on", "coverage<100,rejected>0").code)
	s.same(answer, "signed")
	s.run("sync", "TABLE")
	before := bytesBelow(t, where, "")
	s.run("sync", "TABLE")
	require.InDelta(t, before, bytesBelow(t, where, ""), 4096, "what is not believed is not made again and again")
	s.run("vacuum", "TABLE", "--retain", "1", "--grace", "0s")
	s.same(answer, "and looked after")
}

// TestASyncWithoutTheKeyBuildsNothing: what it would not be allowed to commit it does not make and upload either, however often it is tried.
func TestASyncWithoutTheKeyBuildsNothing(t *testing.T) {
	t.Setenv("SKOMER_OVERLAY_KEY", oneKey)
	s, _, where := indexed(t)
	s.run("index", "add", "TABLE", "bitmap(origin)")
	t.Setenv("SKOMER_OVERLAY_KEY", "")
	before := bytesBelow(t, filepath.Join(where, "data"), "")
	for range 2 {
		r := s.try("sync", "TABLE")
		require.Equal(t, exitRefused, r.code)
		require.Contains(t, r.err, "SKOMER_OVERLAY_KEY")
	}
	require.Equal(t, before, bytesBelow(t, filepath.Join(where, "data"), ""))
}

// TestRollbackToAnUnsignedVersionSaysTheWayOut: signing is no way out, since it signs the newest version and no other.
func TestRollbackToAnUnsignedVersionSaysTheWayOut(t *testing.T) {
	s, answer, _ := indexed(t)
	var versions []struct{ Version uint64 }
	require.NoError(t, json.Unmarshal([]byte(s.run("overlay", "versions", "TABLE", "-o", "json")), &versions))
	old := fmt.Sprint(versions[0].Version)
	t.Setenv("SKOMER_OVERLAY_KEY", oneKey)
	s.run("overlay", "sign", "TABLE")
	signed := fmt.Sprint(versions[0].Version + 1)
	s.run("index", "drop", "TABLE", "bloom(flight_id)")
	r := s.try("overlay", "rollback", "TABLE", "--to", old)
	require.Equal(t, exitRefused, r.code)
	require.Contains(t, r.err, "not signed")
	require.NotContains(t, r.err, "overlay sign")
	require.Contains(t, r.err, "overlay versions")
	require.Regexp(t, `(?m)^\s*`+old+`\s+refused: .*not signed`, s.run("overlay", "versions", "TABLE"))
	s.run("overlay", "rollback", "TABLE", "--to", signed)
	require.Contains(t, s.run("index", "list", "TABLE"), "bloom(flight_id)")
	s.same(answer, "gone back to a signed one")
}
