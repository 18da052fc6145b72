package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
)

const (
	maxReply    = 512 << 20 // bytes of a loadTable reply, which holds the whole metadata
	maxError    = 64 << 10
	maxPages    = 1000
	attempts    = 3
	firstPause  = 200 * time.Millisecond
	httpTimeout = 60 * time.Second
)

// newHTTP is a client that never follows a redirect to another host: custom headers may hold secrets.
func newHTTP() *http.Client {
	return &http.Client{
		Timeout: httpTimeout,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme || len(via) > 5 {
				return errors.New("redirect to another host refused")
			}
			return nil
		},
	}
}

// rest is a client of the Iceberg REST catalog protocol: config, loadTable and listTables.
type rest struct {
	name string
	http *http.Client

	mu         sync.Mutex
	properties Properties // merged with the server's on first use
	configured bool
	auth       oauth
	signers    signers
}

func newREST(name string, p Properties, h *http.Client) *rest {
	return &rest{name: name, http: h, properties: p}
}

// configure merges the server's configuration: its defaults under ours, its overrides over them.
func (r *rest) configure(ctx context.Context) (Properties, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.configured {
		return r.properties, nil
	}
	path := "/v1/config"
	if w := r.properties["warehouse"]; w != "" {
		path += "?warehouse=" + url.QueryEscape(w)
	}
	var reply struct{ Defaults, Overrides map[string]any }
	if err := r.get(ctx, r.properties, path, &reply); err != nil {
		return nil, err
	}
	merged := Properties{}
	flatten(merged, "", reply.Defaults)
	for k, v := range r.properties {
		merged[k] = v
	}
	flatten(merged, "", reply.Overrides)
	r.properties, r.configured = merged, true
	return merged, nil
}

func (r *rest) find(ctx context.Context, id Identifier) (*lake.Found, error) {
	p, err := r.configure(ctx)
	if err != nil {
		return nil, err
	}
	var reply map[string]json.RawMessage
	path := r.path(p, id.Namespace) + "/tables/" + url.PathEscape(id.Table)
	if err := r.get(ctx, p, path, &reply); err != nil {
		return nil, fault.About(r.name+"."+id.String(), err)
	}
	subject := r.name + "." + id.String()
	if err := allowed(subject, p, reply); err != nil {
		return nil, err
	}
	found := &lake.Found{Metadata: reply["metadata"]}
	if found.Access, err = access(subject, reply); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(orNull(reply["metadata-location"]), &found.Location); err != nil || found.Location == "" || len(found.Metadata) == 0 {
		return nil, fault.New(fault.Corrupt, subject, "the catalog's reply has no metadata or no place of it")
	}
	return found, nil
}

func (r *rest) tables(ctx context.Context, namespace []string) ([]string, error) {
	p, err := r.configure(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	token := ""
	for range maxPages {
		var reply struct {
			Identifiers []struct {
				Name string `json:"name"`
			} `json:"identifiers"`
			Next string `json:"next-page-token"`
		}
		path := r.path(p, namespace) + "/tables"
		if token != "" {
			path += "?pageToken=" + url.QueryEscape(token)
		}
		if err := r.get(ctx, p, path, &reply); err != nil {
			return nil, err
		}
		for _, id := range reply.Identifiers {
			names = append(names, id.Name)
		}
		if token = reply.Next; token == "" {
			break
		}
	}
	return names, nil
}

// path is the path of a namespace. Levels are joined by the unit separator, as the protocol says.
func (r *rest) path(p Properties, namespace []string) string {
	path := "/v1/"
	if prefix := strings.Trim(p["prefix"], "/"); prefix != "" {
		path += prefix + "/"
	}
	return path + "namespaces/" + url.PathEscape(strings.Join(namespace, "\x1f"))
}

// get fetches and decodes one reply, with a new token after a 401 and again after trouble that may pass.
func (r *rest) get(ctx context.Context, p Properties, path string, into any) error {
	target := strings.TrimRight(p["uri"], "/") + path
	renewed := false
	var err error
	for try := range attempts {
		if try > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(firstPause << (try - 1)):
			}
		}
		var status int
		status, err = r.once(ctx, p, target, into)
		if status == http.StatusUnauthorized && !renewed && r.auth.forget() {
			renewed = true
			_, err = r.once(ctx, p, target, into)
		}
		if err == nil || !fault.Retryable(err) {
			return err
		}
	}
	return err
}

func (r *rest) once(ctx context.Context, p Properties, target string, into any) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return 0, fault.New(fault.Invalid, "catalog "+r.name, "bad uri").WithCause(err)
	}
	if err := r.headers(ctx, p, req); err != nil {
		return 0, err
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return 0, fault.New(fault.Unreachable, "catalog "+r.name, "it cannot be reached").WithCause(err).WithRetry().
			WithFix("check its uri, the network and the proxy")
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, statusFault("catalog "+r.name, resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return 0, fault.New(fault.Unreachable, "catalog "+r.name, "its reply broke off").WithCause(err).WithRetry()
	case len(b) > maxReply:
		return 0, fault.New(fault.Exhausted, "catalog "+r.name, "its reply is larger than %d bytes", maxReply)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return 0, fault.New(fault.Corrupt, "catalog "+r.name, "its reply to %s is no JSON of the protocol", req.URL.Path).WithCause(err)
	}
	return resp.StatusCode, nil
}

func (r *rest) headers(ctx context.Context, p Properties, req *http.Request) error {
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "skomer")
	req.Header.Set("X-Iceberg-Access-Delegation", "vended-credentials")
	for key, value := range p {
		if name, ok := strings.CutPrefix(key, "header."); ok {
			req.Header.Set(name, value)
		}
	}
	token, err := r.auth.token(ctx, r.name, p, r.http)
	if err == nil && token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if err == nil && strings.EqualFold(p["rest.sigv4-enabled"], "true") {
		err = r.sign(ctx, p, req)
	}
	return err
}

// statusFault turns an error reply into a fault with the server's own words.
func statusFault(subject string, resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
	var reply struct {
		Error            any    `json:"error"`
		ErrorDescription string `json:"error_description"`
	}
	words := ""
	if json.Unmarshal(b, &reply) == nil {
		switch e := reply.Error.(type) {
		case map[string]any:
			words, _ = e["message"].(string)
		case string:
			words = strings.TrimSpace(e + " " + reply.ErrorDescription)
		}
	}
	class, retry := fault.Unclassified, false
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound:
		class = fault.NotFound
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == 419:
		class = fault.Denied
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		class, retry = fault.Exhausted, true
	case code >= 500:
		retry = true
	case code == http.StatusNotAcceptable:
		class = fault.Refused
	}
	e := fault.New(class, subject, "%s", strings.TrimSpace(resp.Status+" "+words))
	if retry {
		return e.WithRetry()
	}
	if class == fault.Denied {
		return e.WithFix("check the catalog's token or credential")
	}
	return e
}

func orNull(b json.RawMessage) []byte {
	if len(bytes.TrimSpace(b)) == 0 {
		return []byte("null")
	}
	return b
}
