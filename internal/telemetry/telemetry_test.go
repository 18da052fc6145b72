package telemetry

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
)

func TestMetricsUnderTheirPublishedNames(t *testing.T) {
	r := prometheus.NewRegistry()
	m, err := New(r, []Cache{{"footers", func() (int64, int64) { return 7, 3 }}, {"index", func() (int64, int64) { return 1, 2 }}})
	require.NoError(t, err)
	m.IO(IO{Requests: 4, BytesRead: 1000, BytesWritten: 5})
	m.Query(Query{Took: 20 * time.Millisecond, Accelerated: 9, Fallback: 1, Rejected: map[string]int{"tag_mismatch": 2}})
	m.Query(Query{Err: fault.New(fault.Corrupt, "x", "is broken"), Accelerated: 3, Fallback: 4})
	m.Synced("t", nil, time.UnixMilli(5500))
	m.Synced("t", fault.New(fault.Denied, "x", "no"), time.UnixMilli(9000))
	m.Standing("t", time.Minute, map[string]float64{"bloom(a)": 0.5, "bloom(b)": 1})
	m.Standing("t", 0, map[string]float64{"bloom(a)": 0.75})
	m.Purged(3)
	m.Shadow(nil, nil)
	m.Shadow(nil, []string{"bloom"})
	m.Shadow(fault.New(fault.Exhausted, "x", "too much"), nil)
	require.NoError(t, testutil.GatherAndCompare(r, strings.NewReader(`
# HELP skomer_cache_hits_total Reads that a cache answered.
# TYPE skomer_cache_hits_total counter
skomer_cache_hits_total{cache="footers"} 7
skomer_cache_hits_total{cache="index"} 1
# HELP skomer_cache_misses_total Reads that a cache could not answer.
# TYPE skomer_cache_misses_total counter
skomer_cache_misses_total{cache="footers"} 3
skomer_cache_misses_total{cache="index"} 2
# HELP skomer_index_checks_total Data files of queries that an index could have spoken for.
# TYPE skomer_index_checks_total counter
skomer_index_checks_total 17
# HELP skomer_index_coverage_ratio Rows of the current snapshot that the index covers, of all.
# TYPE skomer_index_coverage_ratio gauge
skomer_index_coverage_ratio{index="bloom(a)",table="t"} 0.75
# HELP skomer_index_rejections_total Artifacts that were not believed, by reason.
# TYPE skomer_index_rejections_total counter
skomer_index_rejections_total{reason="tag_mismatch"} 2
# HELP skomer_index_segments_accelerated Data files that the last query resolved by index evidence.
# TYPE skomer_index_segments_accelerated gauge
skomer_index_segments_accelerated 3
# HELP skomer_index_segments_fallback Data files that the last query had to scan without index evidence.
# TYPE skomer_index_segments_fallback gauge
skomer_index_segments_fallback 4
# HELP skomer_io_bytes_read_total Bytes read from storage: data files, metadata and indexes.
# TYPE skomer_io_bytes_read_total counter
skomer_io_bytes_read_total 1000
# HELP skomer_io_bytes_written_total Bytes written to the overlay.
# TYPE skomer_io_bytes_written_total counter
skomer_io_bytes_written_total 5
# HELP skomer_io_requests_total Requests sent to storage, retries included.
# TYPE skomer_io_requests_total counter
skomer_io_requests_total 4
# HELP skomer_queries_total Queries by outcome.
# TYPE skomer_queries_total counter
skomer_queries_total{outcome="corrupt"} 1
skomer_queries_total{outcome="ok"} 1
# HELP skomer_shadow_checks_total Sampled queries that were run again as scans, by outcome.
# TYPE skomer_shadow_checks_total counter
skomer_shadow_checks_total{outcome="different"} 1
skomer_shadow_checks_total{outcome="equal"} 1
skomer_shadow_checks_total{outcome="failed"} 1
# HELP skomer_shadow_differences_total Index kinds whose answer differed from the scan's.
# TYPE skomer_shadow_differences_total counter
skomer_shadow_differences_total{kind="bloom"} 1
# HELP skomer_sync_lag_seconds Time since the first snapshot of the table that was not synced.
# TYPE skomer_sync_lag_seconds gauge
skomer_sync_lag_seconds{table="t"} 0
# HELP skomer_sync_last_success_timestamp_seconds When the last sync of the table ended well.
# TYPE skomer_sync_last_success_timestamp_seconds gauge
skomer_sync_last_success_timestamp_seconds{table="t"} 5.5
# HELP skomer_syncs_total Syncs by outcome.
# TYPE skomer_syncs_total counter
skomer_syncs_total{outcome="denied"} 1
skomer_syncs_total{outcome="ok"} 1
# HELP skomer_vacuum_artifacts_purged Objects that vacuum deleted.
# TYPE skomer_vacuum_artifacts_purged counter
skomer_vacuum_artifacts_purged 3
`), "skomer_cache_hits_total", "skomer_cache_misses_total", "skomer_index_checks_total", "skomer_index_coverage_ratio",
		"skomer_index_rejections_total", "skomer_index_segments_accelerated", "skomer_index_segments_fallback", "skomer_io_bytes_read_total",
		"skomer_io_bytes_written_total", "skomer_io_requests_total", "skomer_queries_total", "skomer_shadow_checks_total",
		"skomer_shadow_differences_total", "skomer_sync_lag_seconds", "skomer_sync_last_success_timestamp_seconds", "skomer_syncs_total",
		"skomer_vacuum_artifacts_purged"))

	_, err = New(r, nil)
	require.True(t, fault.Is(err, fault.Invalid), "%v", err)
	require.ErrorContains(t, err, "registry")
}

func TestNoMetrics(t *testing.T) {
	var m *Metrics
	m.IO(IO{})
	m.Query(Query{})
	m.Synced("t", nil, time.Now())
	m.Standing("t", 0, nil)
	m.Purged(1)
	m.Shadow(nil, []string{"bloom"})
}

// TestCoverageIsNeverMissing: who reads the metrics while they are set again sees every index that stays.
func TestCoverageIsNeverMissing(t *testing.T) {
	r := prometheus.NewRegistry()
	m, err := New(r, nil)
	require.NoError(t, err)
	m.Standing("t", 0, map[string]float64{"bloom(a)": 1})
	var setting sync.WaitGroup
	stop := make(chan struct{})
	setting.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				m.Standing("t", 0, map[string]float64{"bloom(a)": 1, fmt.Sprintf("bloom(b%d)", i%3): 0.5})
			}
		}
	})
	for range 300 {
		n, err := testutil.GatherAndCount(r, "skomer_index_coverage_ratio")
		if err != nil || n == 0 {
			t.Errorf("%d indexes, %v", n, err)
			break
		}
	}
	close(stop)
	setting.Wait()
	m.Standing("t", 0, nil)
	n, err := testutil.GatherAndCount(r, "skomer_index_coverage_ratio")
	require.NoError(t, err)
	require.Zero(t, n)
}
