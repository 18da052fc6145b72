package s3_test

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
	"github.com/skomerdb/skomer/internal/store/s3"
	"github.com/skomerdb/skomer/internal/store/s3/s3test"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

// answering is a store whose server gives one answer to everything, and how often it was asked.
func answering(t *testing.T, status int, code string, header ...string) (*s3.Store, *atomic.Int64) {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		io.Copy(io.Discard, r.Body)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		if code != "" {
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>so it is</Message></Error>", code)
		}
	}))
	t.Cleanup(server.Close)
	return s3.New(s3.Options{Endpoint: server.URL, Region: "us-east-1", AccessKey: "a", Secret: "b"}), &asked
}

func TestAnswersAreClassified(t *testing.T) {
	const key = "s3://bucket/d/o"
	for _, c := range []struct {
		status int
		code   string
		read   fault.Class
		write  fault.Class
		retry  bool
		fix    string // of the read
	}{
		{404, "NoSuchKey", fault.NotFound, fault.Conflict, false, ""},
		{404, "NoSuchBucket", fault.NotFound, fault.NotFound, false, "bucket's name"},
		{403, "AccessDenied", fault.Denied, fault.Denied, false, "s3:GetObject on arn:aws:s3:::bucket/d/o"},
		{401, "Unauthorized", fault.Denied, fault.Denied, false, "s3:GetObject"},
		{400, "ExpiredToken", fault.Denied, fault.Denied, false, "expired"},
		{403, "SignatureDoesNotMatch", fault.Denied, fault.Denied, false, "access key"},
		{403, "RequestTimeTooSkewed", fault.Denied, fault.Denied, false, "clock"},
		{412, "PreconditionFailed", fault.Stale, fault.Conflict, false, ""},
		{409, "ConditionalRequestConflict", fault.Conflict, fault.Conflict, true, ""},
		{503, "SlowDown", fault.Exhausted, fault.Exhausted, true, ""},
		{503, "", fault.Exhausted, fault.Unclassified, true, ""},
		{429, "TooManyRequests", fault.Exhausted, fault.Exhausted, true, ""},
		{500, "InternalError", fault.Unclassified, fault.Unclassified, true, ""},
		{502, "", fault.Unclassified, fault.Unclassified, true, ""},
		{400, "RequestTimeout", fault.Unclassified, fault.Unclassified, true, ""},
		{400, "InvalidArgument", fault.Invalid, fault.Invalid, false, ""},
		{501, "NotImplemented", fault.Unsupported, fault.Unsupported, false, ""},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			s, asked := answering(t, c.status, c.code, "x-amz-request-id", "4711")
			r := s.Fetch(t.Context(), []store.Read{{Key: key, Spans: []store.Span{{Len: 4}}}})[0]
			require.Equal(t, c.read, fault.ClassOf(r.Err), "%v", r.Err)
			require.Equal(t, c.retry, fault.Retryable(r.Err))
			require.Contains(t, r.Err.Error(), key)
			require.Contains(t, fault.FixOf(r.Err), c.fix)
			require.NotContains(t, r.Err.Error(), "operation error")
			if c.code != "" {
				require.Equal(t, 1, strings.Count(r.Err.Error(), c.code+": so it is (request 4711)"), "%v", r.Err)
				require.Equal(t, 1, strings.Count(r.Err.Error(), "so it is"), "%v", r.Err)
			}
			_, err := s.PutIf(t.Context(), key, "tag", []byte("x"))
			require.Equal(t, c.write, fault.ClassOf(err), "%v", err)
			require.Equal(t, c.retry, fault.Retryable(err))
			require.Contains(t, err.Error(), key)
			require.EqualValues(t, 2, asked.Load(), "every request is sent once")
		})
	}
}

func TestErrorsNameThePermission(t *testing.T) {
	s, _ := answering(t, 403, "AccessDenied")
	_, err := s.PutNew(t.Context(), "s3://b/o", strings.NewReader("x"))
	require.Contains(t, fault.FixOf(err), "s3:PutObject on arn:aws:s3:::b/o")
	_, err = s.List(t.Context(), "s3://b/d/", "", 10)
	require.Contains(t, fault.FixOf(err), "s3:ListBucket on arn:aws:s3:::b")
	require.NotContains(t, fault.FixOf(err), "b/d")
	require.Contains(t, fault.FixOf(s.Delete(t.Context(), []string{"s3://b/o"})), "s3:DeleteObject on arn:aws:s3:::b/o")
	require.Contains(t, fault.FixOf(s.Stat(t.Context(), []string{"s3://b/o"})[0].Err), "s3:GetObject on arn:aws:s3:::b/o")
}

func TestWrongRegionSaysTheRightOne(t *testing.T) {
	s, _ := answering(t, 301, "PermanentRedirect", "X-Amz-Bucket-Region", "eu-west-3")
	err := s.Fetch(t.Context(), []store.Read{{Key: "s3://b/o"}})[0].Err
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
	require.Contains(t, fault.FixOf(err), "eu-west-3")
}

