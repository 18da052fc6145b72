package skomer

import (
	"context"
	"strings"
	"sync"

	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/lake/catalog"
	"github.com/skomerdb/skomer/internal/store"
)

// stores finds the store of a location. Tables are reached as their catalog says when it hands them out, and else with the identity of
// their catalog, or of the default catalog if they are opened by location; overlays with their own, if they have one. Tables of one
// catalog share one store, unless it hands out credentials for each.
type stores struct {
	config   Config
	known    *catalog.Config
	catalogs *catalog.Catalogs
	environ  []string
	files    lake.Resolver
	own      lake.Resolver // of overlays; nil: as their tables

	mu        sync.Mutex
	byCatalog map[string]lake.Resolver
	byTable   map[string]*handed // what catalogs handed out, by the name that was asked for
}

var _ lake.Catalogs = (*stores)(nil)

func newStores(c Config, known *catalog.Config, environ []string) *stores {
	s := &stores{
		config: c, known: known, catalogs: catalog.New(known, environ, nil), environ: environ, files: lake.LocalFiles(),
		byCatalog: map[string]lake.Resolver{}, byTable: map[string]*handed{},
	}
	if len(c.OverlayStore) > 0 {
		s.own = s.resolver("overlay-store", c.OverlayStore)
	}
	return s
}

func (s *stores) resolver(of string, p catalog.Properties) lake.Resolver {
	return lake.Stores(s.files, lake.Access{Properties: func() (map[string]string, error) { return p.Storage(of, s.environ) }})
}

// Find implements lake.Catalogs. It remembers what the catalog hands out with the table.
func (s *stores) Find(ctx context.Context, name string) (*lake.Found, error) {
	found, err := s.catalogs.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.byTable[name]
	if h == nil && len(found.Access) > 0 {
		h = &handed{stores: s, name: name, resolvers: map[string]lake.Resolver{}}
		s.byTable[name] = h
	}
	if h != nil {
		h.now(found.Access)
	}
	return found, nil
}

// table resolves the locations of a table's files.
func (s *stores) table(name string) lake.Resolver {
	if s.config.resolveData != nil {
		return s.config.resolveData
	}
	of := s.known.Of(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byCatalog[of] == nil {
		s.byCatalog[of] = s.resolver("catalog "+of, s.known.Catalogs[of])
	}
	otherwise := s.byCatalog[of]
	return s.handedOut(name, otherwise)
}

// overlay resolves the location of a table's overlay.
func (s *stores) overlay(table string) lake.Resolver {
	switch {
	case s.config.resolveOverlay != nil:
		return s.config.resolveOverlay
	case s.own != nil:
		return s.own
	}
	return s.table(table)
}

// Storage finds the store of a file outside of any table, and the file's key in it, for commands of this module that look into files:
// below the overlay root it is reached as overlays are, else as tables of the default catalog are.
func (c *Client) Storage(location string) (store.Store, string, error) {
	if root := c.config.OverlayRoot; root != "" && strings.HasPrefix(location, strings.TrimRight(root, "/")+"/") {
		return c.stores.overlay(location)(location)
	}
	return c.stores.table(location)(location)
}
