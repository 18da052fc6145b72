package skomer_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/lakewrite"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
)

// constantTags is a store whose entity tags never change, as those of a gateway that makes them up: an overwritten file looks as if it
// were the old one.
type constantTags struct{ store.Store }

func (s constantTags) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	asked := make([]store.Read, len(reads))
	for i, r := range reads {
		r.Tag = ""
		asked[i] = r
	}
	out := s.Store.Fetch(ctx, asked)
	for i := range out {
		out[i].Tag = "constant"
	}
	return out
}

func (s constantTags) Stat(ctx context.Context, keys []string) []store.Info {
	out := s.Store.Stat(ctx, keys)
	for i := range out {
		out[i].Tag = "constant"
	}
	return out
}

// logBuffer is a log that is read while shadow checks may write to it.
type logBuffer struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}

// watched is a table of two files with a Bloom filter, whose client counts, logs and checks every query.
type watched struct {
	*skomer.Table
	metrics *prometheus.Registry
	log     *logBuffer
	path    string // of a data file that holds v = 20
}

func watch(t *testing.T, wrap func(store.Store) store.Store) *watched {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
	require.NoError(t, err)
	out := &watched{metrics: prometheus.NewRegistry(), log: &logBuffer{}, path: filepath.Join(dir, "table", "data", "a.parquet")}
	_, err = w.Append(ctx, plain(t, out.path, longs(10, 20, 30, 40)), plain(t, filepath.Join(dir, "table", "data", "b.parquet"), longs(1, 2, 3, 4)))
	require.NoError(t, err)
	resolve := func(location string) (store.Store, string, error) { return wrap(local.New()), location, nil }
	c, err := skomer.New(skomer.Config{
		OverlayRoot: filepath.Join(dir, "overlays"), MaxStaleness: 1, MinPlannedFiles: -1, MinPlannedScanBytes: -1,
		Metrics: out.metrics, Log: slog.New(slog.NewTextHandler(out.log, nil)), ShadowShare: 1,
	}.WithStores(resolve, nil))
	require.NoError(t, err)
	out.Table, err = c.Open(ctx, w.Location(), skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(out.Close)
	require.NoError(t, out.Mount(ctx))
	_, err = out.AddIndex(ctx, "bloom(v)")
	require.NoError(t, err)
	_, err = out.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	return out
}

// overwrite puts other rows of the same size and count in the place of the first file.
func (w *watched) overwrite(t *testing.T) {
	t.Helper()
	before, err := os.Stat(w.path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(w.path))
	require.Equal(t, before.Size(), plain(t, w.path, longs(50, 60, 21, 80)).Size)
}

// value is the sum of a metric over its labels that match.
func (w *watched) value(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	all, err := w.metrics.Gather()
	require.NoError(t, err)
	sum, found := 0.0, false
	for _, family := range all {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			have := map[string]string{}
			for _, l := range m.GetLabel() {
				have[l.GetName()] = l.GetValue()
			}
			match := true
			for i := 0; i+1 < len(labels); i += 2 {
				match = match && have[labels[i]] == labels[i+1]
			}
			if match {
				found = true
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	if len(labels) == 0 && !found {
		t.Logf("%s was not counted", name)
	}
	return sum
}

func unchanged(s store.Store) store.Store { return s }

func TestQueriesAreCounted(t *testing.T) {
	w := watch(t, unchanged)
	n, stats := count(t, w.Table, skomer.Query{Where: "v = 20"})
	require.Equal(t, 1, n)
	w.Close()
	require.Equal(t, 1.0, w.value(t, "skomer_queries_total", "outcome", "ok"))
	require.Equal(t, 1.0, w.value(t, "skomer_query_seconds"))
	require.Positive(t, w.value(t, "skomer_index_segments_accelerated"))
	require.Zero(t, w.value(t, "skomer_index_segments_fallback"))
	require.GreaterOrEqual(t, w.value(t, "skomer_io_bytes_read_total"), float64(stats.Bytes))
	require.Positive(t, w.value(t, "skomer_cache_misses_total", "cache", "readers"))
	require.Equal(t, 1.0, w.value(t, "skomer_shadow_checks_total", "outcome", "equal"))
	require.Zero(t, w.value(t, "skomer_shadow_differences_total"))

	count(t, w.Table, skomer.Query{Where: "v = 20", NoIndex: true})
	require.Equal(t, 2.0, w.value(t, "skomer_index_segments_fallback"), "the manifest has no bounds, and no index was asked")
}

func TestRejectionsAreLoggedAndCounted(t *testing.T) {
	w := watch(t, unchanged)
	w.overwrite(t)
	n, _ := count(t, w.Table, skomer.Query{Where: "v = 60", Strict: true})
	require.Equal(t, 1, n)
	w.Close()
	require.Positive(t, w.value(t, "skomer_index_rejections_total", "reason", "tag_mismatch"))
	require.Contains(t, w.log.String(), "rejected")
	require.Contains(t, w.log.String(), "reason=tag_mismatch")
}

// A file that was overwritten in place is answered from its old index until it is read or swept. A shadow check finds it, and blames no
// kind for it.
func TestShadowCheckFindsAnOverwrittenFile(t *testing.T) {
	w := watch(t, unchanged)
	w.overwrite(t)
	n, stats := count(t, w.Table, skomer.Query{Where: "v = 21"})
	require.Zero(t, n)
	require.Equal(t, []string{"bloom(v)"}, stats.IndexesUsed)
	w.Close()
	require.Equal(t, 1.0, w.value(t, "skomer_shadow_differences_total", "kind", "overwritten_file"), w.log.String())
	require.Contains(t, w.log.String(), "sweep")
	require.Zero(t, w.value(t, "skomer_shadow_differences_total", "kind", "bloom"))
}

// Where nothing explains the difference, the kind is taken for broken and quarantined: the next query is answered without it.
func TestShadowCheckQuarantinesAKind(t *testing.T) {
	w := watch(t, func(s store.Store) store.Store { return constantTags{s} })
	w.overwrite(t)
	n, _ := count(t, w.Table, skomer.Query{Where: "v = 21"})
	require.Zero(t, n, "the index was built from other bytes under the same tag")
	w.Close()
	require.Equal(t, 1.0, w.value(t, "skomer_shadow_differences_total", "kind", "bloom"), w.log.String())

	n, stats := count(t, w.Table, skomer.Query{Where: "v = 21"})
	require.Equal(t, 1, n, w.log.String())
	require.Empty(t, stats.IndexesUsed)

	ctx := context.Background()
	status, err := w.Status(ctx)
	require.NoError(t, err)
	require.Contains(t, status.Indexes[0].Paused, "skomer reindex")
	_, err = w.Sync(ctx, skomer.SyncOptions{Sweep: true})
	require.NoError(t, err)
	_, err = w.Reindex(ctx, "", true, skomer.SyncOptions{})
	require.NoError(t, err)
	_, stats = count(t, w.Table, skomer.Query{Where: "v = 21"})
	require.Empty(t, stats.IndexesUsed, "only who names it lets it speak again")
	r, err := w.Reindex(ctx, "bloom(v)", false, skomer.SyncOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{status.Indexes[0].ID}, r.Released)
	require.Positive(t, r.Artifacts)
	n, stats = count(t, w.Table, skomer.Query{Where: "v = 21"})
	require.Equal(t, 1, n)
	require.Equal(t, []string{"bloom(v)"}, stats.IndexesUsed)
	w.Close()
	require.Equal(t, 1.0, w.value(t, "skomer_shadow_differences_total"), "the new one is right")
	status, err = w.Status(ctx)
	require.NoError(t, err)
	require.Empty(t, status.Indexes[0].Paused)
	require.Equal(t, status.Indexes[0].Total, status.Indexes[0].Covered)
}

// limited is a store that may be full.
type limited struct {
	store.Store
	full atomic.Bool
}

func (s *limited) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	if s.full.Load() {
		return "", fault.New(fault.Exhausted, key, "the store is full")
	}
	return s.Store.PutNew(ctx, key, r)
}

// TestMaintenanceIsCounted: every operation that looks after an overlay reports what it asked of storage, and a sync how it ended and where
// the indexes stand after it.
func TestMaintenanceIsCounted(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	made, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema, Start: time.Now().Add(-time.Hour)})
	require.NoError(t, err)
	s := &smallTable{Table: made, dir: dir}
	s.add(t, 1, 2, 3)
	w := &watched{metrics: prometheus.NewRegistry()}
	overlays := &limited{Store: local.New()}
	c, err := skomer.New(skomer.Config{OverlayRoot: s.overlays(), MaxStaleness: 1, Metrics: w.metrics}.
		WithStores(nil, func(location string) (store.Store, string, error) { return overlays, location, nil }))
	require.NoError(t, err)
	w.Table, err = c.Open(ctx, s.Location(), skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(w.Close)
	require.NoError(t, w.Mount(ctx))
	for _, expr := range []string{"bloom(v)", "ordered(v)"} {
		_, err = w.AddIndex(ctx, expr)
		require.NoError(t, err)
	}
	asked := func(what string, f func() error) {
		t.Helper()
		requests, read := w.value(t, "skomer_io_requests_total"), w.value(t, "skomer_io_bytes_read_total")
		require.NoError(t, f(), what)
		require.Greater(t, w.value(t, "skomer_io_requests_total"), requests, what)
		require.Greater(t, w.value(t, "skomer_io_bytes_read_total"), read, what)
	}
	sync := func() error { _, err := w.Sync(ctx, skomer.SyncOptions{}); return err }
	table := []string{"table", s.Location()}
	began := float64(time.Now().UnixMilli()) / 1000
	asked("sync", sync)
	require.Equal(t, 1.0, w.value(t, "skomer_syncs_total", "outcome", "ok"))
	require.GreaterOrEqual(t, w.value(t, "skomer_sync_last_success_timestamp_seconds", table...), began)
	require.Zero(t, w.value(t, "skomer_sync_lag_seconds", table...))
	require.Equal(t, 1.0, w.value(t, "skomer_index_coverage_ratio", append(table, "index", "ordered(v)")...))
	require.Equal(t, 2.0, w.value(t, "skomer_index_coverage_ratio", table...), "of both indexes")
	require.Positive(t, w.value(t, "skomer_io_bytes_written_total"))

	s.add(t, 4, 5, 6)
	overlays.full.Store(true)
	require.Error(t, sync())
	overlays.full.Store(false)
	require.Equal(t, 1.0, w.value(t, "skomer_syncs_total", "outcome", "ok"))
	require.Equal(t, 1.0, w.value(t, "skomer_syncs_total", "outcome", "exhausted"))
	require.InDelta(t, 3600, w.value(t, "skomer_sync_lag_seconds", table...), 600)
	require.Equal(t, 0.5, w.value(t, "skomer_index_coverage_ratio", append(table, "index", "bloom(v)")...))

	followed, stop := context.WithCancel(ctx)
	require.NoError(t, w.Follow(followed, skomer.FollowOptions{Every: time.Millisecond, Synced: func(_ *skomer.SyncReport, err error) {
		require.NoError(t, err)
		stop()
	}}))
	require.Equal(t, 2.0, w.value(t, "skomer_syncs_total", "outcome", "ok"))
	require.Zero(t, w.value(t, "skomer_sync_lag_seconds", table...))
	require.Equal(t, 2.0, w.value(t, "skomer_index_coverage_ratio", table...))

	asked("repair", func() error { _, err := w.Repair(ctx, false); return err })
	asked("scrub", func() error { _, err := w.Scrub(ctx, skomer.ScrubOptions{}); return err })
	asked("reindex", func() error { _, err := w.Reindex(ctx, "", true, skomer.SyncOptions{}); return err })
	asked("consolidate", func() error { _, err := w.Consolidate(ctx, false); return err })
	require.Zero(t, w.value(t, "skomer_vacuum_artifacts_purged"))
	asked("vacuum", func() error { _, err := w.Vacuum(ctx, skomer.VacuumOptions{Retain: 1, Grace: -1}); return err })
	require.Positive(t, w.value(t, "skomer_vacuum_artifacts_purged"))
}