// TestBrokenAnswers: a body that ends early, and a range that is not the one asked for, are no data.
func TestBrokenAnswers(t *testing.T) {
	for name, header := range map[string][]string{
		"short":       {"Content-Length", "10", "ETag", `"t"`},
		"other range": {"Content-Length", "0", "ETag", `"t"`, "Content-Range", "bytes 7-9/20"},
		"no size":     {"Transfer-Encoding", "chunked"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := answering(t, 200, "", header...)
			r := s.Fetch(t.Context(), []store.Read{{Key: "s3://b/o", Spans: []store.Span{{Len: 4}}}})[0]
			require.Error(t, r.Err)
			require.Nil(t, r.Data)
		})
	}
}

func TestNoServer(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	s := s3.New(s3.Options{Endpoint: server.URL, Region: "x", AccessKey: "a", Secret: "b"})
	err := s.Stat(t.Context(), []string{"s3://b/o"})[0].Err
	require.True(t, fault.Retryable(err), "%v", err)
	require.Equal(t, fault.Unreachable, fault.ClassOf(err))
	require.Contains(t, err.Error(), "s3://b/o")
	host := strings.TrimPrefix(server.URL, "http://")
	require.Contains(t, fault.FixOf(err), host)
	require.NotContains(t, err.Error(), "StatusCode", "what was never answered has no status")
}

// TestCredentialsAreAskedForLate: nothing is read or sent until the first request, and what fails then says what to do.
func TestCredentialsAreAskedForLate(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_PROFILE": "", "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none",
		"AWS_WEB_IDENTITY_TOKEN_FILE": "", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "",
	} {
		t.Setenv(name, value)
	}
	s := s3.New(s3.Options{Endpoint: "http://127.0.0.1:1"})
	err := s.Stat(t.Context(), []string{"s3://b/o"})[0].Err
	require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
	require.Contains(t, fault.FixOf(err), "AWS_ACCESS_KEY_ID")
}

// TestO50NamesGoVerbatim looks at what is sent: the decoded path is the name, whatever it holds.
func TestO50NamesGoVerbatim(t *testing.T) {
	var mu sync.Mutex
	var paths []string
	server := s3test.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			paths = append(paths, r.URL.Path)
			mu.Unlock()
			next.ServeHTTP(w, r)
		})
	}, "bucket")
	s := s3.New(server.Options)
	for _, name := range []string{"dir%20x/f.parquet", "a b", "+", "#", "=", "é", "a//b", "a/../b", "./c", "%252F", "q?x=1"} {
		for _, scheme := range []string{"s3", "s3a", "S3N"} {
			s.Stat(t.Context(), []string{scheme + "://bucket/" + name})
			mu.Lock()
			last := paths[len(paths)-1]
			mu.Unlock()
			require.Equal(t, "/bucket/"+name, last)
		}
	}
}

func TestKeysOfOtherStoresAreRefused(t *testing.T) {
	s := s3.New(s3.Options{})
	for _, key := range []string{"", "/bucket/o", "bucket/o", "gs://b/o", "s3://", "s3://b", "s3://b/", "s3:///o"} {
		require.Equal(t, fault.Invalid, fault.ClassOf(s.Stat(t.Context(), []string{key})[0].Err), key)
		require.Equal(t, fault.Invalid, fault.ClassOf(s.Fetch(t.Context(), []store.Read{{Key: key}})[0].Err), key)
		require.Equal(t, fault.Invalid, fault.ClassOf(s.Delete(t.Context(), []string{key})), key)
		_, err := s.PutNew(t.Context(), key, strings.NewReader(""))
		require.Equal(t, fault.Invalid, fault.ClassOf(err), key)
	}
	_, err := s.List(t.Context(), "gs://b/", "", 1)
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
}

func TestSeveralBucketsInOneWave(t *testing.T) {
	server := s3test.Start(t, nil, "one", "two")
	s := s3.New(server.Options)
	var keys []string
	for _, b := range []string{"one", "two"} {
		key := "s3://" + b + "/o"
		_, err := s.PutNew(t.Context(), key, strings.NewReader("in "+b))
		require.NoError(t, err)
		keys = append(keys, key)
	}
	var used store.Counter
	ctx := store.WithCounter(t.Context(), &used)
	out := s.Fetch(ctx, []store.Read{{Key: keys[0]}, {Key: "s3a://two/o"}})
	require.Equal(t, "in one", string(out[0].Data[0]))
	require.Equal(t, "in two", string(out[1].Data[0]))
	require.Equal(t, store.Usage{Waves: 1, Gets: 2, BytesRead: 12}, used.Usage())
	listed, err := s.List(t.Context(), "s3a://two/", "", 10)
	require.NoError(t, err)
	require.Equal(t, "s3a://two/o", listed[0].Key, "as it was spelled")
	require.NoError(t, s.Delete(t.Context(), keys))
	for _, i := range s.Stat(t.Context(), keys) {
		require.Equal(t, fault.NotFound, fault.ClassOf(i.Err))
	}
}

