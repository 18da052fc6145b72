package skomer

import "github.com/skomerdb/skomer/internal/lake"

// WithStores makes the configuration resolve table and overlay locations to other stores.
func (c Config) WithStores(data, overlay lake.Resolver) Config {
	c.resolveData, c.resolveOverlay = data, overlay
	return c
}
