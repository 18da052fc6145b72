package gcs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/upload"
)

// resumes is how often a part that broke off is continued where the server says it stands.
const resumes = 3

func itoa(n int) string { return strconv.Itoa(n) }

// PutNew implements store.Store. Objects of more than PartBytes are uploaded in parts, one after another, and appear at the end.
func (s *Store) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return "", fault.About(key, err)
	}
	return s.put(ctx, key, "0", writing, upload.NewWhole(upload.Source{ReadSeeker: r}, size), size)
}

// PutIf implements store.Store.
func (s *Store) PutIf(ctx context.Context, key string, old store.Tag, b []byte) (store.Tag, error) {
	when, a := "0", writing
	if old != "" {
		when, a = condition(old), renewing
	}
	return s.put(ctx, key, when, a, bytes.NewReader(b), int64(len(b)))
}

// put writes an object if its generation is when.
func (s *Store) put(ctx context.Context, key, when string, a act, body io.ReadSeeker, size int64) (_ store.Tag, err error) {
	p, err := object(key)
	if err != nil {
		return "", err
	}
	pass, err := s.enter(ctx, key)
	if err != nil {
		return "", err
	}
	defer func() { pass.Leave(err) }()
	query := url.Values{"name": {p.name}, "ifGenerationMatch": {when}, "fields": {fields}}
	var d described
	if size > s.options.PartBytes {
		d, err = s.parts(ctx, key, p, a, query, body, size)
	} else {
		query.Set("uploadType", "media")
		c := call{
			method: http.MethodPost, url: s.url("/upload/storage/v1", p, false, query), body: body, size: size,
			header: map[string]string{"Content-Type": "application/octet-stream"},
		}
		store.Count(ctx, store.Usage{Puts: 1, BytesWritten: size})
		err = s.ask(ctx, key, p, a, c, &d)
	}
	if err == nil && (d.Generation == "" || d.Size != strconv.FormatInt(size, 10)) {
		err = fault.New(fault.Unclassified, key, "bad answer: generation %q of %q bytes, %d were sent", d.Generation, d.Size, size).WithRetry()
	}
	return store.Tag(d.Generation), err
}

// session is a resumable upload (https://cloud.google.com/storage/docs/resumable-uploads). What is not finished costs nothing and is
// removed after a week.
type session struct {
	store *Store
	key   string
	place place
	act   act
	url   string
	body  io.ReadSeeker
	size  int64
}

func (s *Store) parts(ctx context.Context, key string, p place, a act, query url.Values, body io.ReadSeeker, size int64) (described, error) {
	query.Set("uploadType", "resumable")
	store.Count(ctx, store.Usage{Puts: 1})
	resp, err := s.send(ctx, key, p, a, call{
		method: http.MethodPost, url: s.url("/upload/storage/v1", p, false, query),
		header: map[string]string{"X-Upload-Content-Type": "application/octet-stream", "X-Upload-Content-Length": strconv.FormatInt(size, 10)},
	})
	if err != nil {
		return described{}, err
	}
	resp.Body.Close()
	u := &session{store: s, key: key, place: p, act: a, url: resp.Header.Get("Location"), body: body, size: size}
	broken := 0
	for off := int64(0); ; {
		n := min(s.options.PartBytes, size-off)
		d, next, err := u.send(ctx, off, n)
		if err != nil && fault.Retryable(err) && !fault.Is(err, fault.Conflict) && broken < resumes {
			broken++
			d, next, err = u.send(ctx, 0, -1)
		}
		if err != nil || d != nil {
			return deref(d), err
		}
		off = next
	}
}

func deref(d *described) described {
	if d == nil {
		return described{}
	}
	return *d
}

// send sends n bytes from off on; a negative n only asks where the upload stands. It gives the finished object, or where to go on.
func (u *session) send(ctx context.Context, off, n int64) (d *described, next int64, err error) {
	c := call{method: http.MethodPut, url: u.url, header: map[string]string{"Content-Range": fmt.Sprintf("bytes */%d", u.size)}}
	if n >= 0 {
		c.header["Content-Range"] = fmt.Sprintf("bytes %d-%d/%d", off, off+n-1, u.size)
		c.body, c.size = upload.NewWindow(u.body, off, n), n
	}
	store.Count(ctx, store.Usage{Puts: 1, BytesWritten: max(n, 0)})
	resp, err := u.store.send(ctx, u.key, u.place, u.act, c)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusPermanentRedirect {
		d = &described{}
		return d, 0, decode(ctx, u.key, resp.Body, d)
	}
	_, last, ok := strings.Cut(resp.Header.Get("Range"), "-")
	if !ok {
		return nil, 0, nil // nothing was kept
	}
	end, err := strconv.ParseInt(last, 10, 64)
	if err != nil || end < 0 || end >= u.size {
		return nil, 0, fault.New(fault.Unclassified, u.key, "bad answer: Range %q", resp.Header.Get("Range")).WithRetry()
	}
	return nil, end + 1, nil
}
