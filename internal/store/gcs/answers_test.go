package gcs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/gcs"
	"github.com/skomerdb/skomer/internal/store/gcs/gcstest"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

// answering is a store whose server gives one answer to everything, and how often it was asked.
func answering(t *testing.T, status int, body string) (*gcs.Store, *atomic.Int64) {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return gcs.New(gcs.Options{Endpoint: server.URL, Token: "token"}), &asked
}

func reply(reason, message string) string {
	return fmt.Sprintf(`{"error": {"message": %q, "errors": [{"reason": %q}]}}`, message, reason)
}

func TestAnswersAreClassified(t *testing.T) {
	const key = "gs://bucket/d/o"
	for _, c := range []struct {
		status      int
		body        string
		read, write fault.Class
		retry       bool
		fix         string // of the read
	}{
		{404, "Not Found", fault.NotFound, fault.Conflict, false, ""},
		{404, reply("notFound", "The specified bucket does not exist."), fault.NotFound, fault.NotFound, false, "bucket's name"},
		{403, reply("forbidden", "no"), fault.Denied, fault.Denied, false, "storage.objects.get on the bucket bucket"},
		{401, reply("authError", "no"), fault.Denied, fault.Denied, false, "gcloud auth"},
		{412, reply("conditionNotMet", "no"), fault.Stale, fault.Conflict, false, ""},
		{429, reply("rateLimitExceeded", "slow"), fault.Exhausted, fault.Exhausted, true, ""},
		{403, reply("userRateLimitExceeded", "slow"), fault.Exhausted, fault.Exhausted, true, ""},
		{503, "", fault.Exhausted, fault.Unclassified, true, ""},
		{500, "", fault.Unclassified, fault.Unclassified, true, ""},
		{504, "", fault.Unclassified, fault.Unclassified, true, ""},
		{408, "", fault.Unclassified, fault.Unclassified, true, ""},
		{409, "", fault.Conflict, fault.Conflict, true, ""},
		{400, reply("invalid", "what"), fault.Invalid, fault.Invalid, false, ""},
	} {
		t.Run(fmt.Sprint(c.status, c.body), func(t *testing.T) {
			s, asked := answering(t, c.status, c.body)
			r := s.Fetch(t.Context(), []store.Read{{Key: key, Spans: []store.Span{{Len: 4}}}})[0]
			require.Equal(t, c.read, fault.ClassOf(r.Err), "%v", r.Err)
			require.Equal(t, c.retry, fault.Retryable(r.Err))
			require.Contains(t, r.Err.Error(), key)
			require.Contains(t, fault.FixOf(r.Err), c.fix)
			_, err := s.PutIf(t.Context(), key, "7", []byte("x"))
			require.Equal(t, c.write, fault.ClassOf(err), "%v", err)
			require.Equal(t, c.retry, fault.Retryable(err))
			require.Contains(t, err.Error(), key)
			require.EqualValues(t, 2, asked.Load(), "every request is sent once")
		})
	}
}

// TestBrokenAnswers: what is no answer of the protocol is no data.
func TestBrokenAnswers(t *testing.T) {
	for name, header := range map[string][]string{
		"short":         {"Content-Length", "10", "X-Goog-Generation", "1"},
		"other range":   {"Content-Length", "0", "X-Goog-Generation", "1", "Content-Range", "bytes 7-9/20"},
		"no generation": {"Content-Length", "0"},
		"no size":       {"Transfer-Encoding", "chunked", "X-Goog-Generation", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for i := 0; i < len(header); i += 2 {
					w.Header().Set(header[i], header[i+1])
				}
				w.WriteHeader(http.StatusOK)
			}))
			t.Cleanup(server.Close)
			s := gcs.New(gcs.Options{Endpoint: server.URL, Anonymous: true})
			r := s.Fetch(t.Context(), []store.Read{{Key: "gs://b/o", Spans: []store.Span{{Len: 4}}}})[0]
			require.Error(t, r.Err)
			require.Nil(t, r.Data)
		})
	}
	s, _ := answering(t, 200, `{"size": "many"}`)
	require.True(t, fault.Retryable(s.Stat(t.Context(), []string{"gs://b/o"})[0].Err))
	_, err := s.PutNew(t.Context(), "gs://b/o", strings.NewReader("x"))
	require.True(t, fault.Retryable(err), "an object without a generation: %v", err)
}

