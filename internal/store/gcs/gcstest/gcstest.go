// Package gcstest answers: which server of Google Cloud Storage's protocol can a test speak to? It runs one in the test's process.
package gcstest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/store/gcs"
)

// Server is a server on loopback that forgets everything at the end of the test.
type Server struct {
	// Options reach it.
	Options gcs.Options
	// Backend holds its objects.
	Backend *fakestorage.Server
}

// Start starts a server with some buckets. around may be nil; else it sees every request before the server does.
func Start(t testing.TB, around func(http.Handler) http.Handler, buckets ...string) *Server {
	t.Helper()
	backend, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	require.NoError(t, err)
	t.Cleanup(backend.Stop)
	for _, b := range buckets {
		backend.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: b})
	}
	handler := conditional(backend.HTTPHandler())
	if around != nil {
		handler = around(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &Server{Options: gcs.Options{Endpoint: server.URL, Token: "token"}, Backend: backend}
}

// conditional answers reads whose ifGenerationMatch does not hold as the real service does; the fake judges it in writes only.
func conditional(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := r.URL.Query().Get("ifGenerationMatch")
		if r.Method != http.MethodGet || want == "" {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(&judge{ResponseWriter: w, want: want}, r)
	})
}

// judge lets an answer pass if it is of the generation that is wanted.
type judge struct {
	http.ResponseWriter
	want    string
	refused bool
}

// WriteHeader implements http.ResponseWriter.
func (j *judge) WriteHeader(status int) {
	have := j.Header().Get("X-Goog-Generation")
	if j.refused = have != "" && have != j.want; j.refused {
		clear(j.Header())
		status = http.StatusPreconditionFailed
	}
	j.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (j *judge) Write(b []byte) (int, error) {
	if j.refused {
		return len(b), nil
	}
	return j.ResponseWriter.Write(b)
}
