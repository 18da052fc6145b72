package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMetricsWhileACommandRuns(t *testing.T) {
	a := &app{out: io.Discard, err: io.Discard}
	a.flags.metrics = "127.0.0.1:0"
	a.flags.quiet = true
	var address string
	registry, err := a.serveMetrics()
	require.NoError(t, err)
	require.NotNil(t, registry)
	address = a.metricsAt
	get := func() (string, error) {
		client := http.Client{Timeout: time.Minute}
		r, err := client.Get("http://" + address + "/metrics")
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		return string(body), err
	}
	body, err := get()
	require.NoError(t, err)
	require.Contains(t, body, "go_goroutines")

	second := &app{out: io.Discard, err: io.Discard}
	second.flags.metrics = address
	_, err = second.serveMetrics()
	require.ErrorContains(t, err, "--metrics-listen")

	a.closeTables()
	_, err = get()
	require.Error(t, err, "it ends with the command")
}

// TestFollowerIsMonitored: what a command that follows a table serves to Prometheus tells of its syncs.
func TestFollowerIsMonitored(t *testing.T) {
	s := newShell(t)
	s.run("mount", "TABLE")
	s.run("index", "add", "TABLE", "bloom(flight_id)")
	ctx, stop := context.WithCancel(t.Context())
	hints, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := Run(ctx, []string{"sync", s.flights, "--follow", "10ms", "--metrics-listen", "127.0.0.1:0"}, io.Discard, out)
		_ = out.Close()
		ended <- code
	}()
	lines := bufio.NewScanner(hints)
	address := ""
	for address == "" && lines.Scan() {
		_, address, _ = strings.Cut(lines.Text(), "metrics at ")
	}
	require.NotEmpty(t, address)
	go func() { _, _ = io.Copy(io.Discard, hints) }()
	client := http.Client{Timeout: time.Minute}
	body := ""
	missing := func() []string { // metrics are set one after another while they are read
		var out []string
		for _, line := range []string{
			`skomer_syncs_total{outcome="ok"} [1-9]`, `skomer_index_coverage_ratio{index="bloom\(flight_id\)",table="TABLE"} 1\n`,
			`skomer_sync_lag_seconds{table="TABLE"} 0\n`, `skomer_sync_last_success_timestamp_seconds{table="TABLE"} [1-9]`,
			`skomer_io_bytes_read_total [1-9]`,
		} {
			if !regexp.MustCompile(strings.ReplaceAll(line, "TABLE", regexp.QuoteMeta(s.flights))).MatchString(body) {
				out = append(out, line)
			}
		}
		return out
	}
	for deadline := time.Now().Add(2 * time.Minute); len(missing()) > 0; time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "%v is missing in\n%s", missing(), body)
		r, err := client.Get(address)
		require.NoError(t, err)
		raw, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		body = string(raw)
	}
	stop()
	require.Zero(t, <-ended)
}

func TestLogFlags(t *testing.T) {
	s := newShell(t)
	require.Contains(t, s.try("query", "TABLE", "--log-level", "loud").err, "--log-level")
	require.Contains(t, s.try("query", "TABLE", "--log-format", "xml").err, "--log-format")
	require.Equal(t, exitOK, s.try("query", "TABLE", "--log-level", "debug", "--log-format", "json", "--limit", "1").code)
}
