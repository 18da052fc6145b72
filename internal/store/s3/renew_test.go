package s3_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/retry"
	"github.com/skomerdb/skomer/internal/store/s3"
	"github.com/skomerdb/skomer/internal/store/s3/s3test"
)

// TestKeysAreRenewed: before they end, and when the server says that they have ended, which is then no more than a try.
func TestKeysAreRenewed(t *testing.T) {
	var ended atomic.Value
	ended.Store("none")
	server := s3test.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.Header.Get("Authorization"), "Credential="+ended.Load().(string)+"/") {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, "<Error><Code>ExpiredToken</Code></Error>")
				return
			}
			next.ServeHTTP(w, r)
		})
	}, "bucket")
	var n atomic.Int64
	lasts := time.Hour
	o := s3.Options{Endpoint: server.Options.Endpoint, Region: "us-east-1", Renew: func(context.Context) (s3.Keys, error) {
		return s3.Keys{AccessKey: fmt.Sprintf("key%d", n.Add(1)), Secret: "secret", Session: "session", Expires: time.Now().Add(lasts)}, nil
	}}
	s := s3.New(o)
	again := retry.New(s, retry.Options{First: time.Microsecond})
	_, err := again.PutNew(t.Context(), "s3://bucket/o", strings.NewReader("x"))
	require.NoError(t, err)
	require.NoError(t, again.Stat(t.Context(), []string{"s3://bucket/o"})[0].Err)
	require.EqualValues(t, 1, n.Load(), "keys are kept while they last")
	ended.Store("key1")
	require.NoError(t, again.Fetch(t.Context(), []store.Read{{Key: "s3://bucket/o"}})[0].Err)
	require.EqualValues(t, 2, n.Load())
	id, known, err := store.IdentityOf(t.Context(), again)
	require.NoError(t, err)
	require.True(t, known)
	require.Equal(t, "key2", id.Name)
	require.WithinDuration(t, time.Now().Add(lasts), id.Expires, 2*time.Minute)

	ended.Store("none")
	n.Store(0)
	lasts = 10 * time.Second // within the time in which keys are renewed early
	s = s3.New(o)
	for range 3 {
		require.NoError(t, s.Stat(t.Context(), []string{"s3://bucket/o"})[0].Err)
	}
	require.EqualValues(t, 3, n.Load())

	o.Renew = func(context.Context) (s3.Keys, error) { return s3.Keys{}, errors.New("no more") }
	err = s3.New(o).Stat(t.Context(), []string{"s3://bucket/o"})[0].Err
	require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "no more")
}

// TestFixedKeysThatHaveEnded are told, not tried again.
func TestFixedKeysThatHaveEnded(t *testing.T) {
	s, _ := answering(t, 400, "ExpiredToken")
	err := s.Stat(t.Context(), []string{"s3://b/o"})[0].Err
	require.False(t, fault.Retryable(err), "%v", err)
	s, asked := answering(t, 400, "ExpiredToken")
	err = s.Fetch(t.Context(), []store.Read{{Key: "s3://b/o"}})[0].Err
	require.Equal(t, fault.Denied, fault.ClassOf(err))
	require.Contains(t, fault.FixOf(err), "expired")
	require.EqualValues(t, 1, asked.Load())
}
