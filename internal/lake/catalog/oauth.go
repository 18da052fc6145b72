package catalog

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
)

// early is how long before its end a token is renewed.
const early = 30 * time.Second

// oauth holds the bearer token of a catalog: the configured one, or one from the OAuth2 client-credentials grant
// (RFC 6749, section 4.4).
type oauth struct {
	mu     sync.Mutex
	value  string
	expiry time.Time // zero: unknown
}

// token is the bearer token to send; "" for a catalog without authentication.
func (o *oauth) token(ctx context.Context, name string, p Properties, h *http.Client) (string, error) {
	if p["credential"] == "" {
		return p["token"], nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.value != "" && (o.expiry.IsZero() || time.Now().Before(o.expiry.Add(-early))) {
		return o.value, nil
	}
	var reply struct {
		Token   string `json:"access_token"`
		Expires int64  `json:"expires_in"`
	}
	if err := o.exchange(ctx, name, p, h, &reply); err != nil {
		return "", err
	}
	o.value, o.expiry = reply.Token, time.Time{}
	if reply.Expires > 0 {
		o.expiry = time.Now().Add(time.Duration(min(reply.Expires, 1<<31)) * time.Second)
	}
	return o.value, nil
}

// forget drops a token that the server refused and reports whether another can be had.
func (o *oauth) forget() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	had := o.value != ""
	o.value = ""
	return had
}

func (o *oauth) exchange(ctx context.Context, name string, p Properties, h *http.Client, into any) error {
	target := p["oauth2-server-uri"]
	if target == "" {
		target = strings.TrimRight(p["uri"], "/") + "/v1/oauth/tokens"
	}
	id, secret, both := strings.Cut(p["credential"], ":")
	if !both {
		id, secret = "", p["credential"]
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_secret": {secret}, "scope": {"catalog"}}
	if id != "" {
		form.Set("client_id", id)
	}
	for _, key := range []string{"scope", "audience", "resource"} {
		if p[key] != "" {
			form.Set(key, p[key])
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(form.Encode()))
	if err != nil {
		return fault.New(fault.Invalid, "catalog "+name, "bad oauth2-server-uri").WithCause(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := h.Do(req)
	if err != nil {
		return fault.New(fault.Unreachable, "catalog "+name, "its token server cannot be reached").WithCause(err).WithRetry().
			WithFix("check oauth2-server-uri, the network and the proxy")
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		err := statusFault("catalog "+name, resp)
		if fault.Retryable(err) {
			return err
		}
		return fault.New(fault.Denied, "", "no token for the credential").WithCause(err).WithFix("check the catalog's credential and scope")
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxError))
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return fault.New(fault.Corrupt, "catalog "+name, "bad reply of its token server").WithCause(err)
	}
	return nil
}
