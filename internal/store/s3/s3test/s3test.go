// Package s3test answers: which S3 server can a test speak to? It runs one in the test's process, or SeaweedFS beside it.
package s3test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/store/s3"
)

// Server is an S3 server on loopback that forgets everything at the end of the test.
type Server struct {
	// Options reach it.
	Options s3.Options
	// Backend holds its objects.
	Backend gofakes3.Backend
}

// Start starts a server with some buckets. around may be nil; else it sees every request before the server does.
func Start(t testing.TB, around func(http.Handler) http.Handler, buckets ...string) *Server {
	t.Helper()
	backend := s3mem.New()
	for _, b := range buckets {
		require.NoError(t, backend.CreateBucket(b))
	}
	handler := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	if around != nil {
		handler = around(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &Server{
		Options: s3.Options{Endpoint: server.URL, Region: "us-east-1", AccessKey: "key", Secret: "secret"},
		Backend: backend,
	}
}
