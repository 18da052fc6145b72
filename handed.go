package skomer

import (
	"context"
	"maps"
	"strings"
	"sync"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/store"
)

// handed is what a catalog handed out to reach the files of one table. Locations that share a prefix share a store, which asks the
// catalog again before its credentials end.
type handed struct {
	stores *stores
	name   string

	mu        sync.Mutex
	latest    []lake.Credential
	unused    map[string]bool // prefixes whose latest credentials no store has got yet
	resolvers map[string]lake.Resolver
}

// now takes what the catalog has just handed out.
func (h *handed) now(latest []lake.Credential) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest, h.unused = latest, map[string]bool{}
	for _, c := range latest {
		h.unused[c.Prefix] = true
	}
}

// handedOut resolves locations as the table's catalog said when it was asked for the table last, and others otherwise.
func (s *stores) handedOut(name string, otherwise lake.Resolver) lake.Resolver {
	return func(location string) (store.Store, string, error) {
		s.mu.Lock()
		h := s.byTable[name]
		s.mu.Unlock()
		if h == nil || !lake.Remote(location) {
			return otherwise(location)
		}
		r := h.resolver(location)
		if r == nil {
			return otherwise(location)
		}
		return r(location)
	}
}

// resolver is that of the longest prefix that a location begins with; nil: there is none.
func (h *handed) resolver(location string) lake.Resolver {
	h.mu.Lock()
	defer h.mu.Unlock()
	var best *lake.Credential
	for i := range h.latest {
		if c := &h.latest[i]; strings.HasPrefix(location, c.Prefix) && (best == nil || len(c.Prefix) > len(best.Prefix)) {
			best = c
		}
	}
	if best == nil {
		return nil
	}
	prefix := best.Prefix
	if h.resolvers[prefix] == nil {
		h.resolvers[prefix] = lake.Stores(h.stores.files, lake.Access{
			Properties: func() (map[string]string, error) { return h.properties(prefix) },
			Renew:      func(ctx context.Context) (map[string]string, error) { return h.renew(ctx, prefix) },
		})
	}
	return h.resolvers[prefix]
}

// properties are the catalog's, with what it handed out over them.
func (h *handed) properties(prefix string) (map[string]string, error) {
	of := h.stores.known.Of(h.name)
	all, err := h.stores.known.Catalogs[of].Storage("catalog "+of, h.stores.environ)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.latest {
		if c.Prefix == prefix {
			out := maps.Clone(map[string]string(all))
			maps.Copy(out, c.Properties)
			return out, nil
		}
	}
	return nil, fault.New(fault.Denied, h.name, "the catalog no longer hands out credentials for %q", prefix)
}

// renew gives properties that no store has had yet: those that the catalog handed out last, or others.
func (h *handed) renew(ctx context.Context, prefix string) (map[string]string, error) {
	h.mu.Lock()
	unused := h.unused[prefix]
	h.mu.Unlock()
	if !unused {
		if _, err := h.stores.Find(ctx, h.name); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	h.unused[prefix] = false
	h.mu.Unlock()
	return h.properties(prefix)
}
