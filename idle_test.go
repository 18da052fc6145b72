package skomer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
)

// watched is a client whose records are dated by a clock that only the test moves.
func (s *smallTable) watched(t *testing.T, now *time.Time) *skomer.Table {
	t.Helper()
	c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays(), MaxStaleness: time.Nanosecond}.WithClock(func() time.Time { return *now }))
	require.NoError(t, err)
	table, err := c.Open(context.Background(), s.Location(), skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	return table
}

// TestIdleSyncsMakeNoVersions: syncs that a timer starts again and again, each in a process of its own, commit what happened. Where nothing
// did, one in 15 minutes commits, so that the last good sync that status tells is never older while syncs succeed.
func TestIdleSyncsMakeNoVersions(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	s.add(t, 1, 2, 3)
	now := time.Now()
	table := s.watched(t, &now)
	require.NoError(t, table.Mount(ctx))
	_, err := table.AddIndex(ctx, "bloom(v)")
	require.NoError(t, err)
	first := synced(t, table, skomer.SyncOptions{}).OverlayVersion
	requireSyncedAt := func(at time.Time) {
		t.Helper()
		st, err := s.watched(t, &now).Status(ctx)
		require.NoError(t, err)
		require.Equal(t, at.UnixMilli(), st.LastSync.UnixMilli())
		require.Zero(t, st.LagSeconds)
	}
	recorded := now
	for range 14 {
		now = now.Add(time.Minute)
		require.Equal(t, first, synced(t, s.watched(t, &now), skomer.SyncOptions{}).OverlayVersion)
		require.Equal(t, first, synced(t, s.watched(t, &now), skomer.SyncOptions{Sweep: true}).OverlayVersion)
		requireSyncedAt(recorded)
	}
	now = now.Add(time.Minute)
	require.Equal(t, first+1, synced(t, s.watched(t, &now), skomer.SyncOptions{}).OverlayVersion)
	requireSyncedAt(now)
	now = now.Add(time.Minute)
	require.Equal(t, first+1, synced(t, s.watched(t, &now), skomer.SyncOptions{}).OverlayVersion)

	s.add(t, 4)
	require.Greater(t, synced(t, s.watched(t, &now), skomer.SyncOptions{}).OverlayVersion, first+1, "what happened is committed at once")
	now = now.Add(time.Minute)
	_, err = table.AddIndex(ctx, "zonemap(v)")
	require.NoError(t, err)
	synced(t, s.watched(t, &now), skomer.SyncOptions{})
	requireSyncedAt(now)
	now = now.Add(-time.Hour)
	synced(t, s.watched(t, &now), skomer.SyncOptions{})
	requireSyncedAt(now)
}

// TestIdleScrubsMakeNoVersions: a scrub commits where the next one begins, and nothing where that is known already.
func TestIdleScrubsMakeNoVersions(t *testing.T) {
	ctx := context.Background()
	s := newSmall(t)
	now := time.Now()
	table := s.watched(t, &now)
	require.NoError(t, table.Mount(ctx))
	version := func() uint64 {
		st, err := table.Status(ctx)
		require.NoError(t, err)
		return st.OverlayVersion
	}
	scrub := func(o skomer.ScrubOptions) *skomer.ScrubReport {
		r, err := s.watched(t, &now).Scrub(ctx, o)
		require.NoError(t, err)
		require.Empty(t, r.Findings)
		return r
	}
	empty := version()
	for range 3 {
		require.True(t, scrub(skomer.ScrubOptions{}).Complete)
		now = now.Add(time.Hour)
	}
	require.Equal(t, empty, version(), "there is nothing to check")

	for v := range int64(3) {
		s.add(t, v)
	}
	_, err := table.AddIndex(ctx, "bloom(v)")
	require.NoError(t, err)
	synced(t, table, skomer.SyncOptions{})
	full := version()
	for range 3 {
		require.Equal(t, 3, scrub(skomer.ScrubOptions{}).Artifacts)
	}
	require.Equal(t, full+1, version(), "the first one only")
	now = now.Add(15 * time.Minute)
	scrub(skomer.ScrubOptions{})
	require.Equal(t, full+2, version())

	checked := 0
	for checked < 3 {
		checked += scrub(skomer.ScrubOptions{MaxBytes: 1}).Artifacts
	}
	require.Greater(t, version(), full+2, "parts of a pass move on")
	sampled := version()
	scrub(skomer.ScrubOptions{Sample: 0.5})
	scrub(skomer.ScrubOptions{Sample: 0.5})
	require.Equal(t, sampled+2, version(), "each sample takes others")
}