// TestParts uploads an object in parts; it appears whole, and broken ones leave nothing.
func TestParts(t *testing.T) {
	var aborted atomic.Int64
	server := s3test.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete && r.URL.Query().Has("uploadId") {
				aborted.Add(1)
			}
			if r.Method == http.MethodPost && r.URL.Query().Has("uploadId") && r.Header.Get("If-None-Match") != "*" {
				t.Error("an upload was completed without its condition")
			}
			next.ServeHTTP(w, r)
		})
	}, "bucket")
	server.Options.PartBytes = 5 << 20
	s := s3.New(server.Options)
	b := make([]byte, 12<<20)
	rnd := storetest.Rand(t)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	var used store.Counter
	ctx := store.WithCounter(t.Context(), &used)
	_, err := s.PutNew(ctx, "s3://bucket/o", bytes.NewReader(b))
	require.NoError(t, err)
	require.Equal(t, store.Usage{Puts: 5, BytesWritten: 12 << 20}, used.Usage())
	r := s.Fetch(t.Context(), []store.Read{{Key: "s3://bucket/o"}})[0] // this server's tags of such uploads differ
	require.NoError(t, r.Err)
	require.True(t, bytes.Equal(b, r.Data[0]))

	broken := errors.New("source broke")
	_, err = s.PutNew(t.Context(), "s3://bucket/p", &failing{Reader: bytes.NewReader(b), at: 8 << 20, err: broken})
	require.ErrorIs(t, err, broken)
	require.False(t, fault.Retryable(err))
	require.EqualValues(t, 1, aborted.Load())
	require.Equal(t, fault.NotFound, fault.ClassOf(s.Stat(t.Context(), []string{"s3://bucket/p"})[0].Err))
}

// failing fails behind an offset.
type failing struct {
	*bytes.Reader
	at  int64
	err error
}

func (f *failing) Read(b []byte) (int, error) {
	if at, _ := f.Seek(0, io.SeekCurrent); at >= f.at {
		return 0, f.err
	}
	return f.Reader.Read(b)
}

func TestFromProperties(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		in   map[string]string
		want s3.Options
	}{
		{nil, s3.Options{}},
		{
			map[string]string{"s3.endpoint": "http://minio:9000", "s3.region": "r", "s3.access-key-id": "a", "s3.secret-access-key": "b", "s3.session-token": "c", "uri": "x"},
			s3.Options{Endpoint: "http://minio:9000", Region: "r", AccessKey: "a", Secret: "b", Session: "c"},
		},
		{
			map[string]string{"client.region": "r", "s3.role-arn": "arn", "client.role-session-name": "n", "s3.anonymous": "True"},
			s3.Options{Region: "r", RoleARN: "arn", RoleSession: "n", Anonymous: true},
		},
		{map[string]string{"s3.path-style-access": "true", "s3.force-virtual-addressing": "true"}, s3.Options{PathStyle: &yes}},
		{map[string]string{"s3.force-virtual-addressing": "true"}, s3.Options{PathStyle: &no}},
	} {
		got, err := s3.FromProperties(c.in)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	for _, bad := range []map[string]string{
		{"s3.access-key-id": "a"},
		{"s3.endpoint": "minio:9000"},
		{"s3.anonymous": "perhaps"},
		{"s3.path-style-access": "x"},
	} {
		_, err := s3.FromProperties(bad)
		require.Equal(t, fault.Invalid, fault.ClassOf(err), "%v", bad)
	}
}

func TestListingsOutOfOrderAreRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<ListBucketResult><Contents><Key>d/x</Key><Size>1</Size></Contents><Contents><Key>d-</Key><Size>1</Size></Contents></ListBucketResult>")
	}))
	t.Cleanup(server.Close)
	s := s3.New(s3.Options{Endpoint: server.URL, Region: "x", AccessKey: "a", Secret: "b"})
	_, err := s.List(t.Context(), "s3://b/d", "", 10)
	require.Equal(t, fault.Unsupported, fault.ClassOf(err), "%v", err)
}

// TestConcurrencyIsBounded lets requests wait at the server until as many have come as may be on their way.
func TestConcurrencyIsBounded(t *testing.T) {
	var now, most atomic.Int64
	var once sync.Once
	full := make(chan struct{})
	server := s3test.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n := now.Add(1)
			defer now.Add(-1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			if n == s3.Concurrency {
				once.Do(func() { close(full) })
			}
			select {
			case <-full:
			case <-time.After(time.Minute):
			}
			next.ServeHTTP(w, r)
		})
	}, "bucket")
	s := s3.New(server.Options)
	reads := make([]store.Read, 4*s3.Concurrency)
	for i := range reads {
		reads[i].Key = fmt.Sprintf("s3://bucket/%d", i)
	}
	for _, r := range s.Fetch(context.Background(), reads) {
		require.Equal(t, fault.NotFound, fault.ClassOf(r.Err))
	}
	require.EqualValues(t, s3.Concurrency, most.Load())
}
