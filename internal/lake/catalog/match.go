package catalog

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
)

// Match lists the tables that a pattern names, sorted: catalog.namespace.GLOB, or namespace.GLOB in the default catalog. Only the last part is a
// pattern, as path.Match reads it. The names are as Find takes them.
func (c *Catalogs) Match(ctx context.Context, pattern string) ([]string, error) {
	catalog, id, err := c.split(pattern)
	if err != nil {
		return nil, err
	}
	below := strings.TrimSuffix(pattern, id.Table)
	if _, err := path.Match(id.Table, ""); err != nil || strings.ContainsAny(below, "*?[") {
		return nil, fault.New(fault.Invalid, pattern, "is no pattern of tables").WithFix("write catalog.namespace.* or namespace.*: only the last part may hold * and ?")
	}
	cl, err := c.client(catalog)
	if err != nil {
		return nil, err
	}
	names, err := cl.tables(ctx, id.Namespace)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range names {
		if ok, _ := path.Match(id.Table, name); ok { // the pattern is well formed
			out = append(out, below+name)
		}
	}
	slices.Sort(out)
	return out, nil
}
