package cli

import (
	"io"
	"net/http"
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
		client := http.Client{Timeout: 10 * time.Second}
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

func TestLogFlags(t *testing.T) {
	s := newShell(t)
	require.Contains(t, s.try("query", "TABLE", "--log-level", "loud").err, "--log-level")
	require.Contains(t, s.try("query", "TABLE", "--log-format", "xml").err, "--log-format")
	require.Equal(t, exitOK, s.try("query", "TABLE", "--log-level", "debug", "--log-format", "json", "--limit", "1").code)
}
