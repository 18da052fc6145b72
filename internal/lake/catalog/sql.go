package catalog

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake"
)

// sqlCatalog reads PyIceberg's table iceberg_tables(catalog_name, table_namespace, table_name, metadata_location, …), which
// Java's JDBC catalog and iceberg-go share.
type sqlCatalog struct {
	name string
	path string // of the SQLite file
	db   *sql.DB
}

// newSQL opens a SQLite file read-only. uri is as SQLAlchemy writes it: sqlite:///relative.db, sqlite:////absolute.db.
func newSQL(name string, p Properties) (*sqlCatalog, error) {
	scheme, _, _ := strings.Cut(p["uri"], ":")
	_, path, ok := strings.Cut(p["uri"], ":///")
	if base, _, _ := strings.Cut(scheme, "+"); base != "sqlite" {
		return nil, fault.New(fault.Unsupported, "catalog "+name, "SQL catalogs other than sqlite").
			WithFix("open the table by its metadata.json")
	}
	if !ok || path == "" {
		return nil, fault.New(fault.Invalid, "catalog "+name, "the uri %q names no file", p["uri"]).
			WithFix("write sqlite:////absolute/path.db")
	}
	path, _, _ = strings.Cut(path, "?")
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "catalog "+name, err)
	}
	if _, err := os.Stat(abs); err != nil {
		return nil, fault.New(fault.NotFound, "catalog "+name, "its database file does not exist").WithCause(err)
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: abs}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "catalog "+name, err)
	}
	return &sqlCatalog{name: name, path: abs, db: db}, nil
}

func (c *sqlCatalog) find(ctx context.Context, id Identifier) (*lake.Found, error) {
	const query = `SELECT metadata_location FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?`
	var location sql.NullString
	err := c.db.QueryRowContext(ctx, query, c.name, strings.Join(id.Namespace, "."), id.Table).Scan(&location)
	subject := c.name + "." + id.String()
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, c.missing(ctx, subject)
	case err != nil:
		return nil, fault.New(fault.Corrupt, c.path, "not a catalog that can be read").WithCause(err)
	case location.String == "":
		return nil, fault.New(fault.Corrupt, subject, "the catalog has no metadata location for it")
	}
	return &lake.Found{Location: location.String}, nil
}

// missing names the catalogs in the file: a database may serve several, under names of their own.
func (c *sqlCatalog) missing(ctx context.Context, subject string) error {
	e := fault.New(fault.NotFound, subject, "no such table in the catalog")
	names, err := c.column(ctx, `SELECT DISTINCT catalog_name FROM iceberg_tables WHERE catalog_name <> ? ORDER BY 1`, c.name)
	if err != nil || len(names) == 0 {
		return e
	}
	return e.WithFix("%s also holds the catalogs %s: configure one by that name", c.path, strings.Join(names, ", "))
}

func (c *sqlCatalog) tables(ctx context.Context, namespace []string) ([]string, error) {
	return c.column(ctx, `SELECT table_name FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ?`, c.name, strings.Join(namespace, "."))
}

func (c *sqlCatalog) column(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := c.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fault.New(fault.Corrupt, c.path, "not a catalog that can be read").WithCause(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, fault.New(fault.Corrupt, c.path, "not a catalog that can be read").WithCause(err)
		}
		out = append(out, s)
	}
	return out, rows.Err()
}
