// Package catalog answers: where is the metadata of the table with this name?
//
// It reads catalog configuration in PyIceberg's form and speaks to REST and SQL catalogs with clients of its own, because
// those of iceberg-go cost a tenth of a second at every start (docs/adr/0002-own-catalog-clients.md). It obeys what a catalog
// forbids: a table whose rows or columns are restricted, or that must be planned by the server, is refused. It reads no
// metadata.
package catalog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/skomerdb/skomer/internal/fault"
)

// Properties configure one catalog, by PyIceberg's keys: type, uri, warehouse, prefix, token, credential, scope,
// oauth2-server-uri, header.<name>, …
type Properties map[string]string

// Config is the configured catalogs.
type Config struct {
	Catalogs map[string]Properties
	Default  string // name of the default catalog; "" if none is named
}

// Files are the configuration files that apply, weakest first: the first .pyiceberg.yaml found in $PYICEBERG_HOME, the home
// directory or dir, then dir's skomer.yaml. environ is in the form of os.Environ.
func Files(environ []string, dir string) []string {
	env := environment(environ)
	var out []string
	for _, d := range []string{env["PYICEBERG_HOME"], env["HOME"], dir} {
		path := filepath.Join(d, ".pyiceberg.yaml")
		if _, err := os.Stat(path); d != "" && err == nil {
			out = append(out, path)
			break
		}
	}
	return append(out, filepath.Join(dir, "skomer.yaml"))
}

// Load reads configuration files, later ones winning key by key, and then PYICEBERG_* variables. Missing files are skipped.
func Load(files, environ []string) (*Config, error) {
	c := &Config{Catalogs: map[string]Properties{}}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fault.Wrap(fault.Denied, path, err)
		}
		if err := c.merge(path, b); err != nil {
			return nil, err
		}
	}
	c.fromEnvironment(environ)
	return c, nil
}

func (c *Config) merge(path string, b []byte) error {
	var file struct {
		Default  string                    `yaml:"default-catalog"`
		Catalogs map[string]map[string]any `yaml:"catalog"`
	}
	if err := yaml.Unmarshal(b, &file); err != nil {
		return fault.New(fault.Invalid, path, "bad YAML").WithCause(err)
	}
	if file.Default != "" {
		c.Default = file.Default
	}
	for name, properties := range file.Catalogs {
		if c.Catalogs[name] == nil {
			c.Catalogs[name] = Properties{}
		}
		flatten(c.Catalogs[name], "", properties)
	}
	return nil
}

// flatten joins nested keys with dots, so that s3: {endpoint: x} and s3.endpoint: x are the same.
func flatten(into Properties, prefix string, from map[string]any) {
	for key, value := range from {
		switch v := value.(type) {
		case map[string]any:
			flatten(into, prefix+key+".", v)
		case string:
			into[prefix+key] = v
		case nil:
		default:
			b, err := yaml.Marshal(v)
			if err == nil {
				into[prefix+key] = strings.TrimSpace(string(b))
			}
		}
	}
}

// fromEnvironment reads PYICEBERG_DEFAULT_CATALOG and PYICEBERG_CATALOG__NAME__KEY: names in lower case, '_' stands for '-'
// and '__' inside the key for a dot.
func (c *Config) fromEnvironment(environ []string) {
	for key, value := range environment(environ) {
		rest, ok := strings.CutPrefix(strings.ToLower(key), "pyiceberg_")
		if !ok {
			continue
		}
		parts := strings.SplitN(rest, "__", 3)
		for i, p := range parts {
			parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "__", "."), "_", "-")
		}
		switch {
		case len(parts) == 1 && parts[0] == "default-catalog":
			c.Default = value
		case len(parts) == 3 && parts[0] == "catalog":
			if c.Catalogs[parts[1]] == nil {
				c.Catalogs[parts[1]] = Properties{}
			}
			c.Catalogs[parts[1]][parts[2]] = value
		}
	}
}

func environment(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, pair := range environ {
		if key, value, ok := strings.Cut(pair, "="); ok {
			env[key] = value
		}
	}
	return env
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces ${NAME} by the variable's value in every property.
func (p Properties) expand(of string, env map[string]string) (Properties, error) {
	out := make(Properties, len(p))
	for key, value := range p {
		var missing []string
		out[key] = variable.ReplaceAllStringFunc(value, func(ref string) string {
			name := ref[2 : len(ref)-1]
			v, ok := env[name]
			if !ok {
				missing = append(missing, name)
			}
			return v
		})
		if len(missing) > 0 {
			return nil, fault.New(fault.Invalid, of, "its %s needs the variable %s, which is not set", key, missing[0])
		}
	}
	return out, nil
}

// storage is what the keys begin with that say how object stores are reached.
var storage = []string{"s3.", "gcs.", "adls.", "client.", "store."}

// Storage is the properties that reach object stores, with ${NAME} replaced by variables. of names their owner in errors.
func (p Properties) Storage(of string, environ []string) (Properties, error) {
	return p.only(storage).expand(of, environment(environ))
}

// UnmarshalYAML reads properties whose keys may be nested: s3: {endpoint: x} and s3.endpoint: x are the same.
func (p *Properties) UnmarshalYAML(n *yaml.Node) error {
	var nested map[string]any
	if err := n.Decode(&nested); err != nil {
		return err
	}
	*p = Properties{}
	flatten(*p, "", nested)
	return nil
}

// Of is the catalog that a table's name belongs to, and for a location the default one; "" if there is none.
func (c *Config) Of(table string) string {
	if first, _, ok := strings.Cut(table, "."); ok && strings.Count(table, ".") > 1 && !strings.ContainsAny(table, "/:") {
		if name, ok := c.named(first); ok {
			return name
		}
	}
	name, _ := c.fallback()
	return name
}

// names are the configured catalogs, sorted.
func (c *Config) names() []string {
	out := make([]string, 0, len(c.Catalogs))
	for name := range c.Catalogs {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

// named is the configured catalog of a name: exactly, else by a unique match that ignores case.
func (c *Config) named(name string) (string, bool) {
	if _, ok := c.Catalogs[name]; ok {
		return name, true
	}
	var hits []string
	for _, have := range c.names() {
		if strings.EqualFold(have, name) {
			hits = append(hits, have)
		}
	}
	if len(hits) != 1 {
		return "", false
	}
	return hits[0], true
}

// fallback is the default catalog: the one named so, else PyIceberg's "default", else the only one.
func (c *Config) fallback() (string, bool) {
	if c.Default != "" {
		return c.named(c.Default)
	}
	names := c.names()
	if slices.Contains(names, "default") {
		return "default", true
	}
	if len(names) == 1 {
		return names[0], true
	}
	return "", false
}
