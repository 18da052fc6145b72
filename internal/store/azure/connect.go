package azure

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	audience = "https://storage.azure.com/.default"
	// early is how long before its end a signature is renewed.
	early = time.Minute

	howTo = "run az login, set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or adls.account-key, adls.sas-token or adls.connection-string of the catalog; adls.anonymous reads public containers"
)

// service is the URL of an account's blob service.
func (s *Store) service(p place) string {
	o := s.options
	if o.Endpoint != "" && (o.Account == "" || o.Account == p.account) {
		return strings.TrimRight(o.Endpoint, "/")
	}
	host := p.host
	if host == "" {
		host = p.account + ".blob.core.windows.net"
	}
	return "https://" + strings.Replace(host, ".dfs.", ".blob.", 1)
}

// client is the client of a container, made at its first use. It sends nothing.
func (s *Store) client(p place) (*container.Client, error) {
	at := s.service(p) + "/" + p.container
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients[at]; c != nil {
		return c, nil
	}
	c, err := s.connect(at, p.account)
	if err == nil {
		s.clients[at] = c
	}
	return c, err
}

func (s *Store) connect(at, account string) (*container.Client, error) {
	o := s.options
	co := &container.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: s.http, Retry: policy.RetryOptions{MaxRetries: -1}, Telemetry: policy.TelemetryOptions{ApplicationID: "skomer"},
		PerCallPolicies: []policy.Policy{startFrom{}},
	}}
	switch {
	case o.Renew != nil || o.sas(account) != "":
		s.grants[account] = &grant{store: s, account: account}
		co.PerCallPolicies = append(co.PerCallPolicies, s.grants[account])
		return container.NewClientWithNoCredential(at, co)
	case o.Key != "" && o.Account == account:
		cred, err := container.NewSharedKeyCredential(o.Account, o.Key)
		if err != nil {
			return nil, fault.New(fault.Invalid, "adls.account-key", "it is no key in base64")
		}
		return container.NewClientWithSharedKeyCredential(at, cred, co)
	case o.Anonymous:
		return container.NewClientWithNoCredential(at, co)
	}
	if s.login == nil {
		var err error
		if s.login, err = o.login(s.http); err != nil {
			return nil, fault.New(fault.Denied, "credentials", "none could be found").WithCause(err).WithFix(howTo)
		}
	}
	return container.NewClient(at, s.login, co)
}

// login is how tokens are got.
func (o Options) login(h *http.Client) (azcore.TokenCredential, error) {
	transport := policy.ClientOptions{Transport: h}
	switch {
	case o.Token != "":
		return fixed(o.Token), nil
	case o.Secret != "":
		return azidentity.NewClientSecretCredential(o.Tenant, o.ClientID, o.Secret, &azidentity.ClientSecretCredentialOptions{ClientOptions: transport})
	}
	return azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{TenantID: o.Tenant})
}

// fixed is a token that was given.
type fixed string

// GetToken implements azcore.TokenCredential.
func (f fixed) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(f), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// sas is the configured signature of an account.
func (o Options) sas(account string) string {
	if t := o.SAS[account]; t != "" {
		return t
	}
	return o.SAS[""]
}

// grant signs requests to an account with its shared access signature, and gets another before it ends.
type grant struct {
	store   *Store
	account string

	mu      sync.Mutex
	sas     string
	expires time.Time // zero: unknown
}

// Do implements policy.Policy. A signature that is refused is renewed once.
func (g *grant) Do(req *policy.Request) (*http.Response, error) {
	sas, _, err := g.get(req.Raw().Context())
	if err != nil {
		return nil, err
	}
	resp, err := signed(req, sas)
	if err != nil || resp.StatusCode != http.StatusForbidden || g.store.options.Renew == nil {
		return resp, err
	}
	g.forget(sas)
	again, _, err := g.get(req.Raw().Context())
	if err != nil || again == sas {
		return resp, err
	}
	resp.Body.Close()
	if err := req.RewindBody(); err != nil {
		return nil, err
	}
	return signed(req, again)
}

// signed sends a request with a signature.
func signed(req *policy.Request, sas string) (*http.Response, error) {
	one := req.Clone(req.Raw().Context())
	u := one.Raw().URL
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += sas
	return one.Next()
}

func (g *grant) get(ctx context.Context) (sas string, expires time.Time, err error) {
	o := g.store.options
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.sas != "" && (o.Renew == nil || g.expires.IsZero() || time.Until(g.expires) > early):
	case o.Renew == nil:
		g.sas = strings.TrimPrefix(o.sas(g.account), "?")
		g.expires = o.ends(g.account, g.sas)
	default:
		if g.sas, g.expires, err = o.Renew(ctx, g.account); err != nil {
			return "", g.expires, fault.New(fault.Denied, "credentials", "they could not be renewed").WithCause(err)
		}
		g.sas = strings.TrimPrefix(g.sas, "?")
		if g.expires.IsZero() {
			g.expires = o.ends(g.account, g.sas)
		}
	}
	return g.sas, g.expires, nil
}

// forget drops a signature that the server refused, so that the next request asks for another.
func (g *grant) forget(sas string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sas == sas {
		g.sas = ""
	}
}

// ends is when a signature ends, by the options or its own words; zero: unknown.
func (o Options) ends(account, sas string) time.Time {
	if t, ok := o.Expires[account]; ok {
		return t
	}
	q, err := url.ParseQuery(sas)
	if err != nil {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z", time.DateOnly} {
		if t, err := time.Parse(layout, q.Get("se")); err == nil {
			return t
		}
	}
	return time.Time{}
}

// startFrom adds the name at which a listing starts, which the client's own pager of flat listings loses.
type startFrom struct{}

type startKey struct{}

// Do implements policy.Policy.
func (startFrom) Do(req *policy.Request) (*http.Response, error) {
	if at, _ := req.Raw().Context().Value(startKey{}).(string); at != "" {
		u := req.Raw().URL
		q := u.Query()
		q.Set("startFrom", at)
		u.RawQuery = q.Encode()
	}
	return req.Next()
}

// Identity implements store.Identified, for the configured account or, with tokens and signatures, for all.
func (s *Store) Identity(ctx context.Context) (store.Identity, error) {
	o := s.options
	switch {
	case o.Renew != nil:
		id := store.Identity{Source: "handed out by the catalog"}
		s.mu.Lock()
		defer s.mu.Unlock()
		for account, g := range s.grants {
			sas, expires, err := g.get(ctx)
			if err != nil || sas == "" {
				return id, err
			}
			id.Name, id.Expires = account, expires
		}
		return id, nil
	case len(o.SAS) > 0:
		return store.Identity{Name: o.Account, Source: "adls.sas-token", Expires: o.ends(o.Account, strings.TrimPrefix(o.sas(o.Account), "?"))}, nil
	case o.Key != "":
		return store.Identity{Name: o.Account, Source: "shared key"}, nil
	case o.Anonymous:
		return store.Identity{Source: "anonymous"}, nil
	}
	login, err := o.login(s.http)
	var token azcore.AccessToken
	if err == nil {
		token, err = login.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{audience}})
	}
	if err != nil {
		return store.Identity{}, fault.New(fault.Denied, "credentials", "none could be found").WithCause(err).WithFix(howTo)
	}
	id := store.Identity{Name: o.ClientID, Source: "Azure credentials", Expires: token.ExpiresOn}
	if o.Token != "" {
		id = store.Identity{Source: "adls.token"}
	}
	return id, nil
}
