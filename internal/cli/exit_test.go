package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
)

// TestOverlayThatIsDown: queries answer all the same and say why they were scans; a status says what to check and exits with 8.
func TestOverlayThatIsDown(t *testing.T) {
	s := newShell(t)
	var asked atomic.Int64
	down := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		panic(http.ErrAbortHandler)
	}))
	defer down.Close()
	t.Setenv("SKOMER_OVERLAY_STORE__S3__ENDPOINT", down.URL)
	t.Setenv("SKOMER_OVERLAY_STORE__S3__ACCESS_KEY_ID", "a")
	t.Setenv("SKOMER_OVERLAY_STORE__S3__SECRET_ACCESS_KEY", "b")
	t.Setenv("SKOMER_OVERLAY_ROOT", "s3://overlays/skomer")
	r := s.try("query", "TABLE", "-c", "-w", "destination = 'GST'")
	require.Zero(t, r.code, r.err)
	require.Equal(t, "4\n", r.out)
	require.Contains(t, r.err, "no answer from "+strings.TrimPrefix(down.URL, "http://"))
	require.LessOrEqual(t, asked.Load(), int64(9), "three tries and not eight")
	r = s.try("status", "TABLE")
	require.Equal(t, exitUnhealthy, r.code)
	require.Contains(t, r.err, "try: check that "+strings.TrimPrefix(down.URL, "http://"))
	require.Equal(t, 1, strings.Count(r.err, "no answer"), r.err)
}

// TestErrorsNameTheirSubjectOnce: also where the cause of an error is about the same thing.
func TestErrorsNameTheirSubjectOnce(t *testing.T) {
	err := fault.About("/a/b", fault.About("/a/b", fault.New(fault.Denied, "/a/b", "is closed").WithFix("open it")))
	f := describeError(err)
	require.Equal(t, failure{Code: exitDenied, Kind: "denied", Subject: "/a/b", Reason: "is closed", Fix: "open it"}, f)
	f = describeError(fault.About("/c", fault.New(fault.Denied, "/a/b", "is closed")))
	require.Equal(t, "/c", f.Subject)
	require.Equal(t, "/a/b: is closed", f.Reason)
}