func TestKeysOfOtherStoresAreRefused(t *testing.T) {
	s := gcs.New(gcs.Options{Anonymous: true})
	for _, key := range []string{"", "/bucket/o", "s3://b/o", "gs://", "gs://b", "gs://b/", "gs:///o"} {
		require.Equal(t, fault.Invalid, fault.ClassOf(s.Stat(t.Context(), []string{key})[0].Err), key)
		require.Equal(t, fault.Invalid, fault.ClassOf(s.Fetch(t.Context(), []store.Read{{Key: key}})[0].Err), key)
		require.Equal(t, fault.Invalid, fault.ClassOf(s.Delete(t.Context(), []string{key})), key)
		_, err := s.PutNew(t.Context(), key, strings.NewReader(""))
		require.Equal(t, fault.Invalid, fault.ClassOf(err), key)
	}
	_, err := s.List(t.Context(), "s3://b/", "", 1)
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
}

// TestO50NamesGoVerbatim looks at what is sent: the decoded path is the name, whatever it holds.
func TestO50NamesGoVerbatim(t *testing.T) {
	var mu sync.Mutex
	var path string
	server := gcstest.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			path = r.URL.Path
			mu.Unlock()
			next.ServeHTTP(w, r)
		})
	}, "bucket")
	s := gcs.New(server.Options)
	for _, name := range []string{"dir%20x/f.parquet", "a b", "+", "#", "=", "é", "a//b", "a/../b", "./c", "%252F", "q?x=1"} {
		s.Stat(t.Context(), []string{"gs://bucket/" + name})
		require.Equal(t, "/storage/v1/b/bucket/o/"+name, path)
	}
}

// TestParts uploads an object in parts; a part that breaks off is continued where the server stands, and the condition holds.
func TestParts(t *testing.T) {
	var broken, asked atomic.Int64
	server := gcstest.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status := strings.HasPrefix(r.Header.Get("Content-Range"), "bytes */")
			if status { // the fake takes the question for the end of the upload
				asked.Add(1)
				w.Header().Set("Range", "bytes=0-1048575")
				w.WriteHeader(http.StatusPermanentRedirect)
				return
			}
			if r.Method == http.MethodPut && !status && broken.Add(1) == 2 {
				w.WriteHeader(http.StatusBadGateway) // nothing of the part was kept
				return
			}
			next.ServeHTTP(w, r)
		})
	}, "bucket")
	server.Options.PartBytes = 1 << 20
	s := gcs.New(server.Options)
	rnd := storetest.Rand(t)
	b := make([]byte, 3<<20+5)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	tag, err := s.PutNew(t.Context(), "gs://bucket/o", bytes.NewReader(b))
	require.NoError(t, err)
	require.EqualValues(t, 1, asked.Load())
	r := s.Fetch(t.Context(), []store.Read{{Key: "gs://bucket/o", Tag: tag}})[0]
	require.NoError(t, r.Err)
	require.True(t, bytes.Equal(b, r.Data[0]))
	_, err = s.PutNew(t.Context(), "gs://bucket/o", bytes.NewReader(b[1:]))
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
	require.Equal(t, tag, s.Stat(t.Context(), []string{"gs://bucket/o"})[0].Tag)
}

// renewing hands out a new token at every call, each of which lasts so long.
type renewing struct {
	lasts time.Duration
	n     atomic.Int64
}

func (r *renewing) next(context.Context) (string, time.Time, error) {
	return fmt.Sprintf("token-%d", r.n.Add(1)), time.Now().Add(r.lasts), nil
}

