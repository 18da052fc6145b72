package skomer

import "github.com/skomerdb/skomer/internal/lake"

// WithStores makes the configuration resolve table and overlay locations to other stores.
func (c Config) WithStores(data, overlay lake.Resolver) Config {
	c.resolveData, c.resolveOverlay = data, overlay
	return c
}

// WithSelectFrom sets the number of files from which on queries read of manifests only what they need, and syncs keep facts.
func (c Config) WithSelectFrom(files int) Config {
	c.selectFrom = files
	return c
}
