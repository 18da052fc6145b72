package cli

import (
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/skomerdb/skomer/internal/fault"
)

// logger writes what no command prints, as --log-level and --log-format ask.
func (a *app) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.flags.logLevel)); err != nil {
		return nil, fault.New(fault.Invalid, "--log-level", "%q is not a level", a.flags.logLevel).WithFix("use debug, info, warn or error")
	}
	if a.flags.quiet {
		level = max(level, slog.LevelError)
	}
	options := &slog.HandlerOptions{Level: level}
	switch a.flags.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(a.err, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.err, options)), nil
	default:
		return nil, fault.New(fault.Invalid, "--log-format", "%q is not a format", a.flags.logFormat).WithFix("use text or json")
	}
}

// serveMetrics answers GET /metrics at --metrics-listen until the command ends. Without the flag the registry is nil.
func (a *app) serveMetrics() (prometheus.Registerer, error) {
	if a.flags.metrics == "" {
		return nil, nil
	}
	address := a.flags.metrics
	if strings.HasPrefix(address, ":") {
		address = "127.0.0.1" + address
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "--metrics-listen", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends when it is closed
	a.atEnd = append(a.atEnd, func() { _ = server.Close() })
	a.metricsAt = listener.Addr().String()
	a.hint("metrics at http://%s/metrics", a.metricsAt)
	return registry, nil
}
