package cli

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/skomerdb/skomer/internal/fault"
)

// settings is skomer.yaml.
type settings struct {
	Version        int                          `yaml:"version"`
	DefaultCatalog string                       `yaml:"default-catalog"`
	Catalog        map[string]map[string]string `yaml:"catalog"` // keys are PyIceberg's, verbatim
	OverlayRoot    string                       `yaml:"overlay-root"`
	path           string                       // the file they were read from; "" if none
}

// environment is what configuration depends on, so that tests can give their own.
type environment struct {
	get  func(string) string // as os.Getenv
	all  func() []string     // as os.Environ
	home string              // "" if unknown
}

func processEnvironment() environment {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	return environment{get: os.Getenv, all: os.Environ, home: home}
}

// loadSettings reads the first configuration file of: path, $SKOMER_CONFIG, ./skomer.yaml, ~/.config/skomer/skomer.yaml,
// /etc/skomer/skomer.yaml. Then it adds catalogs that skomer.yaml does not name from PyIceberg's .pyiceberg.yaml, and last it
// applies SKOMER_CATALOG__NAME__KEY and PYICEBERG_CATALOG__NAME__KEY.
func loadSettings(path string, env environment) (*settings, error) {
	s := &settings{Catalog: map[string]map[string]string{}}
	if path == "" {
		path = env.get("SKOMER_CONFIG")
	}
	candidates := []string{path}
	if path == "" {
		candidates = []string{"skomer.yaml", env.inHome(".config", "skomer", "skomer.yaml"), "/etc/skomer/skomer.yaml"}
	}
	for _, candidate := range candidates {
		found, err := s.read(candidate, env)
		if err != nil {
			return nil, err
		}
		if found {
			break
		}
	}
	if path != "" && s.path == "" {
		return nil, fault.New(fault.NotFound, path, "no such configuration file")
	}
	if err := s.addPyIceberg(env); err != nil {
		return nil, err
	}
	s.applyEnvironment(env)
	return s, nil
}

func (e environment) inHome(parts ...string) string {
	if e.home == "" {
		return ""
	}
	return filepath.Join(append([]string{e.home}, parts...)...)
}

func (s *settings) read(path string, env environment) (bool, error) {
	text, err := readOptional(path)
	if err != nil || text == nil {
		return false, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(s); err != nil && !errors.Is(err, io.EOF) {
		return false, fault.Wrap(fault.Invalid, path, err)
	}
	if s.Version > 1 {
		return false, fault.New(fault.Unsupported, path, "version %d of the configuration is newer than this skomer reads", s.Version)
	}
	if s.Catalog == nil {
		s.Catalog = map[string]map[string]string{}
	}
	s.path = path
	s.OverlayRoot, err = expand(s.OverlayRoot, path, env)
	if err != nil {
		return false, err
	}
	return true, expandCatalogs(s.Catalog, path, env)
}

// readOptional is a file's bytes, or nil if there is none of that name.
func readOptional(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, fault.Wrap(fault.Denied, path, err)
	case err != nil:
		return nil, fault.Wrap(fault.Invalid, path, err)
	}
	return text, nil
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces ${NAME} by the environment's value; a name that is not set is an error, never empty.
func expand(text, path string, env environment) (string, error) {
	var missing string
	out := variable.ReplaceAllStringFunc(text, func(ref string) string {
		name := ref[2 : len(ref)-1]
		value := env.get(name)
		if value == "" {
			missing = name
		}
		return value
	})
	if missing != "" {
		return "", fault.New(fault.Invalid, path, "the environment has no %s", missing).WithFix("export %s=…", missing)
	}
	return out, nil
}

func expandCatalogs(catalogs map[string]map[string]string, path string, env environment) error {
	for _, properties := range catalogs {
		for key, value := range properties {
			expanded, err := expand(value, path, env)
			if err != nil {
				return err
			}
			properties[key] = expanded
		}
	}
	return nil
}

// addPyIceberg adds the catalogs of the first .pyiceberg.yaml in $PYICEBERG_HOME, the home folder and the current one, as
// PyIceberg looks for it.
func (s *settings) addPyIceberg(env environment) error {
	var paths []string
	if home := env.get("PYICEBERG_HOME"); home != "" {
		paths = append(paths, filepath.Join(home, ".pyiceberg.yaml"))
	}
	paths = append(paths, env.inHome(".pyiceberg.yaml"), ".pyiceberg.yaml")
	for _, path := range paths {
		text, err := readOptional(path)
		if err != nil {
			return err
		}
		if text == nil {
			continue
		}
		var file struct {
			Catalog        map[string]map[string]string `yaml:"catalog"`
			DefaultCatalog string                       `yaml:"default-catalog"`
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			return fault.Wrap(fault.Invalid, path, err)
		}
		for name, properties := range file.Catalog {
			if _, ours := s.Catalog[name]; !ours {
				s.Catalog[name] = properties
			}
		}
		if s.DefaultCatalog == "" {
			s.DefaultCatalog = file.DefaultCatalog
		}
		return nil
	}
	return nil
}

// applyEnvironment sets catalog properties from variables. As in PyIceberg, "__" separates the parts and "_" is a dash:
// SKOMER_CATALOG__PROD__S3__ACCESS_KEY_ID is prod's s3.access-key-id. SKOMER_… wins over PYICEBERG_….
func (s *settings) applyEnvironment(env environment) {
	for _, prefix := range []string{"PYICEBERG_CATALOG__", "SKOMER_CATALOG__"} {
		for _, pair := range env.all() {
			name, value, _ := strings.Cut(pair, "=")
			rest, ok := strings.CutPrefix(name, prefix)
			if !ok {
				continue
			}
			catalog, key, ok := strings.Cut(strings.ToLower(rest), "__")
			if !ok {
				continue
			}
			key = strings.ReplaceAll(strings.ReplaceAll(key, "__", "."), "_", "-")
			if s.Catalog[catalog] == nil {
				s.Catalog[catalog] = map[string]string{}
			}
			s.Catalog[catalog][key] = value
		}
	}
	if s.DefaultCatalog == "" {
		s.DefaultCatalog = env.get("PYICEBERG_DEFAULT_CATALOG")
	}
	if root := env.get("SKOMER_OVERLAY_ROOT"); root != "" {
		s.OverlayRoot = root
	}
}
