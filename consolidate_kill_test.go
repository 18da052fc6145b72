package skomer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
)

// TestKilledConsolidation kills a real process that consolidates at each of its writes, before it and after it: answers stay what they
// are, the work is done by whoever comes next, and once the dead one's declaration is old, a vacuum leaves nothing that no version names.
func TestKilledConsolidation(t *testing.T) {
	ctx := context.Background()
	s := newOfEveryKind(t)
	for i := range int64(13) { // sixteen bundles fill a tier
		s.add(t, 1_000_000+i, i)
		s.values = append(s.values, 1_000_000+i, i)
		syncing, stop := context.WithCancel(ctx)
		_, err := s.open(t).Sync(syncing, skomer.SyncOptions{Progress: func(p skomer.SyncProgress) {
			if i == 12 && p.FilesDone == p.FilesTotal { // the phase that would merge them does not come
				stop()
			}
		}})
		stop()
		require.Equal(t, i == 12, err != nil, err)
	}
	planned, err := s.open(t).Consolidate(ctx, true)
	require.NoError(t, err)
	require.Equal(t, 1, planned.Merges)
	before := contents(t, s.overlays())
	where, err := filepath.Glob(filepath.Join(s.overlays(), "*"))
	require.NoError(t, err)
	kills := map[bool]int{}
	for _, after := range []bool{false, true} {
		for nth := int64(1); ; nth++ {
			settle(s.overlays())
			require.NoError(t, os.RemoveAll(s.overlays()))
			for path, raw := range before {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(raw), 0o600))
			}
			if !killedAt(t, s.Location(), where[0], lifeCommand{Op: "consolidate", Stop: "kill", Nth: nth, After: after}) {
				break
			}
			kills[after]++
			s.requireConsolidates(t, fmt.Sprintf("killed at write %d, after it: %v", nth, after))
		}
	}
	t.Logf("killed before %d writes and after %d", kills[false], kills[true])
	require.GreaterOrEqual(t, kills[false], 4, "declaration, bundle, list, version")
	require.GreaterOrEqual(t, kills[true], 4)
}

// killedAt tells whether a process that does what it is told was killed.
func killedAt(t *testing.T, table, overlay string, c lifeCommand) bool {
	t.Helper()
	setting, err := json.Marshal(lifeSetting{Table: table, Overlay: overlay})
	require.NoError(t, err)
	line, err := json.Marshal(c)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lifeChild+"="+string(setting))
	cmd.Stdin = strings.NewReader(string(line) + "\n")
	out, err := cmd.Output()
	if err != nil {
		require.Equal(t, -1, cmd.ProcessState.ExitCode(), err)
		return true
	}
	var r lifeResult
	require.NoError(t, json.Unmarshal(out, &r), string(out))
	require.Empty(t, r.Err)
	return false
}

// requireConsolidates finishes what a killed process left.
func (s *ofEveryKind) requireConsolidates(t *testing.T, what string) {
	t.Helper()
	ctx := context.Background()
	s.requireRight(t, what)
	table := s.open(t)
	_, err := table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err, what)
	r, err := table.Consolidate(ctx, false)
	require.NoError(t, err, what)
	require.Empty(t, r.PassedOver, what)
	require.Equal(t, 1, r.BundlesAfter, what)
	s.requireCovered(t, table, what)
	for path := range contents(t, s.overlays()) {
		if folderOf(path) == "inflight" { // of the dead process, some time later
			old := time.Now().Add(-2 * time.Hour)
			require.NoError(t, os.Chtimes(path, old, old))
		}
	}
	_, err = table.Vacuum(ctx, skomer.VacuumOptions{Retain: 1, Grace: -1})
	require.NoError(t, err, what)
	table = s.open(t)
	left := s.named(t)
	require.Empty(t, scrubbed(t, table).Findings, what)
	for path := range left {
		if folderOf(path) != "versions" {
			require.NotEmpty(t, s.record.read[path], "%s: nobody names %s", what, path)
		}
	}
	require.NotContains(t, s.sorts(t), "inflight", what)
	s.requireRight(t, what)
}
