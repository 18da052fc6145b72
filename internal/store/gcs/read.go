package gcs

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/ranges"
)

// pageMost is how many objects one request lists at most.
const pageMost = 1000

// Fetch implements store.Store. A suffix of an empty object costs one more request.
func (s *Store) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	return s.reader.Fetch(ctx, reads)
}

// condition is a tag as the API wants it. Generations are numbers; what is none is met by no object, as is generation 1.
func condition(t store.Tag) string {
	if t == "" || strings.Trim(string(t), "0123456789") != "" {
		return "1"
	}
	return string(t)
}

// getter is the store as ranges.Backend.
type getter struct{ *Store }

// Get implements ranges.Backend.
func (g getter) Get(ctx context.Context, key string, tag store.Tag, q store.Span) (*ranges.Answer, error) {
	p, _ := object(key)
	query := url.Values{"alt": {"media"}}
	if tag != "" {
		query.Set("ifGenerationMatch", condition(tag))
	}
	c := call{
		method: http.MethodGet, url: g.url("/storage/v1", p, true, query),
		header: map[string]string{"Accept-Encoding": "gzip"}, // objects stored compressed come as they are stored
	}
	if r := ranges.Header(q); r != "" {
		c.header["Range"] = r
	}
	resp, err := g.send(ctx, key, p, ranging, c)
	if err != nil {
		return nil, err
	}
	a := &ranges.Answer{Body: resp.Body, Len: resp.ContentLength, Tag: store.Tag(resp.Header.Get("X-Goog-Generation"))}
	if a.Off, a.Size, err = ranges.Content(key, resp.Header.Get("Content-Range"), a.Len); err == nil && a.Tag == "" {
		err = fault.New(fault.Unsupported, key, "the server does not say the object's generation")
	}
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	return a, nil
}

// Head implements ranges.Backend.
func (g getter) Head(ctx context.Context, key string) (store.Info, error) {
	p, err := object(key)
	if err != nil {
		return store.Info{}, err
	}
	var d described
	c := call{method: http.MethodGet, url: g.url("/storage/v1", p, true, url.Values{"fields": {fields}})}
	if err := g.ask(ctx, key, p, reading, c, &d); err != nil {
		return store.Info{}, err
	}
	info := d.info(key)
	return info, info.Err
}

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, keys []string) []store.Info {
	return s.reader.Stat(ctx, keys)
}

// List implements store.Store. prefix holds at least the bucket and the slash behind it.
func (s *Store) List(ctx context.Context, prefix, after string, most int) ([]store.Info, error) {
	if ctx.Err() != nil {
		return nil, fault.About(prefix, ctx.Err())
	}
	p, err := parse(prefix)
	if err != nil {
		return nil, err
	}
	start, within := strings.CutPrefix(after, p.base)
	if !within && after > p.base {
		return nil, nil
	}
	var out []store.Info
	for token := ""; len(out) < most; {
		page, next, err := s.page(ctx, prefix, p, start, token, most-len(out))
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			if start != "" && d.Name <= start {
				continue // the API starts at the name itself
			}
			info := d.info(p.base + d.Name)
			if info.Err != nil {
				return nil, info.Err
			}
			if n := len(out); n > 0 && out[n-1].Key >= info.Key {
				return nil, fault.New(fault.Unsupported, prefix, "the server lists objects out of order: %q behind %q", info.Key, out[n-1].Key)
			}
			if len(out) < most {
				out = append(out, info)
			}
		}
		if token = next; token == "" {
			break
		}
	}
	return out, nil
}

// page lists up to most objects from start on, and perhaps that at start.
func (s *Store) page(ctx context.Context, prefix string, p place, start, token string, most int) (_ []described, next string, err error) {
	pass, err := s.enter(ctx, prefix)
	if err != nil {
		return nil, "", err
	}
	defer func() { pass.Leave(err) }()
	query := url.Values{"fields": {"nextPageToken,items(" + fields + ")"}, "maxResults": {itoa(min(most+1, pageMost))}}
	if p.name != "" {
		query.Set("prefix", p.name)
	}
	if start != "" {
		query.Set("startOffset", validPrefix(start))
	}
	if token != "" {
		query.Set("pageToken", token)
	}
	store.Count(ctx, store.Usage{Lists: 1})
	var reply struct {
		Items []described `json:"items"`
		Next  string      `json:"nextPageToken"`
	}
	err = s.ask(ctx, prefix, p, listing, call{method: http.MethodGet, url: s.url("/storage/v1", p, false, query)}, &reply)
	return reply.Items, reply.Next, err
}

// validPrefix is the part of a name before its first byte that is no UTF-8, which names of objects are.
func validPrefix(name string) string {
	for i, r := range name {
		if r == utf8.RuneError {
			return name[:i]
		}
	}
	return name
}

// Delete implements store.Store. The API deletes one object by one request.
func (s *Store) Delete(ctx context.Context, keys []string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, key := range keys {
		if _, err := object(key); err != nil {
			return err
		}
	}
	return s.gate.Each(ctx, keys, func(key string) error { return s.remove(ctx, key) })
}

func (s *Store) remove(ctx context.Context, key string) error {
	p, _ := object(key)
	store.Count(ctx, store.Usage{Deletes: 1})
	resp, err := s.send(ctx, key, p, deleting, call{method: http.MethodDelete, url: s.url("/storage/v1", p, true, url.Values{})})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err == nil {
		resp.Body.Close()
	}
	return err
}