// TestTokensAreRenewed: before they end, and when the server refuses one; a write is sent again whole.
func TestTokensAreRenewed(t *testing.T) {
	var refused atomic.Value
	refused.Store("")
	server := gcstest.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if "Bearer "+refused.Load().(string) == r.Header.Get("Authorization") {
				io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, "bucket")
	lasting := &renewing{lasts: time.Hour}
	o := gcs.Options{Endpoint: server.Options.Endpoint, Renew: lasting.next}
	s := gcs.New(o)
	tag, err := s.PutNew(t.Context(), "gs://bucket/o", strings.NewReader("one"))
	require.NoError(t, err)
	s.Stat(t.Context(), []string{"gs://bucket/o"})
	require.EqualValues(t, 1, lasting.n.Load(), "a token is kept while it lasts")
	refused.Store("token-1")
	_, err = s.PutIf(t.Context(), "gs://bucket/o", tag, []byte("second"))
	require.NoError(t, err)
	require.EqualValues(t, 2, lasting.n.Load())
	require.Equal(t, "second", string(s.Fetch(t.Context(), []store.Read{{Key: "gs://bucket/o"}})[0].Data[0]))

	refused.Store("")
	ending := &renewing{lasts: 10 * time.Second} // within the time in which tokens are renewed early
	o.Renew = ending.next
	s = gcs.New(o)
	for range 3 {
		require.NoError(t, s.Stat(t.Context(), []string{"gs://bucket/o"})[0].Err)
	}
	require.EqualValues(t, 3, ending.n.Load())
	id, _, err := store.IdentityOf(t.Context(), s)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), id.Expires, time.Minute)

	o.Renew = func(context.Context) (string, time.Time, error) { return "", time.Time{}, errors.New("no more") }
	err = gcs.New(o).Stat(t.Context(), []string{"gs://bucket/o"})[0].Err
	require.Equal(t, fault.Denied, fault.ClassOf(err))
	require.ErrorContains(t, err, "no more")
}

// TestAWrongTokenIsAskedOnce: a token that is fixed cannot be renewed.
func TestAWrongTokenIsAskedOnce(t *testing.T) {
	s, asked := answering(t, 401, "")
	require.Equal(t, fault.Denied, fault.ClassOf(s.Stat(t.Context(), []string{"gs://b/o"})[0].Err))
	require.EqualValues(t, 1, asked.Load())
	err := gcs.New(gcs.Options{Token: "x", Expires: time.Now().Add(-time.Hour)}).Stat(t.Context(), []string{"gs://b/o"})[0].Err
	require.ErrorContains(t, err, "expired")
}

// TestCredentialsAreAskedForLate: nothing is read or sent until the first request, and what fails then says what to do.
func TestCredentialsAreAskedForLate(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/none")
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	s := gcs.New(gcs.Options{Endpoint: "http://127.0.0.1:1"})
	err := s.Stat(t.Context(), []string{"gs://b/o"})[0].Err
	require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
	require.Contains(t, fault.FixOf(err), "GOOGLE_APPLICATION_CREDENTIALS")
}

func TestEmulatorOfTheEnvironment(t *testing.T) {
	server := gcstest.Start(t, nil, "bucket")
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(server.Options.Endpoint, "http://"))
	_, err := gcs.New(gcs.Options{}).PutNew(t.Context(), "gs://bucket/o", strings.NewReader("x"))
	require.NoError(t, err)
}

func TestFromProperties(t *testing.T) {
	for _, c := range []struct {
		in   map[string]string
		want gcs.Options
	}{
		{nil, gcs.Options{}},
		{
			map[string]string{"gcs.service.host": "http://h", "gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "1000", "uri": "x"},
			gcs.Options{Endpoint: "http://h", Token: "t", Expires: time.UnixMilli(1000)},
		},
		{map[string]string{"gcs.no-auth": "true"}, gcs.Options{Anonymous: true}},
		{map[string]string{"gcs.requester-pays": "true", "gcs.project-id": "p"}, gcs.Options{Project: "p"}},
		{map[string]string{"gcs.project-id": "p"}, gcs.Options{}},
		{map[string]string{"gcs.keypath": "k", "gcs.jsonkey": "{}"}, gcs.Options{KeyFile: "k", KeyJSON: "{}"}},
	} {
		got, err := gcs.FromProperties(c.in)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	for _, bad := range []map[string]string{
		{"gcs.service.host": "h:9000"},
		{"gcs.no-auth": "perhaps"},
		{"gcs.requester-pays": "true"},
		{"gcs.oauth2.token-expires-at": "soon"},
	} {
		_, err := gcs.FromProperties(bad)
		require.Equal(t, fault.Invalid, fault.ClassOf(err), "%v", bad)
	}
}
