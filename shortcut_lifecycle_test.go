package skomer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
)

// TestShortcutsLeaveEverythingToOthers: one process syncs by the shortcut, with lists of artifacts that it never read, and then cleans up, goes
// back, repairs, drops, consolidates: what these need to see they see, so that nothing that is alive is lost, and no record outlives
// what it speaks of.
func TestShortcutsLeaveEverythingToOthers(t *testing.T) {
	ctx := context.Background()
	for name, act := range map[string]func(*testing.T, *skomer.Table){
		"vacuum": func(t *testing.T, table *skomer.Table) {
			_, err := table.Vacuum(ctx, skomer.VacuumOptions{Retain: 1, Grace: -1})
			require.NoError(t, err)
		},
		"purge": func(t *testing.T, table *skomer.Table) {
			_, _, err := table.PurgeIndex(ctx, "zonemap(v)")
			require.NoError(t, err)
			_, err = table.AddIndex(ctx, "zonemap(v)")
			require.NoError(t, err)
		},
		"rollback": func(t *testing.T, table *skomer.Table) {
			st, err := table.Status(ctx)
			require.NoError(t, err)
			_, err = table.Rollback(ctx, st.OverlayVersion-2)
			require.NoError(t, err)
		},
		"repair": func(t *testing.T, table *skomer.Table) {
			_, err := table.Repair(ctx, false)
			require.NoError(t, err)
		},
		"scrub": func(t *testing.T, table *skomer.Table) {
			r, err := table.Scrub(ctx, skomer.ScrubOptions{})
			require.NoError(t, err)
			require.Empty(t, r.Findings)
		},
		"consolidate": func(t *testing.T, table *skomer.Table) {
			_, err := table.Consolidate(ctx, false)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSmall(t)
			process := func() *skomer.Table {
				c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays(), MaxStaleness: time.Nanosecond}.WithWholeUpTo(-1))
				require.NoError(t, err)
				table, err := c.Open(ctx, s.Location(), skomer.TableOptions{})
				require.NoError(t, err)
				t.Cleanup(table.Close)
				return table
			}
			s.add(t, 1, 2, 3)
			table := process()
			require.NoError(t, table.Mount(ctx))
			for _, e := range []string{"zonemap(v)", "ordered(v)"} {
				_, err := table.AddIndex(ctx, e)
				require.NoError(t, err)
			}
			synced(t, table, skomer.SyncOptions{})
			for n := range 6 {
				s.add(t, int64(100+n), 7)
				table = process()
				require.Empty(t, synced(t, table, skomer.SyncOptions{}).Whole)
			}
			act(t, table) // in the process that took the shortcut
			for n := range 2 {
				s.add(t, int64(200+n), 7)
				synced(t, process(), skomer.SyncOptions{})
			}
			table = process()
			requireCovered(t, table)
			r, err := table.Scrub(ctx, skomer.ScrubOptions{})
			require.NoError(t, err)
			require.Empty(t, r.Findings)
			got, stats := count(t, process(), skomer.Query{Where: "v = 7"})
			require.Equal(t, 8, got)
			require.Empty(t, stats.Rejected)
		})
	}
}
