package skomer_test

import (
	"context"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/skomerdb/skomer/internal/store"
)

// sorted counts what goes through a store by kind of object.
type sorted struct {
	store.Store
	mu   sync.Mutex
	used map[string]store.Usage
}

// sortOf is the kind of object that a key names.
func sortOf(key string) string {
	name := path.Base(key)
	switch dir := path.Base(path.Dir(key)); {
	case strings.Contains(key, "/table/"):
		switch {
		case strings.HasPrefix(name, "snap-"):
			return "table: manifest list"
		case strings.HasSuffix(name, ".avro"):
			return "table: manifests"
		case strings.HasSuffix(name, ".parquet"):
			return "table: data files"
		default:
			return "table: metadata"
		}
	case dir == "data" && strings.Contains(name, "-map"):
		return "overlay: file maps"
	case dir == "data" && strings.HasSuffix(name, ".facts"):
		return "overlay: facts"
	case dir == "data":
		return "overlay: bundles"
	case name == "detached_catalog.json":
		return "overlay: head"
	default:
		return "overlay: " + dir
	}
}

func (s *sorted) count(ctx context.Context, key string) (context.Context, func()) {
	var c store.Counter
	return store.WithCounter(ctx, &c), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u := s.used[sortOf(key)]
		u = u.Add(c.Usage())
		s.used[sortOf(key)] = u
	}
}

func (s *sorted) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	var out []store.Result
	for _, r := range reads {
		ctx, done := s.count(ctx, r.Key)
		out = append(out, s.Store.Fetch(ctx, []store.Read{r})...)
		done()
	}
	return out
}

func (s *sorted) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	ctx, done := s.count(ctx, key)
	defer done()
	return s.Store.PutNew(ctx, key, r)
}

func (s *sorted) PutIf(ctx context.Context, key string, old store.Tag, b []byte) (store.Tag, error) {
	ctx, done := s.count(ctx, key)
	defer done()
	return s.Store.PutIf(ctx, key, old, b)
}

func (s *sorted) Stat(ctx context.Context, keys []string) []store.Info {
	ctx, done := s.count(ctx, keys[0])
	defer done()
	return s.Store.Stat(ctx, keys)
}

func (s *sorted) List(ctx context.Context, prefix, after string, most int) ([]store.Info, error) {
	ctx, done := s.count(ctx, prefix+"x")
	defer done()
	return s.Store.List(ctx, prefix, after, most)
}

func (s *sorted) Delete(ctx context.Context, keys []string) error {
	ctx, done := s.count(ctx, keys[0])
	defer done()
	return s.Store.Delete(ctx, keys)
}

// forget begins to count anew and returns what was counted.
func (s *sorted) forget() map[string]store.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.used
	s.used = map[string]store.Usage{}
	return was
}

// tallied logs what was counted of each kind, by the round, and adds it up.
func tallied(t *testing.T, what string, rounds int64, used map[string]store.Usage) (all store.Usage) {
	t.Helper()
	for _, k := range slices.Sorted(maps.Keys(used)) {
		u := used[k]
		all = all.Add(u)
		mean := func(n int64) float64 { return float64(n) / float64(rounds) }
		t.Logf("%s: %-20s %5.2f get %5.2f head %5.2f list %5.2f put %5.2f delete, %8.0f bytes read, %8.0f written", what, k,
			mean(u.Gets), mean(u.Heads), mean(u.Lists), mean(u.Puts), mean(u.Deletes), mean(u.BytesRead), mean(u.BytesWritten))
	}
	return all
}
