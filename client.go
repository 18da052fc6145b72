package skomer

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
	"github.com/skomerdb/skomer/internal/lake/catalog"
	"github.com/skomerdb/skomer/internal/mask"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/parquetio"
	"github.com/skomerdb/skomer/internal/scan"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/cache"
	"github.com/skomerdb/skomer/internal/telemetry"
	"github.com/skomerdb/skomer/internal/wave"
)

const (
	defaultCache     = 256 << 20
	defaultMemory    = 1 << 30
	defaultStaleness = 5 * time.Second
	// defaultMinScan and defaultMinFiles are seed values of the cost rule: below them a scan is one or two requests.
	defaultMinScan  = 256 << 10
	defaultMinFiles = 1
	// defaultMinSelectivity is the share of rows above which little can be skipped.
	defaultMinSelectivity = 0.5
)

// Client opens tables and holds the caches that they share. It is safe for concurrent use.
type Client struct {
	config  Config
	stores  *stores
	footers *parquetio.Footers
	readers *wave.Kept
	runs    *wave.Runs
	masks   *mask.Cache
	metrics *telemetry.Metrics
	log     *slog.Logger
	silent  silent // overlays
	// shadowing holds the shadow check that runs.
	shadowing chan struct{}

	mu     sync.Mutex
	cached map[store.Store]store.Store // overlay stores behind the byte cache
}

// New makes a client.
func New(c Config) (*Client, error) {
	c = c.withDefaults()
	environ := os.Environ()
	known, err := c.catalogs(environ)
	if err != nil {
		return nil, err
	}
	client := &Client{
		config: c, stores: newStores(c, known, environ),
		footers: parquetio.NewFooters(c.CacheBytes / 8), readers: wave.NewKept(c.CacheBytes / 8), runs: wave.NewRuns(c.CacheBytes / 8),
		masks:  mask.NewCache(c.CacheBytes / 4),
		cached: map[store.Store]store.Store{},
		silent: silent{remember: c.MaxStaleness},
		log:    c.Log, shadowing: make(chan struct{}, 1),
	}
	client.metrics, err = client.telemetry()
	return client, err
}

// catalogs are those of the configuration files and the environment, overridden by Catalogs.
func (c Config) catalogs(environ []string) (*catalog.Config, error) {
	known, err := catalog.Load(catalog.Files(environ, "."), environ)
	if err != nil {
		return nil, err
	}
	for name, keys := range c.Catalogs {
		known.Catalogs[name] = keys
	}
	if c.DefaultCatalog != "" {
		known.Default = c.DefaultCatalog
	}
	return known, nil
}

func (c Config) withDefaults() Config {
	if c.CacheBytes == 0 {
		c.CacheBytes = defaultCache
	}
	if c.Memory == 0 {
		c.Memory = defaultMemory
	}
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.MaxStaleness == 0 {
		c.MaxStaleness = defaultStaleness
	}
	if c.OverlayWait == 0 {
		c.OverlayWait = defaultOverlayWait
	}
	if c.MinPlannedScanBytes == 0 {
		c.MinPlannedScanBytes = defaultMinScan
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.selectFrom == 0 {
		c.selectFrom = defaultSelectFrom
	}
	if c.MinPlannedFiles == 0 {
		c.MinPlannedFiles = defaultMinFiles
	}
	if c.MinSelectivity == 0 {
		c.MinSelectivity = defaultMinSelectivity
	}
	if c.ShadowBytes == 0 {
		c.ShadowBytes = defaultShadowBytes
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// overlayRoot is where overlays live: the configured root, else the user's data directory.
func (c *Client) overlayRoot() (string, error) {
	if c.config.OverlayRoot != "" {
		return c.config.OverlayRoot, nil
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "skomer"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fault.New(fault.Invalid, "overlay-root", "the user has no home directory").
			WithFix("set overlay-root in skomer.yaml or pass --overlay").WithCause(err)
	}
	return filepath.Join(home, ".local", "share", "skomer"), nil
}

// overlayStore is the store of the location of a table's overlay, behind the byte cache, and the overlay's prefix in it.
func (c *Client) overlayStore(table, location string) (store.Store, string, error) {
	s, key, err := c.stores.overlay(table)(location)
	if err != nil {
		return nil, "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cached[s] == nil {
		c.cached[s] = cache.New(s, c.config.CacheBytes/4, immutable)
	}
	return c.cached[s], key, nil
}

// immutable tells the overlay's objects whose bytes the cache keeps: bundles, which are never overwritten and whose readers check
// every part that they use. Versions and their chunks are kept parsed, by the overlay.
func immutable(key string) bool { return strings.HasSuffix(key, ".puffin") }

// Open opens a table: catalog.namespace.table, namespace.table, or the location of a metadata.json or table folder. It
// need not be mounted.
func (c *Client) Open(ctx context.Context, name string, o TableOptions) (*Table, error) {
	var mapping lake.Mapping
	for _, m := range o.Map {
		mapping = append(mapping, lake.Rule{From: m.From, To: m.To})
	}
	t := &Table{
		client: c, name: name, options: o, mapping: mapping, views: map[string]*lake.View{}, maps: &scan.Maps{Runs: c.runs},
		lake: lake.New(lake.Options{Resolve: c.stores.table(name), Catalogs: c.stores, Mapping: mapping, CacheBytes: c.config.CacheBytes / 4}),
	}
	known := o.Overlay != "" && !lake.Named(name) // a catalog may first have to hand out how both are reached
	if known {
		if err := t.locate(); err != nil {
			return nil, err
		}
		t.lookAhead(ctx)
	}
	if err := t.refresh(ctx); err != nil {
		t.Close()
		return nil, err
	}
	if known {
		return t, nil
	}
	if err := t.locate(); err != nil {
		return nil, err
	}
	t.lookAhead(ctx)
	return t, nil
}

// locate finds where the table's overlay is, or would be.
func (t *Table) locate() error {
	t.where = t.options.Overlay
	if t.where == "" {
		root, err := t.client.overlayRoot()
		if err != nil {
			return err
		}
		t.where = overlay.Locate(root, overlay.Table{UUID: t.table.UUID(), Location: t.table.Location()})
	}
	st, prefix, err := t.client.overlayStore(t.name, t.where)
	if err != nil {
		return err
	}
	key, err := t.client.config.overlayKey()
	if err != nil {
		return err
	}
	t.overlayStore, t.overlay = st, overlay.Open(st, prefix, overlay.Options{Key: key, Ahead: likelyNeeded, WholeUpTo: t.client.config.wholeUpTo})
	if key == nil { // archived masks are not signed
		t.archive = mask.NewArchive(st, t.overlay.Prefix()+"/masks")
	}
	return nil
}
