// Package s3 answers: which bytes are under this key of an S3 bucket, and may I put some there? It serves Amazon S3 and what
// speaks its protocol.
//
// A key is a whole location, s3://bucket/name; s3a and s3n mean the same. Everything behind the bucket is the object's name,
// verbatim: a percent sign is a percent sign. One store serves every bucket that its identity reaches, so that files of one
// table in several buckets are read in one wave. A tag is the entity tag without its quotes; for most objects it is a checksum,
// so equal contents have equal tags.
//
// Making a store costs nothing: configuration files are read, and credentials asked for, at the first request. Requests are
// sent once; package retry repeats them.
package s3

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/limit"
	"github.com/skomerdb/skomer/internal/store/ranges"
)

const (
	// Gap is the coalescing gap in bytes: what one connection brings in about the time of one more round trip.
	Gap = 512 << 10
	// Concurrency is how many requests of a store are on their way at once, unless Options say otherwise.
	Concurrency = limit.Default

	partBytes = 64 << 20 // of a multipart upload, unless the object has too many of them
	maxParts  = 10_000
)

// Options say how to reach the buckets. The zero value is Amazon S3 with the credentials that its own tools would find.
type Options struct {
	Endpoint                     string    // URL; empty: Amazon's, or AWS_ENDPOINT_URL_S3
	Region                       string    // empty: from the environment or the profile, else us-east-1
	AccessKey, Secret, Session   string    // static credentials; an empty AccessKey: the usual chain
	Profile                      string    // of the shared configuration files
	RoleARN, RoleSession, RoleID string    // a role to assume with those credentials, the session's name, the external id
	Expires                      time.Time // of static credentials; zero: never, or unknown
	Anonymous                    bool      // do not sign requests
	PathStyle                    *bool     // bucket in the path, not in the host name; nil: if there is an endpoint of one's own

	// Renew gives credentials that last longer than those in use, in place of the above. It is asked before those end, and when the
	// server says that they have.
	Renew func(context.Context) (Keys, error)

	Concurrency int   // requests on their way at once; 0: 64
	PartBytes   int64 // objects of more bytes are uploaded in parts of so many; 0: 64 MiB
}

// Keys are credentials of AWS.
type Keys struct {
	AccessKey, Secret, Session string
	Expires                    time.Time // zero: never, or unknown
}

// Store is the buckets that one identity reaches.
type Store struct {
	options Options
	gate    *limit.Gate
	reader  *ranges.Reader

	once   sync.Once
	client *s3.Client
	keys   *aws.CredentialsCache // nil: requests are not signed
	err    error
}

var _ store.Store = (*Store)(nil)

// New makes a store. It neither reads files nor sends anything.
func New(o Options) *Store {
	if o.Concurrency == 0 {
		o.Concurrency = Concurrency
	}
	if o.PartBytes == 0 {
		o.PartBytes = partBytes
	}
	s := &Store{options: o, gate: limit.New(o.Concurrency)}
	s.reader = &ranges.Reader{Backend: getter{s}, Gate: s.gate, Gap: Gap, Check: func(key string) error {
		_, err := object(key)
		return err
	}}
	return s
}

// Crowded reports whether requests wait for others to be answered.
func (s *Store) Crowded() bool { return s.gate.Crowded() }

// Serves reports whether a location is one of S3's.
func Serves(location string) bool {
	scheme, _, ok := strings.Cut(location, "://")
	switch strings.ToLower(scheme) {
	case "s3", "s3a", "s3n":
		return ok
	}
	return false
}

// place is a key taken apart. base is everything before the name, as it was spelled.
type place struct{ base, bucket, name string }

func parse(key string) (place, error) {
	scheme, rest, _ := strings.Cut(key, "://")
	bucket, name, ok := strings.Cut(rest, "/")
	if !Serves(key) || bucket == "" || !ok {
		return place{}, fault.New(fault.Invalid, key, "no location of the form s3://bucket/name")
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
