// Package gcs answers: which bytes are under this key of a bucket of Google Cloud Storage, and may I put some there?
//
// A key is a whole location, gs://bucket/name; gcs means the same. Everything behind the bucket is the object's name, verbatim. One
// store serves every bucket that its identity reaches. A tag is the object's generation in decimal digits, which no other content of
// that name ever has: reads and writes are conditional by ifGenerationMatch, and 0 means that there must be no object.
//
// It speaks the JSON API (https://cloud.google.com/storage/docs/json_api) itself; docs/adr tells what Google's own client would cost.
// Making a store costs nothing: credentials are looked for at the first request. Requests are sent once; package retry repeats them.
package gcs

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/limit"
	"github.com/skomerdb/skomer/internal/store/ranges"
)

const (
	// Gap is the coalescing gap in bytes: what one connection brings in about the time of one more round trip.
	Gap = 512 << 10

	partBytes   = 64 << 20  // of a resumable upload
	partQuantum = 256 << 10 // parts are multiples of it
	// headerTimeout is how long a server may think before it answers; the answer itself may take any time.
	headerTimeout = time.Minute
)

// Options say how to reach the buckets. The zero value is Google's service with the credentials that its own tools would find.
type Options struct {
	Endpoint  string    // URL; empty: STORAGE_EMULATOR_HOST, unsigned, otherwise Google's
	Token     string    // an OAuth2 access token
	Expires   time.Time // of Token; zero: unknown
	KeyFile   string    // a file of credentials: a service account's key, or a workload identity
	KeyJSON   string    // the same as text
	Anonymous bool      // send no credentials
	Project   string    // billed for requests, where the bucket's owner does not pay
	// Renew gives access tokens and when they end, in place of the above. It is asked before they end, and when one is refused.
	Renew func(context.Context) (token string, expires time.Time, err error)

	Concurrency int   // requests on their way at once; 0: 64
	PartBytes   int64 // objects of more bytes are uploaded in parts of so many; 0: 64 MiB
}

// Store is the buckets that one identity reaches.
type Store struct {
	options Options
	http    *http.Client
	tokens  tokens
	gate    *limit.Gate
	reader  *ranges.Reader
}

var _ store.Store = (*Store)(nil)

// New makes a store. It neither reads files nor sends anything.
func New(o Options) *Store {
	if o.PartBytes == 0 {
		o.PartBytes = partBytes
	}
	o.PartBytes = (o.PartBytes + partQuantum - 1) / partQuantum * partQuantum
	s := &Store{options: o, gate: limit.New(o.Concurrency)}
	s.tokens.options = &s.options
	s.http = newHTTP(o.Concurrency)
	s.reader = &ranges.Reader{Backend: getter{s}, Gate: s.gate, Gap: Gap, Check: func(key string) error {
		_, err := object(key)
		return err
	}}
	return s
}

func newHTTP(concurrency int) *http.Client {
	if concurrency == 0 {
		concurrency = limit.Default
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 2*concurrency, concurrency
	t.ResponseHeaderTimeout = headerTimeout
	t.ForceAttemptHTTP2 = false // one connection a request: each brings its own share of bandwidth
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Serves reports whether a location is one of Google Cloud Storage's.
func Serves(location string) bool {
	scheme, _, ok := strings.Cut(location, "://")
	switch strings.ToLower(scheme) {
	case "gs", "gcs":
		return ok
	}
	return false
}

// Crowded reports whether requests wait for others to be answered.
func (s *Store) Crowded() bool { return s.gate.Crowded() }

// place is a key taken apart. base is everything before the name, as it was spelled.
type place struct{ base, bucket, name string }

func parse(key string) (place, error) {
	scheme, rest, _ := strings.Cut(key, "://")
	bucket, name, ok := strings.Cut(rest, "/")
	if !Serves(key) || bucket == "" || !ok {
		return place{}, fault.New(fault.Invalid, key, "no location of the form gs://bucket/name")
	}
	return place{base: scheme + "://" + bucket + "/", bucket: bucket, name: name}, nil
}

// object parses the key of an object.
func object(key string) (place, error) {
	p, err := parse(key)
	if err == nil && p.name == "" {
		err = fault.New(fault.Invalid, key, "an object needs a name")
	}
	return p, err
}

// enter waits until a request may be sent; Leave must follow if it gives no error.
func (s *Store) enter(ctx context.Context, key string) (limit.Pass, error) {
	pass, err := s.gate.Enter(ctx)
	return pass, fault.About(key, err)
}
