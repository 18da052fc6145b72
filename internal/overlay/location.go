package overlay

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/skomerdb/skomer/internal/fault"
)

// Locate is where the overlay of a table lies below root: under its UUID, or for tables without one under the SHA-256 of
// their location.
func Locate(root string, t Table) string {
	name := strings.ToLower(t.UUID)
	if name == "" {
		sum := sha256.Sum256([]byte(strings.TrimRight(t.Location, "/")))
		name = hex.EncodeToString(sum[:])
	}
	return strings.TrimRight(root, "/") + "/" + name
}

// CheckApart refuses an overlay that lies inside the table's prefix, or the table inside the overlay's. Both are keys or
// URIs; links of local paths are followed.
func CheckApart(prefix, tableLocation string) error {
	o, t := place(prefix), place(tableLocation)
	if anyAccount(o) || anyAccount(t) { // it may be the other's
		o, t = withoutAccount(o), withoutAccount(t)
	}
	fix := "choose an overlay root outside of the table"
	switch {
	case within(o, t):
		return fault.New(fault.Refused, prefix, "an overlay must not lie inside the table at %s", tableLocation).WithFix("%s", fix)
	case within(t, o):
		return fault.New(fault.Refused, prefix, "the table at %s would lie inside its overlay", tableLocation).WithFix("%s", fix)
	}
	return nil
}

// within reports whether a is b or below it, by whole path segments.
func within(a, b string) bool { return a == b || strings.HasPrefix(a, strings.TrimRight(b, "/")+"/") }

// schemes maps spellings of one store to one.
var schemes = map[string]string{"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "wasbs": "abfs", "wasb": "abfs", "az": "abfs"}

// place is a location in one spelling: scheme, bucket and cleaned path; for local paths the path with links followed.
func place(location string) string {
	scheme, rest, ok := strings.Cut(location, "://")
	switch {
	case ok && !strings.EqualFold(scheme, "file"):
		scheme = strings.ToLower(scheme)
		if s, ok := schemes[scheme]; ok {
			scheme = s
		}
		if scheme == "abfs" {
			rest = container(rest)
		}
		return scheme + "://" + strings.TrimLeft(path.Clean("/"+rest), "/")
	case ok:
		location = "/" + strings.TrimLeft(strings.TrimPrefix(rest, "localhost"), "/")
	case len(location) > 5 && strings.EqualFold(location[:5], "file:"):
		location = location[5:]
	default:
		return "file://" + resolve(location)
	}
	if p, err := url.PathUnescape(location); err == nil {
		location = p
	}
	return "file://" + resolve(location)
}

// container is a location of Azure without its scheme, whose account is named alike by each of its hosts: container@account/name.
func container(rest string) string {
	authority, name, _ := strings.Cut(rest, "/")
	of, host, _ := strings.Cut(authority, "@")
	account, _, _ := strings.Cut(host, ".")
	if account != "" {
		of += "@" + strings.ToLower(account)
	}
	return of + "/" + name
}

// anyAccount reports whether a place is in Azure and names no account: the configuration does.
func anyAccount(place string) bool {
	rest, azure := strings.CutPrefix(place, "abfs://")
	authority, _, _ := strings.Cut(rest, "/")
	return azure && !strings.Contains(authority, "@")
}

func withoutAccount(place string) string {
	scheme, rest, _ := strings.Cut(place, "://")
	if authority, name, ok := strings.Cut(rest, "/"); scheme == "abfs" && ok {
		of, _, _ := strings.Cut(authority, "@")
		return scheme + "://" + of + "/" + name
	}
	return place
}

// resolve follows the links of the longest part of a local path that exists.
func resolve(p string) string {
	if abs, err := filepath.Abs(p); err == nil {
		p = abs
	}
	for at, rest := p, ""; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.ToSlash(filepath.Join(real, rest))
		}
		up := filepath.Dir(at)
		if up == at {
			return filepath.ToSlash(p)
		}
		at, rest = up, filepath.Join(filepath.Base(at), rest)
	}
}
