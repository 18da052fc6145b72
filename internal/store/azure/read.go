package azure

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/ranges"
)

// Fetch implements store.Store. A suffix of a blob whose size was not seen under the tag that is asked for costs one more round trip.
func (s *Store) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	return s.reader.Fetch(ctx, reads)
}

// tagOf is an entity tag without its quotes.
func tagOf(etag *azcore.ETag) store.Tag {
	if etag == nil {
		return ""
	}
	return store.Tag(strings.Trim(string(*etag), `"`))
}

// match is the condition that a blob has a tag; nil: any.
func match(t store.Tag) *blob.AccessConditions {
	if t == "" {
		return nil
	}
	etag := azcore.ETag(`"` + string(t) + `"`)
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &etag}}
}

// getter is the store as ranges.Backend.
type getter struct{ *Store }

// Get implements ranges.Backend.
func (g getter) Get(ctx context.Context, key string, tag store.Tag, q store.Span) (*ranges.Answer, error) {
	p, _ := g.object(key)
	client, err := g.client(p)
	if err != nil {
		return nil, fault.About(key, err)
	}
	o := &blob.DownloadStreamOptions{AccessConditions: match(tag)}
	if q.Off > 0 || q.Len != store.ToEnd {
		o.Range = blob.HTTPRange{Offset: q.Off, Count: q.Len}
	}
	out, err := client.NewBlobClient(p.name).DownloadStream(ctx, o)
	if err != nil {
		var e *azcore.ResponseError
		if errors.As(err, &e) && e.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			return nil, ranges.ErrOutside
		}
		return nil, classify(ctx, key, p, reading, err)
	}
	a := &ranges.Answer{Body: out.Body, Tag: tagOf(out.ETag), Len: -1}
	if out.ContentLength != nil {
		a.Len = *out.ContentLength
	}
	contentRange := ""
	if out.ContentRange != nil {
		contentRange = *out.ContentRange
	}
	if a.Off, a.Size, err = ranges.Content(key, contentRange, a.Len); err != nil {
		out.Body.Close()
		return nil, err
	}
	return a, nil
}

// Head implements ranges.Backend. A folder of a hierarchical namespace is no object.
func (g getter) Head(ctx context.Context, key string) (store.Info, error) {
	p, err := g.object(key)
	if err != nil {
		return store.Info{}, err
	}
	client, err := g.client(p)
	if err != nil {
		return store.Info{}, fault.About(key, err)
	}
	out, err := client.NewBlobClient(p.name).GetProperties(ctx, nil)
	if err != nil {
		return store.Info{}, classify(ctx, key, p, reading, err)
	}
	if folder(out.Metadata) {
		return store.Info{}, fault.New(fault.NotFound, key, "this is a folder")
	}
	return info(key, out.ContentLength, out.ETag, out.LastModified), nil
}

// folder tells a folder of a hierarchical namespace by its metadata.
func folder(metadata map[string]*string) bool {
	for name, value := range metadata {
		if strings.EqualFold(name, "hdi_isfolder") && value != nil && strings.EqualFold(*value, "true") {
			return true
		}
	}
	return false
}

// info describes an object. Times are whole seconds.
func info(key string, size *int64, etag *azcore.ETag, modified *time.Time) store.Info {
	i := store.Info{Key: key, Tag: tagOf(etag)}
	if size != nil {
		i.Size = *size
	}
	if modified != nil {
		i.Modified = modified.UTC().Truncate(time.Second)
	}
	return i
}

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, keys []string) []store.Info {
	return s.reader.Stat(ctx, keys)
}
