// Package azure answers: which bytes are under this key of an Azure storage account, and may I put some there?
//
// A key is a whole location: abfss://container@account.dfs.core.windows.net/name, or az://container/name for the configured account.
// abfs, wasbs and wasb mean the same as abfss. Everything behind the container is the blob's name, verbatim. One store serves every
// account and container that its credentials reach. A tag is the blob's entity tag without its quotes; no other content ever has it.
//
// It speaks the blob protocol, to accounts with a hierarchical namespace, too: their folders are no objects. The protocol knows no
// suffixes, so that reading one of a blob of unknown size takes two round trips. Making a store costs nothing: credentials are looked
// for at the first request. Requests are sent once; package retry repeats them.
package azure

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/limit"
	"github.com/skomerdb/skomer/internal/store/ranges"
)

const (
	// Gap is the coalescing gap in bytes: what one connection brings in about the time of one more round trip.
	Gap = 512 << 10

	partBytes = 64 << 20 // of an upload in blocks, unless the blob has too many of them
	maxParts  = 50_000
	// headerTimeout is how long a server may think before it answers; the answer itself may take any time.
	headerTimeout = time.Minute
)

// Options say how to reach the accounts. The zero value is every account that the credentials reach which Azure's own tools find.
type Options struct {
	Account  string               // for locations that name none, and the owner of Key
	Key      string               // shared key of Account, in base64
	SAS      map[string]string    // shared access signatures by account; "": for every account
	Expires  map[string]time.Time // of those that do not say it themselves, by account
	Token    string               // an OAuth2 access token
	Tenant   string               // of an application, with ClientID and Secret
	ClientID string
	Secret   string
	// Endpoint is the URL of Account's blob service, or of every account's if there is no Account; empty: by the location.
	Endpoint  string
	Anonymous bool // send no credentials
	// Renew gives a shared access signature of an account and when it ends, in place of the above. It is asked before it ends.
	Renew func(ctx context.Context, account string) (sas string, expires time.Time, err error)

	Concurrency int   // requests on their way at once; 0: 64
	PartBytes   int64 // blobs of more bytes are uploaded in blocks of so many; 0: 64 MiB
}

// Store is the containers that some credentials reach.
type Store struct {
	options Options
	http    *http.Client
	gate    *limit.Gate
	reader  *ranges.Reader

	mu      sync.Mutex
	clients map[string]*container.Client // by URL
	login   azcore.TokenCredential
	grants  map[string]*grant // by account
}

var _ store.Store = (*Store)(nil)

// New makes a store. It neither reads files nor sends anything.
func New(o Options) *Store {
	if o.PartBytes == 0 {
		o.PartBytes = partBytes
	}
	s := &Store{
		options: o, http: newHTTP(o.Concurrency), gate: limit.New(o.Concurrency),
		clients: map[string]*container.Client{}, grants: map[string]*grant{},
	}
	s.reader = &ranges.Reader{Backend: getter{s}, Gate: s.gate, Gap: Gap, NoSuffix: true, Check: func(key string) error {
		_, err := s.object(key)
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
	t.DisableCompression = true // blobs stored compressed come as they are stored
	return &http.Client{Transport: t}
}

// Serves reports whether a location is one of Azure's.
func Serves(location string) bool {
	scheme, _, ok := strings.Cut(location, "://")
	switch strings.ToLower(scheme) {
	case "abfss", "abfs", "wasbs", "wasb", "az":
		return ok
	}
	return false
}

// Crowded reports whether requests wait for others to be answered.
func (s *Store) Crowded() bool { return s.gate.Crowded() }

// place is a key taken apart. base is everything before the name, as it was spelled.
type place struct{ base, account, host, container, name string }

// parse takes a key apart. host is empty if the location names no account.
func (s *Store) parse(key string) (place, error) {
	scheme, rest, _ := strings.Cut(key, "://")
	authority, name, ok := strings.Cut(rest, "/")
	p := place{base: scheme + "://" + authority + "/", name: name}
	p.container, p.host, _ = strings.Cut(authority, "@")
	if !Serves(key) || p.container == "" || !ok {
		return place{}, fault.New(fault.Invalid, key, "no location of the form abfss://container@account.dfs.core.windows.net/name")
	}
	if p.account, _, _ = strings.Cut(p.host, "."); p.host == "" {
		p.account = s.options.Account
	}
	if p.account == "" {
		return place{}, fault.New(fault.Invalid, key, "it names no storage account").
			WithFix("write abfss://%s@ACCOUNT.dfs.core.windows.net/…, or set adls.account-name", p.container)
	}
	return p, nil
}

// object parses the key of an object.
func (s *Store) object(key string) (place, error) {
	p, err := s.parse(key)
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
