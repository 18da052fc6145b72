package azure

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	// pageMost is how many blobs one request lists at most.
	pageMost = 5000
	// sortMost is how many blobs of a hierarchical namespace, which lists folder by folder, are sorted to be listed.
	sortMost = 1_000_000
)

// List implements store.Store. prefix holds at least the container and the slash behind it. Accounts with a hierarchical namespace
// list folder by folder, and the folders, too; where there are some, all that has the prefix is read and sorted.
func (s *Store) List(ctx context.Context, prefix, after string, most int) ([]store.Info, error) {
	if ctx.Err() != nil {
		return nil, fault.About(prefix, ctx.Err())
	}
	p, err := s.parse(prefix)
	if err != nil {
		return nil, err
	}
	start, within := strings.CutPrefix(after, p.base)
	if most <= 0 || !within && after > p.base {
		return nil, nil
	}
	client, err := s.client(p)
	if err != nil {
		return nil, fault.About(prefix, err)
	}
	l := &lister{store: s, client: client, prefix: prefix, place: p}
	out, err := l.list(ctx, start, most)
	if l.unordered && err == nil {
		l = &lister{store: s, client: client, prefix: prefix, place: p, all: true}
		out, err = l.list(ctx, start, sortMost)
		slices.SortFunc(out, func(a, b store.Info) int { return strings.Compare(a.Key, b.Key) })
		out = out[:min(len(out), most)]
	}
	return out, err
}

// lister is one listing.
type lister struct {
	store     *Store
	client    *container.Client
	prefix    string
	place     place
	all       bool // whatever the order, else it ends where the order breaks
	unordered bool // the order broke, or may break: there are folders
}

// safe is where a listing starts that misses nothing behind start, whether the server orders by bytes or by folder: up to the first
// byte behind the prefix that sorts before a slash.
func (l *lister) safe(start string) string {
	rest, within := strings.CutPrefix(start, l.place.name)
	if !within {
		return ""
	}
	at := strings.IndexFunc(rest, func(r rune) bool { return r < '/' || r == utf8.RuneError })
	if at >= 0 {
		rest = rest[:at]
	}
	return l.place.name + rest
}

// list gives up to most blobs behind start. Servers that do not know where to start are read from the beginning.
func (l *lister) list(ctx context.Context, start string, most int) ([]store.Info, error) {
	o := container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Metadata: true}}
	if l.place.name != "" {
		o.Prefix = &l.place.name
	}
	var out []store.Info
	last := ""
	for first := true; ; first = false {
		n := int32(min(most-len(out)+1, pageMost))
		o.MaxResults = &n
		from := ctx
		if first && !l.all {
			from = context.WithValue(ctx, startKey{}, l.safe(start))
		}
		page, err := l.page(from, o)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Segment.BlobItems {
			i, object := l.item(item)
			name := strings.TrimPrefix(i.Key, l.place.base)
			if !l.all && (!object || name <= last) {
				l.unordered = true
				return nil, nil
			}
			if last = name; !object || start != "" && name <= start {
				continue
			}
			if len(out) == most {
				return l.full(out)
			}
			out = append(out, i)
		}
		if page.NextMarker == nil || *page.NextMarker == "" {
			return out, nil
		}
		if len(out) == most {
			return l.full(out)
		}
		o.Marker = page.NextMarker
	}
}

// full is a listing that has reached its bound.
func (l *lister) full(out []store.Info) ([]store.Info, error) {
	if l.all {
		return nil, fault.New(fault.Exhausted, l.prefix, "the account lists by folder, and there are more than %d objects to sort", sortMost)
	}
	return out, nil
}

func (l *lister) item(item *container.BlobItem) (_ store.Info, object bool) {
	if item.Name == nil || item.Properties == nil || folder(item.Metadata) ||
		item.Properties.ResourceType != nil && *item.Properties.ResourceType == "directory" {
		return store.Info{}, false
	}
	i := info(l.place.base+*item.Name, item.Properties.ContentLength, item.Properties.ETag, item.Properties.LastModified)
	l.store.reader.Saw(i.Key, i.Tag, i.Size)
	return i, true
}

func (l *lister) page(ctx context.Context, o container.ListBlobsFlatOptions) (_ container.ListBlobsFlatResponse, err error) {
	pass, err := l.store.enter(ctx, l.prefix)
	if err != nil {
		return container.ListBlobsFlatResponse{}, err
	}
	defer func() { pass.Leave(err) }()
	store.Count(ctx, store.Usage{Lists: 1})
	page, err := l.client.NewListBlobsFlatPager(&o).NextPage(ctx)
	if err == nil && page.Segment == nil {
		page.Segment = &container.BlobFlatListSegment{}
	}
	return page, classify(ctx, l.prefix, l.place, listing, err)
}

// Delete implements store.Store. The protocol deletes one blob by one request.
func (s *Store) Delete(ctx context.Context, keys []string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, key := range keys {
		if _, err := s.object(key); err != nil {
			return err
		}
	}
	return s.gate.Each(ctx, keys, func(key string) error { return s.remove(ctx, key) })
}

func (s *Store) remove(ctx context.Context, key string) error {
	p, _ := s.object(key)
	client, err := s.client(p)
	if err != nil {
		return fault.About(key, err)
	}
	store.Count(ctx, store.Usage{Deletes: 1})
	with := blob.DeleteSnapshotsOptionTypeInclude
	_, err = client.NewBlobClient(p.name).Delete(ctx, &blob.DeleteOptions{DeleteSnapshots: &with})
	if err = classify(ctx, key, p, deleting, err); fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
