package gcs

import (
	"context"
	"os"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	// scope is what tokens are asked for; what they may do is up to the identity's roles.
	scope = "https://www.googleapis.com/auth/cloud-platform"
	// early is how long before its end a token is renewed.
	early = time.Minute

	howTo = "run gcloud auth application-default login, set GOOGLE_APPLICATION_CREDENTIALS, or gcs.keypath or gcs.oauth2.token of the catalog; gcs.no-auth reads public buckets"
)

// tokens holds the access token of a store and gets another before it ends.
type tokens struct {
	options *Options

	mu     sync.Mutex
	source oauth2.TokenSource // of the usual chain or a key file; found once
	name   string
	token  *oauth2.Token
}

// get is the token to send; "" if none is sent.
func (t *tokens) get(ctx context.Context) (string, error) {
	o := t.options
	if o.anonymous() {
		return "", nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != nil && (t.token.Expiry.IsZero() || time.Until(t.token.Expiry) > early) {
		return t.token.AccessToken, nil
	}
	next, err := t.next(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", err
	}
	t.token = next
	return next.AccessToken, nil
}

func (t *tokens) next(ctx context.Context) (*oauth2.Token, error) {
	o := t.options
	switch {
	case o.Renew != nil:
		token, expires, err := o.Renew(ctx)
		if err != nil {
			return nil, fault.New(fault.Denied, "credentials", "they could not be renewed").WithCause(err)
		}
		return &oauth2.Token{AccessToken: token, Expiry: expires}, nil
	case o.Token != "":
		if !o.Expires.IsZero() && time.Now().After(o.Expires) {
			return nil, fault.New(fault.Denied, "gcs.oauth2.token", "it has expired").WithFix("get another token")
		}
		return &oauth2.Token{AccessToken: o.Token}, nil
	}
	if err := t.find(); err != nil {
		return nil, err
	}
	token, err := t.source.Token()
	if err != nil {
		return nil, fault.New(fault.Denied, "credentials", "no token for them").WithCause(err).WithFix(howTo)
	}
	return token, nil
}

// find finds the source of tokens. It must outlive the request that needs the first of them.
func (t *tokens) find() error {
	if t.source != nil {
		return nil
	}
	text := []byte(t.options.KeyJSON)
	if t.options.KeyFile != "" {
		b, err := os.ReadFile(t.options.KeyFile)
		if err != nil {
			return fault.New(fault.Invalid, "gcs.keypath", "the file cannot be read").WithCause(err)
		}
		text = b
	}
	ctx := context.Background()
	var found *google.Credentials
	var err error
	if len(text) > 0 {
		t.name = "key file"
		found, err = google.CredentialsFromJSON(ctx, text, scope) //nolint:staticcheck // the configuration is trusted: it says whom to ask, too
	} else {
		t.name = "application default credentials"
		found, err = google.FindDefaultCredentials(ctx, scope)
	}
	if err != nil {
		return fault.New(fault.Denied, "credentials", "none could be found").WithCause(err).WithFix(howTo)
	}
	t.source = found.TokenSource
	return nil
}

// forget drops a token that the server refused and reports whether another can be had.
func (t *tokens) forget(token string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != nil && t.token.AccessToken == token {
		t.token = nil
	}
	return token != "" && (t.options.Renew != nil || t.options.Token == "")
}

func (o *Options) anonymous() bool {
	return o.Anonymous || o.Token == "" && o.Renew == nil && o.KeyFile == "" && o.KeyJSON == "" && o.emulated()
}

// emulated: the environment names a server for tests, as Google's own clients read it.
func (o *Options) emulated() bool {
	return o.Endpoint == "" && os.Getenv("STORAGE_EMULATOR_HOST") != ""
}

// Identity implements store.Identified.
func (s *Store) Identity(ctx context.Context) (store.Identity, error) {
	if s.options.anonymous() {
		return store.Identity{Source: "anonymous"}, nil
	}
	if _, err := s.tokens.get(ctx); err != nil {
		return store.Identity{}, err
	}
	s.tokens.mu.Lock()
	defer s.tokens.mu.Unlock()
	id := store.Identity{Source: s.tokens.name}
	if s.tokens.token != nil {
		id.Expires = s.tokens.token.Expiry
	}
	switch {
	case s.options.Renew != nil:
		id.Source = "handed out by the catalog"
	case s.options.Token != "":
		id.Source, id.Expires = "gcs.oauth2.token", s.options.Expires
	}
	return id, nil
}
