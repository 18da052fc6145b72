package telemetry

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// rules is Prometheus's format of rule files, as far as alerts go.
type rules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         time.Duration     `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

// TestAlertRules: every rule parses, and asks only for metrics and labels that exist.
func TestAlertRules(t *testing.T) {
	file, err := os.Open("../../examples/prometheus-rules.yaml")
	require.NoError(t, err)
	defer file.Close()
	var all rules
	dec := yaml.NewDecoder(file)
	dec.KnownFields(true)
	require.NoError(t, dec.Decode(&all))

	known := published(t)
	seen := map[string]bool{}
	for _, group := range all.Groups {
		require.NotEmpty(t, group.Name)
		for _, r := range group.Rules {
			require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			require.NotEmpty(t, r.Annotations["description"], r.Alert)
			require.Contains(t, []string{"warning", "critical"}, r.Labels["severity"], r.Alert)
			require.False(t, seen[r.Alert], "two rules are called %s", r.Alert)
			seen[r.Alert] = true
			expr, err := metricsql.Parse(r.Expr)
			require.NoError(t, err, r.Alert)
			asked := 0
			metricsql.VisitAll(expr, func(e metricsql.Expr) {
				m, ok := e.(*metricsql.MetricExpr)
				if !ok {
					return
				}
				for _, filters := range m.LabelFilterss {
					name := ""
					for _, f := range filters {
						if f.Label == "__name__" {
							name = f.Value
							asked++
							require.Contains(t, known, name, r.Alert)
							continue
						}
						require.Contains(t, known[name], f.Label, "%s: a label of %s", r.Alert, name)
					}
				}
			})
			require.Positive(t, asked, "%s asks no metric", r.Alert)
		}
	}
	for _, alert := range []string{"SkomerIndexesRejected", "SkomerSyncLags", "SkomerCoverageLow", "SkomerShadowDifference"} {
		require.True(t, seen[alert], alert)
	}
}

// published is the labels of every metric, each of which is touched once.
func published(t *testing.T) map[string][]string {
	t.Helper()
	r := prometheus.NewRegistry()
	m, err := New(r, []Cache{{"index", func() (int64, int64) { return 0, 0 }}})
	require.NoError(t, err)
	m.Query(Query{Rejected: map[string]int{"x": 1}})
	m.Synced("t", nil, time.Now())
	m.Standing("t", 0, map[string]float64{"i": 1})
	m.Shadow(nil, []string{"k"})
	families, err := r.Gather()
	require.NoError(t, err)
	out := map[string][]string{}
	for _, f := range families {
		out[f.GetName()] = []string{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if !slices.Contains(out[f.GetName()], l.GetName()) {
					out[f.GetName()] = append(out[f.GetName()], l.GetName())
				}
			}
		}
	}
	return out
}

// TestMetricsAreDocumented: docs/operations.md lists each of them.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	for name := range published(t) {
		require.Contains(t, string(page), "`"+name, name)
	}
}
