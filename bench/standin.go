package main

import (
	"encoding/xml"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skomerdb/skomer/internal/store/faulty"
	"github.com/skomerdb/skomer/internal/store/local"
)

// standIn serves a folder as the S3 bucket "bench", to be read. Its answers take the time of a model, once that is switched on, and are counted.
type standIn struct {
	dir      string
	server   *http.Server
	Endpoint string
	latency  faulty.Latency
	slow     atomic.Bool
	// flat makes every answer take the model's median, so that requests that do not wait for each other end together.
	flat  atomic.Bool
	gets  atomic.Int64
	bytes atomic.Int64

	mu     sync.Mutex
	begun  time.Time // requests before it do not count
	served []served
}

// served is when a request came and when its answer was sent.
type served struct{ from, to time.Time }

func startStandIn(dir string) (*standIn, error) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &standIn{dir: dir, latency: faulty.S3, Endpoint: "http://" + listen.Addr().String()}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.server.Serve(listen) }()
	return s, nil
}

func (s *standIn) stop() { _ = s.server.Close() }

// reset sets the counters to zero.
func (s *standIn) reset() {
	s.gets.Store(0)
	s.bytes.Store(0)
	s.mu.Lock()
	s.begun, s.served = time.Now(), nil
	s.mu.Unlock()
}

// chain is the longest chain of requests since the last reset of which each came after the answer to the one before.
func (s *standIn) chain() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.served, func(a, b served) int { return a.to.Compare(b.to) })
	var last time.Time
	for _, r := range s.served {
		if r.from.After(s.begun) && r.from.After(last) {
			n, last = n+1, r.to
		}
	}
	return n
}

// ServeHTTP answers GET, HEAD and ListObjectsV2.
func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.gets.Add(1)
	from := time.Now()
	defer func() {
		s.mu.Lock()
		s.served = append(s.served, served{from, time.Now()})
		s.mu.Unlock()
	}()
	switch {
	case s.flat.Load():
		time.Sleep(s.latency.P50)
	case s.slow.Load():
		sigma := math.Log(float64(s.latency.P99)/float64(s.latency.P50)) / 2.3263478740408408 // the 99th percentile of the normal distribution
		time.Sleep(time.Duration(float64(s.latency.P50) * math.Exp(sigma*rand.NormFloat64())))
	}
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/bench"), "/")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		s.fail(w, http.StatusForbidden, "AccessDenied")
	case key == "" && r.URL.Query().Has("list-type"):
		s.list(w, r)
	default:
		s.object(w, r, filepath.Join(s.dir, filepath.FromSlash(key)))
	}
}

func (s *standIn) fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}

// object sends a file. Its ETag is the local store's tag, so that an index that was built from the folder is one of the bucket.
func (s *standIn) object(w http.ResponseWriter, r *http.Request, path string) {
	f, err := os.Open(path)
	if err != nil {
		s.fail(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		s.fail(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	tag := local.New().Stat(r.Context(), []string{path})[0].Tag
	w.Header().Set("ETag", `"`+string(tag)+`"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(&throttled{w, s, time.Now(), 0}, r, "", info.ModTime(), f)
}

// throttled sends as fast as the model's connection.
type throttled struct {
	http.ResponseWriter
	of    *standIn
	start time.Time
	sent  int64
}

// Write sends and waits.
func (t *throttled) Write(b []byte) (int, error) {
	n, err := t.ResponseWriter.Write(b)
	t.sent += int64(n)
	t.of.bytes.Add(int64(n))
	if t.of.slow.Load() {
		time.Sleep(time.Until(t.start.Add(time.Duration(float64(t.sent) / t.of.latency.BytesPerSecond * float64(time.Second)))))
	}
	return n, err
}

type listing struct {
	XMLName     xml.Name `xml:"ListBucketResult"`
	Name        string
	Prefix      string
	KeyCount    int
	MaxKeys     int
	IsTruncated bool
	Next        string `xml:"NextContinuationToken,omitempty"`
	Contents    []listed
	Prefixes    []listedPrefix `xml:"CommonPrefixes"`
}

type listed struct {
	Key, LastModified, ETag string
	Size                    int64
}

type listedPrefix struct{ Prefix string }

func (s *standIn) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	out := listing{Name: "bench", Prefix: q.Get("prefix"), MaxKeys: 1000}
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil {
		out.MaxKeys = n
	}
	after := max(q.Get("start-after"), q.Get("continuation-token"))
	root := filepath.Join(s.dir, filepath.FromSlash(out.Prefix[:strings.LastIndexByte(out.Prefix, '/')+1]))
	last := ""
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(s.dir, path)
		if err != nil || relErr != nil || d.IsDir() {
			return nil //nolint:nilerr // a folder that is not there has no objects
		}
		key := filepath.ToSlash(rel)
		if !strings.HasPrefix(key, out.Prefix) || key <= after {
			return nil
		}
		if out.KeyCount == out.MaxKeys {
			out.IsTruncated, out.Next = true, last
			return fs.SkipAll
		}
		if q.Get("delimiter") == "/" {
			if n := strings.IndexByte(key[len(out.Prefix):], '/'); n >= 0 {
				prefix := key[:len(out.Prefix)+n+1]
				if k := len(out.Prefixes); k == 0 || out.Prefixes[k-1].Prefix != prefix {
					out.Prefixes = append(out.Prefixes, listedPrefix{prefix})
				}
				return nil
			}
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // it was removed meanwhile
		}
		tag := local.New().Stat(r.Context(), []string{path})[0].Tag
		out.Contents = append(out.Contents, listed{key, info.ModTime().UTC().Format(time.RFC3339), `"` + string(tag) + `"`, info.Size()})
		out.KeyCount++
		last = key
		return nil
	})
	if err != nil {
		s.fail(w, http.StatusInternalServerError, "InternalError")
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	_, _ = w.Write([]byte(xml.Header))
	_ = xml.NewEncoder(w).Encode(out)
}
