package skomer

import (
	"time"

	"github.com/skomerdb/skomer/internal/lake"
)

// WithStores makes the configuration resolve table and overlay locations to other stores.
func (c Config) WithStores(data, overlay lake.Resolver) Config {
	c.resolveData, c.resolveOverlay = data, overlay
	return c
}

// WithWholeUpTo sets the number of artifacts up to which a sync reads all lists of them; negative: none, however short.
func (c Config) WithWholeUpTo(artifacts int) Config {
	c.wholeUpTo = artifacts
	return c
}

// WithSelectFrom sets the number of files from which on queries read of manifests only what they need, and syncs keep facts.
func (c Config) WithSelectFrom(files int) Config {
	c.selectFrom = files
	return c
}

// WithClock sets the clock that records of syncs and scrubs, and lags, are counted by.
func (c Config) WithClock(now func() time.Time) Config {
	c.now = now
	return c
}
