package s3

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/ranges"
)

// Fetch implements store.Store. An object that turns out to be shorter than a suffix, or empty, may cost more requests: servers
// differ in what they say then.
func (s *Store) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	return s.reader.Fetch(ctx, reads)
}

// getter is the store as ranges.Backend.
type getter struct{ *Store }

// Get implements ranges.Backend.
func (g getter) Get(ctx context.Context, key string, tag store.Tag, q store.Span) (*ranges.Answer, error) {
	client, err := g.connect()
	if err != nil {
		return nil, fault.About(key, err)
	}
	p, _ := object(key)
	in := &s3.GetObjectInput{Bucket: &p.bucket, Key: &p.name, IfMatch: header(tag)}
	if r := ranges.Header(q); r != "" {
		in.Range = &r
	}
	out, err := client.GetObject(ctx, in)
	if err != nil {
		var e *awshttp.ResponseError
		if errors.As(err, &e) && e.HTTPStatusCode() == http.StatusRequestedRangeNotSatisfiable {
			return nil, ranges.ErrOutside
		}
		return nil, g.classify(ctx, key, p, reading, err)
	}
	a := &ranges.Answer{Body: out.Body, Tag: tagOf(out.ETag), Len: -1}
	if out.ContentLength != nil {
		a.Len = *out.ContentLength
	}
	if a.Off, a.Size, err = ranges.Content(key, aws.ToString(out.ContentRange), a.Len); err != nil {
		out.Body.Close()
		return nil, err
	}
	return a, nil
}

// Head implements ranges.Backend.
func (g getter) Head(ctx context.Context, key string) (store.Info, error) {
	client, err := g.connect()
	if err != nil {
		return store.Info{}, fault.About(key, err)
	}
	p, _ := object(key)
	return g.stat(ctx, client, key, p)
}

// tagOf is an entity tag without its quotes, which not every server sends everywhere.
func tagOf(etag *string) store.Tag { return store.Tag(strings.Trim(aws.ToString(etag), `"`)) }

// header is a tag as If-Match wants it; nil: any.
func header(t store.Tag) *string {
	switch {
	case t == "":
		return nil
	case strings.HasPrefix(string(t), "W/"):
		return aws.String(string(t))
	}
	return aws.String(`"` + string(t) + `"`)
}
