// Package telemetry answers: what does an operator's monitoring see of queries, syncs and caches?
//
// It holds the Prometheus metrics under their published names, which never change, and knows neither tables nor stores: it is told
// figures. The alert rules for them are examples/prometheus-rules.yaml.
package telemetry

import (
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skomerdb/skomer/internal/fault"
)

// Metrics are the counters and gauges of one client. A nil *Metrics counts nothing.
type Metrics struct {
	bytesRead, bytesWritten prometheus.Counter
	requests                prometheus.Counter
	queries                 *prometheus.CounterVec // outcome
	querySeconds            prometheus.Histogram
	accelerated, fallback   prometheus.Gauge
	consulted               prometheus.Counter
	rejected                *prometheus.CounterVec // reason
	purged                  prometheus.Counter
	syncs                   *prometheus.CounterVec // outcome
	lag, synced             *prometheus.GaugeVec   // table
	coverage                *prometheus.GaugeVec   // table, index
	shadow                  *prometheus.CounterVec // outcome
	differences             *prometheus.CounterVec // kind

	mu    sync.Mutex
	shown map[string]map[string]float64 // coverage that is told, by table
}

// Cache is a cache that counts.
type Cache struct {
	Name  string
	Count func() (hits, misses int64) // since the cache was made
}

// New makes metrics and registers them with r, together with the hits and misses of caches. Names that r holds already, as when two
// clients share a registry, are an Invalid fault.
func New(r prometheus.Registerer, caches []Cache) (*Metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	by := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		bytesRead:    counter("skomer_io_bytes_read_total", "Bytes read from storage: data files, metadata and indexes."),
		bytesWritten: counter("skomer_io_bytes_written_total", "Bytes written to the overlay."),
		requests:     counter("skomer_io_requests_total", "Requests sent to storage, retries included."),
		queries:      by("skomer_queries_total", "Queries by outcome.", "outcome"),
		querySeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "skomer_query_seconds", Help: "Time from planning to the last row.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}),
		accelerated: gauge("skomer_index_segments_accelerated", "Data files that the last query resolved by index evidence."),
		fallback:    gauge("skomer_index_segments_fallback", "Data files that the last query had to scan without index evidence."),
		consulted:   counter("skomer_index_checks_total", "Data files of queries that an index could have spoken for."),
		rejected:    by("skomer_index_rejections_total", "Artifacts that were not believed, by reason.", "reason"),
		purged:      counter("skomer_vacuum_artifacts_purged", "Objects that vacuum deleted."),
		syncs:       by("skomer_syncs_total", "Syncs by outcome.", "outcome"),
		lag:         gauges("skomer_sync_lag_seconds", "Time since the first snapshot of the table that was not synced.", "table"),
		synced:      gauges("skomer_sync_last_success_timestamp_seconds", "When the last sync of the table ended well.", "table"),
		coverage:    gauges("skomer_index_coverage_ratio", "Rows of the current snapshot that the index covers, of all.", "table", "index"),
		shadow:      by("skomer_shadow_checks_total", "Sampled queries that were run again as scans, by outcome.", "outcome"),
		differences: by("skomer_shadow_differences_total", "Index kinds whose answer differed from the scan's.", "kind"),
		shown:       map[string]map[string]float64{},
	}
	all := []prometheus.Collector{
		m.bytesRead, m.bytesWritten, m.requests, m.queries, m.querySeconds, m.accelerated, m.fallback, m.consulted, m.rejected, m.purged,
		m.syncs, m.lag, m.synced, m.coverage, m.shadow, m.differences,
	}
	for _, c := range caches {
		all = append(all,
			counted(c.Name, "skomer_cache_hits_total", "Reads that a cache answered.", func() int64 { hits, _ := c.Count(); return hits }),
			counted(c.Name, "skomer_cache_misses_total", "Reads that a cache could not answer.", func() int64 { _, misses := c.Count(); return misses }),
		)
	}
	for _, c := range all {
		if err := r.Register(c); err != nil {
			return nil, registration(err)
		}
	}
	return m, nil
}

func counted(cache, name, help string, count func() int64) prometheus.Collector {
	return prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"cache": cache}},
		func() float64 { return float64(count()) })
}

func registration(err error) error {
	f := fault.Wrap(fault.Invalid, "metrics", err)
	if errors.As(err, new(prometheus.AlreadyRegisteredError)) {
		return fault.New(fault.Invalid, "metrics", "the registry holds them already, for another client").WithFix("give each client a registry of its own").WithCause(err)
	}
	return f
}

// IO is what storage was asked for.
type IO struct{ Requests, BytesRead, BytesWritten int64 }

// IO adds to the counters of storage.
func (m *Metrics) IO(u IO) {
	if m == nil {
		return
	}
	m.requests.Add(float64(u.Requests))
	m.bytesRead.Add(float64(u.BytesRead))
	m.bytesWritten.Add(float64(u.BytesWritten))
}

// Query is one finished query.
type Query struct {
	Err                   error
	Took                  time.Duration
	Accelerated, Fallback int            // data files left after manifest facts: by index evidence, without
	Rejected              map[string]int // artifacts by reason
}

// Query counts a query.
func (m *Metrics) Query(q Query) {
	if m == nil {
		return
	}
	m.queries.WithLabelValues(outcome(q.Err)).Inc()
	m.querySeconds.Observe(q.Took.Seconds())
	m.accelerated.Set(float64(q.Accelerated))
	m.fallback.Set(float64(q.Fallback))
	m.consulted.Add(float64(q.Accelerated + q.Fallback))
	for reason, n := range q.Rejected {
		m.rejected.WithLabelValues(reason).Add(float64(n))
	}
}

// Synced counts a sync, which ended at a time.
func (m *Metrics) Synced(table string, err error, at time.Time) {
	if m == nil {
		return
	}
	m.syncs.WithLabelValues(outcome(err)).Inc()
	if err == nil {
		m.synced.WithLabelValues(table).Set(float64(at.UnixMilli()) / 1000)
	}
}

// Standing sets how far a table's indexes are behind and what they cover, from 0 to 1 by declaration. Indexes that are gone are
// forgotten; whoever reads the metrics meanwhile sees those that stay.
func (m *Metrics) Standing(table string, lag time.Duration, coverage map[string]float64) {
	if m == nil {
		return
	}
	m.lag.WithLabelValues(table).Set(lag.Seconds())
	m.mu.Lock()
	defer m.mu.Unlock()
	for index, share := range coverage {
		m.coverage.WithLabelValues(table, index).Set(share)
	}
	for index := range m.shown[table] {
		if _, stays := coverage[index]; !stays {
			m.coverage.DeleteLabelValues(table, index)
		}
	}
	m.shown[table] = maps.Clone(coverage)
}

// Purged counts objects that vacuum deleted.
func (m *Metrics) Purged(objects int) {
	if m != nil {
		m.purged.Add(float64(objects))
	}
}

// Shadow counts a shadow check: err is why it could not be made, kinds are those whose answer differed from the scan's.
func (m *Metrics) Shadow(err error, kinds []string) {
	if m == nil {
		return
	}
	switch {
	case err != nil:
		m.shadow.WithLabelValues("failed").Inc()
	case len(kinds) > 0:
		m.shadow.WithLabelValues("different").Inc()
	default:
		m.shadow.WithLabelValues("equal").Inc()
	}
	for _, k := range kinds {
		m.differences.WithLabelValues(k).Inc()
	}
}

// outcome is "ok" or the class of trouble.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return fault.ClassOf(err).String()
}
