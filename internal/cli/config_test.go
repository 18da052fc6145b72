package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lake/catalog"
)

// fakeEnvironment has the given variables and an empty home.
func fakeEnvironment(t *testing.T, pairs ...string) environment {
	t.Helper()
	values := map[string]string{}
	var all []string
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
		all = append(all, pairs[i]+"="+pairs[i+1])
	}
	t.Chdir(t.TempDir())
	return environment{
		get:  func(name string) string { return values[name] },
		all:  func() []string { return all },
		home: t.TempDir(),
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestConfigurationIsOptional(t *testing.T) {
	s, err := loadSettings("", fakeEnvironment(t))
	require.NoError(t, err)
	require.Empty(t, s.catalogs)
	require.Empty(t, s.path)
}

func TestConfigurationSearchOrder(t *testing.T) {
	env := fakeEnvironment(t)
	put(t, filepath.Join(env.home, ".config/skomer/skomer.yaml"), "overlay-root: /home\n")
	s, err := loadSettings("", env)
	require.NoError(t, err)
	require.Equal(t, "/home", s.OverlayRoot)

	put(t, "skomer.yaml", "overlay-root: /here\n")
	s, err = loadSettings("", env)
	require.NoError(t, err)
	require.Equal(t, "/here", s.OverlayRoot)

	put(t, "other.yaml", "overlay-root: /other\n")
	s, err = loadSettings("other.yaml", env)
	require.NoError(t, err)
	require.Equal(t, "/other", s.OverlayRoot)

	_, err = loadSettings("missing.yaml", env)
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
}

func TestConfigurationIsStrict(t *testing.T) {
	env := fakeEnvironment(t)
	put(t, "skomer.yaml", "version: 1\ndefault-catalog: prod\ncatalog:\n  prod: {type: rest, uri: 'https://x', s3: {region: here}}\n")
	s, err := loadSettings("", env)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"type": "rest", "uri": "https://x", "s3.region": "here"}, s.catalogs["prod"])
	require.Equal(t, "prod", s.DefaultCatalog)

	for text, class := range map[string]fault.Class{
		"overlay_root: /typo": fault.Invalid,
		"version: 2":          fault.Unsupported,
		"catalog: [":          fault.Invalid,
	} {
		put(t, "skomer.yaml", text)
		_, err = loadSettings("", env)
		require.True(t, fault.Is(err, class), "%s: %v", text, err)
	}
}

func TestOverlayStore(t *testing.T) {
	env := fakeEnvironment(t, "SKOMER_OVERLAY_STORE__S3__ACCESS_KEY_ID", "AK")
	put(t, "skomer.yaml", "overlay-store: {s3.region: here, s3.access-key-id: file, s3: {endpoint: 'http://x', path-style-access: true}}\n")
	s, err := loadSettings("", env)
	require.NoError(t, err)
	require.Equal(t, catalog.Properties{
		"s3.region": "here", "s3.access-key-id": "AK", "s3.endpoint": "http://x", "s3.path-style-access": "true",
	}, s.OverlayStore)
	put(t, "skomer.yaml", "overlay-store: [no]\n")
	_, err = loadSettings("", env)
	require.True(t, fault.Is(err, fault.Invalid), "%v", err)
}

func TestEnvironmentWins(t *testing.T) {
	env := fakeEnvironment(t,
		"SKOMER_CATALOG__LAKE__S3__ACCESS_KEY_ID", "AK",
		"SKOMER_CATALOG__PROD__URI", "http://variable",
		"SKOMER_OVERLAY_ROOT", "/variable",
	)
	put(t, "skomer.yaml", "catalog: {prod: {uri: 'http://file', type: rest}}\noverlay-root: /file\n")
	s, err := loadSettings("", env)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"s3.access-key-id": "AK"}, s.catalogs["lake"])
	require.Equal(t, map[string]string{"uri": "http://variable", "type": "rest"}, s.catalogs["prod"])
	require.Equal(t, "/variable", s.OverlayRoot)
}
