package skomer

import (
	"context"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
)

// IsPattern reports whether a name is a pattern of tables, namespace.* or catalog.namespace.*, rather than a table.
func IsPattern(name string) bool { return lake.Named(name) && strings.ContainsAny(name, "*?[") }

// Tables lists the tables of a catalog that a pattern names, by the names that Open takes.
func (c *Client) Tables(ctx context.Context, pattern string) ([]string, error) {
	return c.stores.catalogs.Match(ctx, pattern)
}

// Mounted reports whether the table has an overlay in use.
func (t *Table) Mounted(ctx context.Context) (bool, error) {
	v, err := t.overlay.Latest(ctx)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err == nil {
		t.saw(v)
	}
	return err == nil, err
}
