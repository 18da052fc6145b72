package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPauseAndResume(t *testing.T) {
	s := newShell(t)
	s.run("mount", "TABLE")
	s.run("index", "add", "TABLE", "bloom(flight_id)")
	s.run("sync", "TABLE")
	const where = "flight_id = '7CBWH4K3'"
	before := s.run("query", "TABLE", "-w", where, "-o", "json")
	used := func() bool {
		r := s.try("query", "TABLE", "-c", "-w", where, "--stats")
		return statOf(t, r.err, "files_opened") < 30
	}
	require.True(t, used())
	require.Contains(t, s.run("index", "pause", "TABLE", "bloom(flight_id)", "--reason", "to see"), "bloom(flight_id)")
	require.False(t, used())
	require.Equal(t, before, s.run("query", "TABLE", "-w", where, "-o", "json"))
	require.Contains(t, s.run("status", "TABLE"), "to see")
	require.Contains(t, s.run("index", "show", "TABLE", "bloom(flight_id)"), "to see")
	s.run("index", "resume", "TABLE", "bloom(flight_id)")
	require.True(t, used())
	require.NotContains(t, s.run("status", "TABLE"), "to see")
	require.Equal(t, exitNotFound, s.try("index", "resume", "TABLE", "bloom(origin)").code)

	s.run("index", "pause", "TABLE", "bloom(flight_id)", "--reason", "it lies")
	require.NotContains(t, s.run("reindex", "TABLE"), "speaks again")
	require.False(t, used())
	require.Contains(t, s.run("reindex", "TABLE", "bloom(flight_id)"), "speaks again")
	require.True(t, used())
	require.Equal(t, before, s.run("query", "TABLE", "-w", where, "-o", "json"))
	require.NotContains(t, s.run("status", "TABLE"), "it lies")
}
