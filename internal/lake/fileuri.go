package lake

import (
	"context"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/store"
)

// fileURIs is the local file system with file: URIs as keys beside plain paths, since that is how many tables state where their files
// lie. What is described or listed goes by the form it was asked for in.
type fileURIs struct{ store.Store }

// Inner implements store.Decorator.
func (s fileURIs) Inner() store.Store { return s.Store }

func plainPath(key string) string {
	if path, ok := LocalPath(key); ok {
		return path
	}
	return key
}

// Fetch implements store.Store.
func (s fileURIs) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	if slices.ContainsFunc(reads, func(r store.Read) bool { return plainPath(r.Key) != r.Key }) {
		reads = slices.Clone(reads)
		for i := range reads {
			reads[i].Key = plainPath(reads[i].Key)
		}
	}
	return s.Store.Fetch(ctx, reads)
}

// Stat implements store.Store.
func (s fileURIs) Stat(ctx context.Context, keys []string) []store.Info {
	paths := make([]string, len(keys))
	for i, key := range keys {
		paths[i] = plainPath(key)
	}
	out := s.Store.Stat(ctx, paths)
	for i, key := range keys {
		out[i].Key = key
	}
	return out
}

// List implements store.Store.
func (s fileURIs) List(ctx context.Context, prefix, after string, most int) ([]store.Info, error) {
	path := plainPath(prefix)
	stated, ok := strings.CutSuffix(prefix, path)
	if !ok || stated == "" {
		return s.Store.List(ctx, path, plainPath(after), most)
	}
	out, err := s.Store.List(ctx, path, strings.TrimPrefix(after, stated), most)
	for i := range out {
		out[i].Key = stated + out[i].Key
	}
	return out, err
}
