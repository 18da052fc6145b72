package skomer_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store/local"
)

// TestOverlayOfAnotherTable: nothing that changes an overlay is done to that of another table, to which --overlay leads after a typing
// error: a sync would withdraw all of its artifacts, since none is about a file of the table at hand.
func TestOverlayOfAnotherTable(t *testing.T) {
	ctx := context.Background()
	s, other := newSmall(t), newSmall(t)
	s.add(t, 1, 2, 3)
	other.add(t, 4, 5, 6)
	owner := s.mount(t, "bloom(v)", "ordered(v)")
	synced(t, owner, skomer.SyncOptions{})
	before, err := owner.Status(ctx)
	require.NoError(t, err)
	c, err := skomer.New(skomer.Config{OverlayRoot: other.overlays()})
	require.NoError(t, err)
	table, err := c.Open(ctx, other.Location(), skomer.TableOptions{Overlay: owner.Overlay()})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	for what, do := range map[string]func() error{
		"mount":       func() error { return table.Mount(ctx) },
		"unmount":     func() error { return table.Unmount(ctx) },
		"add":         func() error { _, err := table.AddIndex(ctx, "zonemap(v)"); return err },
		"drop":        func() error { _, err := table.DropIndex(ctx, "bloom(v)"); return err },
		"pause":       func() error { _, err := table.PauseIndex(ctx, "bloom(v)", ""); return err },
		"sync":        func() error { _, err := table.Sync(ctx, skomer.SyncOptions{}); return err },
		"sweep":       func() error { _, err := table.Sync(ctx, skomer.SyncOptions{Sweep: true}); return err },
		"repair":      func() error { _, err := table.Repair(ctx, false); return err },
		"scrub":       func() error { _, err := table.Scrub(ctx, skomer.ScrubOptions{}); return err },
		"reindex":     func() error { _, err := table.Reindex(ctx, "", true, skomer.SyncOptions{}); return err },
		"consolidate": func() error { _, err := table.Consolidate(ctx, false); return err },
		"vacuum":      func() error { _, err := table.Vacuum(ctx, skomer.VacuumOptions{}); return err },
		"erase":       func() error { _, err := table.Erase(ctx, skomer.EraseOptions{GoneOnly: true}); return err },
		"purge":       func() error { _, err := table.Purge(ctx); return err },
		"rollback":    func() error { _, err := table.Rollback(ctx, 2); return err },
		"upgrade":     func() error { _, err := table.UpgradeOverlay(ctx); return err },
	} {
		err := do()
		require.True(t, fault.Is(err, fault.Refused), "%s: %v", what, err)
	}
	st, err := table.Status(ctx)
	require.NoError(t, err)
	require.Len(t, st.Warnings, 1)
	require.Contains(t, st.Warnings[0], "is the overlay of another table")
	require.Contains(t, st.Unusable, "is the overlay of another table")
	n, _ := count(t, table, skomer.Query{Where: "v = 5"})
	require.Equal(t, 1, n)
	require.False(t, c.Doctor(ctx, other.Location(), skomer.TableOptions{Overlay: owner.Overlay()}).Healthy())
	after, err := owner.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, before.OverlayVersion, after.OverlayVersion)
	requireCovered(t, owner)
}

// TestFollowEndsWhereTheTableIsAnother: a table that was dropped and made again is another one. The overlay that a process follows it with is
// that of the first, and stays as it is.
func TestFollowEndsWhereTheTableIsAnother(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // only a hang takes so long
	defer cancel()
	s := newSmall(t)
	s.add(t, 1, 2, 3)
	table := s.mount(t, "bloom(v)")
	syncs := 0
	err := table.Follow(ctx, skomer.FollowOptions{Every: time.Millisecond, Synced: func(*skomer.SyncReport, error) {
		if syncs++; syncs > 1 {
			return
		}
		require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "table")))
		w, err := lakewrite.Create(ctx, local.New(), filepath.Join(s.dir, "table"), lakewrite.Spec{Schema: idSchema})
		require.NoError(t, err)
		s.Table = w
		s.add(t, 7, 8, 9)
	}})
	require.True(t, fault.Is(err, fault.Refused), "%v", err)
	require.ErrorContains(t, err, "is the overlay of another table")
	require.Equal(t, 2, syncs)
	n, stats := count(t, s.open(t), skomer.Query{Where: "v = 8"})
	require.Equal(t, 1, n)
	require.Empty(t, stats.IndexesUsed)
}

// TestDamagedVersionsSayWhatToDo: where the newest version is damaged, status, doctor and every command that would change it name the way out.
func TestDamagedVersionsSayWhatToDo(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	s.add(t, 1, 2, 3)
	table := s.mount(t, "bloom(v)")
	synced(t, table, skomer.SyncOptions{})
	versions, err := filepath.Glob(filepath.Join(table.Overlay(), "versions", "*"))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(versions[0], 100)) // the newest sorts first
	damaged := s.open(t)
	_, err = damaged.Sync(ctx, skomer.SyncOptions{})
	require.True(t, fault.Is(err, fault.Corrupt), "%v", err)
	require.Contains(t, fault.FixOf(err), "skomer overlay recover")
	c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays()})
	require.NoError(t, err)
	health := c.Doctor(ctx, s.Location(), skomer.TableOptions{})
	require.False(t, health.Healthy())
	require.Contains(t, health.Checks[len(health.Checks)-1].Fix, "skomer overlay recover")
	st, err := damaged.Status(ctx)
	require.NoError(t, err)
	require.Len(t, st.Warnings, 1)
	_, err = damaged.Recover(ctx)
	require.NoError(t, err)
	require.True(t, c.Doctor(ctx, s.Location(), skomer.TableOptions{}).Healthy())
}
