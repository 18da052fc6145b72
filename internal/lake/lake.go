// Package lake answers: what is this Iceberg table, and which files make up a snapshot of it?
//
// It is the boundary to Iceberg: it opens tables by path or through catalogs, reads metadata, manifest lists and manifests
// through store.Store, applies the location mapping and the rules of inheritance, and hands out plain facts. No type of an
// Iceberg library leaves it. It never writes to a table and knows nothing of indexes, predicates or the rows inside files.
package lake

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/meta"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/local"
)

// Resolver finds the store that serves a location and the location's key in it. It must return the same store, comparable
// by ==, for every location that can be read in one wave.
type Resolver func(location string) (s store.Store, key string, err error)

// Found is a table as a catalog knows it.
type Found struct {
	Location string // of its metadata.json, as the catalog states it
	Metadata []byte // the JSON itself, if the catalog sent it along
	// Access is how the table's files are reached, as far as the catalog says it: properties by PyIceberg's keys for the locations
	// that begin with a prefix, the longest of which counts. Credentials among them end.
	Access []Credential
}

// Credential is properties that a catalog hands out with a table.
type Credential struct {
	Prefix     string // of locations; "": of all
	Properties map[string]string
}

// Catalogs finds tables by name. Implemented by package catalog.
type Catalogs interface {
	// Find resolves catalog.namespace.table, or namespace.table in the default catalog.
	Find(ctx context.Context, name string) (*Found, error)
}

// Options configure New. The zero value reads local paths, without catalogs.
type Options struct {
	Resolve    Resolver // nil: LocalFiles
	Catalogs   Catalogs // nil: names of tables are refused
	Mapping    Mapping
	CacheBytes int64 // most memory of decoded manifests kept; 0: DefaultCacheBytes
}

// DefaultCacheBytes bounds the decoded manifests that are kept in memory.
const DefaultCacheBytes = 256 << 20

// Lake opens tables. It is safe for concurrent use; its tables share one cache of manifests.
type Lake struct {
	resolve  Resolver
	catalogs Catalogs
	mapping  Mapping
	cache    *cache
	ahead    ahead
}

// New makes a Lake.
func New(o Options) *Lake {
	if o.Resolve == nil {
		o.Resolve = LocalFiles()
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	return &Lake{resolve: o.Resolve, catalogs: o.Catalogs, mapping: o.Mapping, cache: newCache(o.CacheBytes)}
}

// LocalFiles resolves plain paths and file: URIs, verbatim: a percent sign is a percent sign. Its store takes both as keys.
func LocalFiles() Resolver {
	s := fileURIs{local.New()}
	return func(location string) (store.Store, string, error) {
		path, ok := LocalPath(location)
		if !ok {
			scheme, _, _ := strings.Cut(location, ":")
			return nil, "", fault.New(fault.Unsupported, location, "no store for the scheme %q", scheme).
				WithFix("map it to a local folder: --map %s=FOLDER", parentOf(location))
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, "", fault.Wrap(fault.Invalid, location, err)
		}
		return s, abs, nil
	}
}

// LocalPath is the file system path of a location, if it is one: no scheme, or file:/x, file:///x, file://localhost/x.
func LocalPath(location string) (path string, ok bool) {
	if rest, isFile := strings.CutPrefix(location, "file:"); isFile {
		rest = strings.TrimPrefix(rest, "//localhost/")
		if !strings.HasPrefix(rest, "/") {
			return "/" + rest, true
		}
		return "/" + strings.TrimLeft(rest, "/"), true
	}
	return location, !hasScheme(location)
}

// hasScheme reports whether a location begins like a URI: a letter, more letters, digits, '+', '-', '.', then "://".
func hasScheme(location string) bool {
	scheme, _, ok := strings.Cut(location, "://")
	if !ok || scheme == "" {
		return false
	}
	return strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// Open opens a table by the location of a metadata.json or of the table's folder, or by name through the catalogs.
func (l *Lake) Open(ctx context.Context, name string) (*Table, error) {
	if name == "" {
		return nil, fault.New(fault.Invalid, "table", "no name given")
	}
	if !isLocation(name) {
		return l.openNamed(ctx, name)
	}
	location := l.mapping.Apply(strings.TrimRight(name, "/"))
	if !isMetadataFile(location) {
		found, err := l.newestMetadata(ctx, location)
		if err != nil {
			return nil, err
		}
		location = found
	}
	b, err := l.readAll(ctx, location)
	if err != nil {
		return nil, err
	}
	return l.table(name, location, b)
}

func (l *Lake) openNamed(ctx context.Context, name string) (*Table, error) {
	if l.catalogs == nil {
		return nil, fault.New(fault.NotFound, name, "no catalog is configured").
			WithFix("write ./%s if it is a folder, or configure a catalog in skomer.yaml or .pyiceberg.yaml", name)
	}
	found, err := l.catalogs.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	location := l.mapping.Apply(found.Location)
	b := found.Metadata
	if b == nil {
		if b, err = l.readAll(ctx, location); err != nil {
			return nil, err
		}
	}
	return l.table(name, location, b)
}

func (l *Lake) table(name, location string, b []byte) (*Table, error) {
	b, err := decompress(location, b)
	if err != nil {
		return nil, err
	}
	m, err := meta.Parse(location, b)
	if err != nil {
		return nil, err
	}
	return &Table{lake: l, name: name, path: location, meta: m}, nil
}

// Named reports whether a table is asked for by its name in a catalog rather than by its place.
func Named(table string) bool { return !isLocation(table) }

// isLocation tells a path or URI from a dotted name. A single word is a folder.
func isLocation(name string) bool {
	return strings.ContainsAny(name, "/:\\") || !strings.Contains(name, ".") || isMetadataFile(name)
}

func isMetadataFile(location string) bool {
	return strings.HasSuffix(location, ".json") || strings.HasSuffix(location, ".json.gz")
}

func parentOf(location string) string {
	if i := strings.LastIndexByte(location, '/'); i > 0 && !strings.HasSuffix(location[:i], "/") && !strings.HasSuffix(location[:i], ":") {
		return location[:i]
	}
	return location
}
