package skomer_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
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

// watched is a table of two files with a Bloom filter, whose client counts, logs and checks every query.
type watched struct {
	*skomer.Table
	metrics *prometheus.Registry
	log     *bytes.Buffer
	path    string // of a data file that holds v = 20
}

func watch(t *testing.T, wrap func(store.Store) store.Store) *watched {
	t.Helper()
	ctx, dir := context.Background(), t.TempDir()
	w, err := lakewrite.Create(ctx, local.New(), filepath.Join(dir, "table"), lakewrite.Spec{Schema: idSchema})
	require.NoError(t, err)
	out := &watched{metrics: prometheus.NewRegistry(), log: &bytes.Buffer{}, path: filepath.Join(dir, "table", "data", "a.parquet")}
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
}
