package cli

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/catalog"
)

// settings is skomer.yaml.
type settings struct {
	Version        int    `yaml:"version"`
	DefaultCatalog string `yaml:"default-catalog"`
	OverlayRoot    string `yaml:"overlay-root"`
	OverlayKey     string `yaml:"overlay-key"`
	// OverlayStore is how overlays in object stores are reached, by the s3.* keys of catalogs; empty: as their tables.
	OverlayStore catalog.Properties `yaml:"overlay-store"`
	// ShadowChecks is the share of queries, 0 to 1, that are run again as scans.
	ShadowChecks float64 `yaml:"shadow-checks"`
	// Planning is the knobs of the cost rule.
	Planning planning  `yaml:"planning"`
	Erase    erasing   `yaml:"erase"`
	Catalog  yaml.Node `yaml:"catalog"` // read by package catalog

	path     string // the file they were read from; "" if none
	catalogs map[string]map[string]string
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
// /etc/skomer/skomer.yaml. Then it applies SKOMER_CATALOG__NAME__KEY, SKOMER_OVERLAY_STORE__KEY, SKOMER_OVERLAY_ROOT and SKOMER_OVERLAY_KEY. PyIceberg's
// files and variables are read by the library.
func loadSettings(path string, env environment) (*settings, error) {
	s := &settings{catalogs: map[string]map[string]string{}}
	if path == "" {
		path = env.get("SKOMER_CONFIG")
	}
	candidates := []string{path}
	if path == "" {
		candidates = []string{"skomer.yaml", "/etc/skomer/skomer.yaml"}
		if env.home != "" {
			candidates = []string{"skomer.yaml", filepath.Join(env.home, ".config", "skomer", "skomer.yaml"), "/etc/skomer/skomer.yaml"}
		}
	}
	for _, candidate := range candidates {
		found, err := s.read(candidate)
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
	s.applyEnvironment(env)
	return s, nil
}

func (s *settings) read(path string) (bool, error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, fs.ErrPermission):
		return false, fault.Wrap(fault.Denied, path, err)
	case err != nil:
		return false, fault.Wrap(fault.Invalid, path, err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(s); err != nil && !errors.Is(err, io.EOF) {
		return false, fault.Wrap(fault.Invalid, path, err)
	}
	if s.Version > 1 {
		return false, fault.New(fault.Unsupported, path, "version %d of the configuration is newer than this skomer reads", s.Version)
	}
	known, err := catalog.Load([]string{path}, nil)
	if err != nil {
		return false, err
	}
	for name, properties := range known.Catalogs {
		s.catalogs[name] = properties
	}
	s.path = path
	return true, nil
}

// propertyKey is the property that a part of a variable's name means.
func propertyKey(part string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(part), "__", "."), "_", "-")
}

// applyEnvironment sets catalog properties from variables, as PyIceberg does from its own: "__" separates the parts, "_" is a
// dash, so that SKOMER_CATALOG__PROD__S3__ACCESS_KEY_ID is prod's s3.access-key-id and SKOMER_OVERLAY_STORE__S3__REGION overlay-store's
// s3.region.
func (s *settings) applyEnvironment(env environment) {
	for _, pair := range env.all() {
		name, value, _ := strings.Cut(pair, "=")
		if key, ok := strings.CutPrefix(name, "SKOMER_OVERLAY_STORE__"); ok {
			if s.OverlayStore == nil {
				s.OverlayStore = catalog.Properties{}
			}
			s.OverlayStore[propertyKey(key)] = value
			continue
		}
		rest, ok := strings.CutPrefix(name, "SKOMER_CATALOG__")
		if !ok {
			continue
		}
		of, key, ok := strings.Cut(strings.ToLower(rest), "__")
		if !ok {
			continue
		}
		key = propertyKey(key)
		if s.catalogs[of] == nil {
			s.catalogs[of] = map[string]string{}
		}
		s.catalogs[of][key] = value
	}
	if root := env.get("SKOMER_OVERLAY_ROOT"); root != "" {
		s.OverlayRoot = root
	}
	if key := env.get("SKOMER_OVERLAY_KEY"); key != "" {
		s.OverlayKey = key
	}
}
