package catalog

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
)

// Identifier is a table inside a catalog.
type Identifier struct {
	Namespace []string
	Table     string
}

// String is the dotted name.
func (id Identifier) String() string {
	return strings.Join(append(slices.Clone(id.Namespace), id.Table), ".")
}

// client speaks to one catalog.
type client interface {
	// find loads a table by its exact name; a NotFound fault if there is none.
	find(ctx context.Context, id Identifier) (*lake.Found, error)
	// tables lists the names of a namespace.
	tables(ctx context.Context, namespace []string) ([]string, error)
	// check signs in and says what the catalog is.
	check(ctx context.Context) (string, error)
}

// Catalogs finds tables in the configured catalogs. It is safe for concurrent use.
type Catalogs struct {
	config *Config
	env    map[string]string
	http   *http.Client

	mu      sync.Mutex
	clients map[string]client
}

var _ lake.Catalogs = (*Catalogs)(nil)

// New makes clients on first use. environ supplies ${NAME} in properties; h may be nil.
func New(c *Config, environ []string, h *http.Client) *Catalogs {
	if h == nil {
		h = newHTTP()
	}
	return &Catalogs{config: c, env: environment(environ), http: h, clients: map[string]client{}}
}

// Find resolves catalog.namespace.table, or namespace.table in the default catalog. Names match exactly, else by a unique
// match that ignores case.
func (c *Catalogs) Find(ctx context.Context, name string) (*lake.Found, error) {
	catalog, id, err := c.split(name)
	if err != nil {
		return nil, err
	}
	cl, err := c.client(catalog)
	if err != nil {
		return nil, err
	}
	found, err := cl.find(ctx, id)
	if !fault.Is(err, fault.NotFound) {
		return found, err
	}
	names, lerr := cl.tables(ctx, id.Namespace)
	if lerr != nil {
		return nil, err
	}
	var hits []string
	for _, have := range names {
		if strings.EqualFold(have, id.Table) && have != id.Table {
			hits = append(hits, have)
		}
	}
	switch len(hits) {
	case 0:
		return nil, err
	case 1:
		return cl.find(ctx, Identifier{id.Namespace, hits[0]})
	}
	return nil, fault.New(fault.Invalid, name, "several tables differ from it only by case: %s", strings.Join(hits, ", "))
}

func (c *Catalogs) split(name string) (catalog string, id Identifier, err error) {
	parts := strings.Split(name, ".")
	if slices.Contains(parts, "") || len(parts) < 2 {
		return "", id, fault.New(fault.Invalid, name, "expected catalog.namespace.table or namespace.table")
	}
	if len(parts) > 2 {
		if catalog, ok := c.config.named(parts[0]); ok {
			return catalog, Identifier{parts[1 : len(parts)-1], parts[len(parts)-1]}, nil
		}
	}
	catalog, ok := c.config.fallback()
	if !ok {
		e := fault.New(fault.NotFound, name, "no catalog is called %q, and there is no default catalog", parts[0])
		if names := c.config.names(); len(names) > 0 {
			return "", id, e.WithFix("the configured catalogs: %s", strings.Join(names, ", "))
		}
		return "", id, e.WithFix("write ./%s if it is a folder, or configure a catalog in skomer.yaml or .pyiceberg.yaml", name)
	}
	return catalog, Identifier{parts[:len(parts)-1], parts[len(parts)-1]}, nil
}

func (c *Catalogs) client(name string) (client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl := c.clients[name]; cl != nil {
		return cl, nil
	}
	p, err := c.config.Catalogs[name].expand("catalog "+name, c.env)
	if err != nil {
		return nil, err
	}
	var cl client
	switch kind := kindOf(p); kind {
	case "rest":
		cl = newREST(name, p, c.http)
	case "sql":
		if cl, err = newSQL(name, p); err != nil {
			return nil, err
		}
	case "":
		return nil, fault.New(fault.Invalid, "catalog "+name, "it has neither a type nor a uri").
			WithFix("set type: rest or type: sql, and uri")
	default:
		return nil, fault.New(fault.Unsupported, "catalog "+name, "catalogs of type %q; rest and sql are read", kind).
			WithFix("open the table by its metadata.json")
	}
	c.clients[name] = cl
	return cl, nil
}

// kindOf is the type of a catalog, inferred from its uri if it states none.
func kindOf(p Properties) string {
	if p["type"] != "" {
		return strings.ToLower(p["type"])
	}
	scheme, _, _ := strings.Cut(p["uri"], ":")
	switch {
	case scheme == "http" || scheme == "https":
		return "rest"
	case strings.HasPrefix(scheme, "sqlite") || strings.HasPrefix(scheme, "postgresql"):
		return "sql"
	case scheme == "thrift":
		return "hive"
	}
	return ""
}
