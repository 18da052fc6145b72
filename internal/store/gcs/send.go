package gcs

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	service  = "https://storage.googleapis.com"
	maxReply = 16 << 20 // of a listing or an object's description
	maxError = 64 << 10
	fields   = "name,size,generation,timeCreated"
)

// call is one request.
type call struct {
	method string
	url    string
	header map[string]string
	body   io.ReadSeeker // may be nil
	size   int64         // of body
}

func (o *Options) endpoint() string {
	if o.Endpoint != "" {
		return strings.TrimRight(o.Endpoint, "/")
	}
	if host := os.Getenv("STORAGE_EMULATOR_HOST"); host != "" {
		if !strings.Contains(host, "://") {
			host = "http://" + host
		}
		return strings.TrimRight(host, "/")
	}
	return service
}

// url of an object, or of all objects of a bucket if there is no name. root is "/storage/v1" or "/upload/storage/v1".
func (s *Store) url(root string, p place, withName bool, query url.Values) string {
	u := s.options.endpoint() + root + "/b/" + url.PathEscape(p.bucket) + "/o"
	if withName {
		u += "/" + url.PathEscape(p.name)
	}
	if s.options.Project != "" {
		query.Set("userProject", s.options.Project)
	}
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	return u
}

// send sends a call and gives any answer that is no error. A refused token is renewed once.
func (s *Store) send(ctx context.Context, key string, p place, a act, c call) (*http.Response, error) {
	for renewed := false; ; renewed = true {
		token, err := s.tokens.get(ctx)
		if err != nil {
			return nil, fault.About(key, err)
		}
		resp, err := s.once(ctx, token, c)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				resp.Body.Close()
			}
			return nil, fault.About(key, ctx.Err())
		case err != nil:
			return nil, unsent(key, err)
		case resp.StatusCode < 300 || resp.StatusCode == http.StatusPermanentRedirect:
			return resp, nil
		}
		refused := resp.StatusCode == http.StatusUnauthorized && !renewed && s.tokens.forget(token)
		err = answered(key, p, a, resp)
		resp.Body.Close()
		if !refused {
			return nil, err
		}
	}
}

func (s *Store) once(ctx context.Context, token string, c call) (*http.Response, error) {
	var body io.Reader
	if c.body != nil && c.size > 0 {
		if _, err := c.body.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		body = io.NopCloser(c.body)
	}
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = c.size
	req.Header.Set("User-Agent", "skomer")
	for name, value := range c.header {
		req.Header.Set(name, value)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return s.http.Do(req)
}

// described is an object as the API describes it.
type described struct {
	Name       string    `json:"name"`
	Size       string    `json:"size"`
	Generation string    `json:"generation"`
	Created    time.Time `json:"timeCreated"` // of this generation
}

// info is the object under a key. Times are whole seconds, as those of other stores.
func (d described) info(key string) store.Info {
	size, err := strconv.ParseInt(d.Size, 10, 64)
	if err != nil {
		return store.Info{Key: key, Err: fault.New(fault.Unclassified, key, "bad answer: size %q", d.Size).WithRetry()}
	}
	return store.Info{Key: key, Size: size, Tag: store.Tag(d.Generation), Modified: d.Created.UTC().Truncate(time.Second)}
}

// ask sends a call and decodes the JSON of its answer.
func (s *Store) ask(ctx context.Context, key string, p place, a act, c call, into any) error {
	resp, err := s.send(ctx, key, p, a, c)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return decode(ctx, key, resp.Body, into)
}

func decode(ctx context.Context, key string, r io.Reader, into any) error {
	b, err := io.ReadAll(io.LimitReader(r, maxReply))
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil && ctx.Err() != nil {
		return fault.About(key, ctx.Err())
	}
	if err != nil {
		return fault.New(fault.Unclassified, key, "bad answer").WithCause(err).WithRetry()
	}
	return nil
}
