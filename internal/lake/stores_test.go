package lake

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/hedge"
	"github.com/skomerdb/skomer/internal/store/retry"
)

var remote = []string{"s3://b/o", "s3a://b/o", "gs://b/o", "gcs://b/o", "abfss://c@a.dfs.core.windows.net/o", "wasbs://c@a.blob.core.windows.net/o", "az://c/o"}

// resolving resolves with fixed properties, and counts how often they are asked for.
func resolving(properties map[string]string) (Resolver, *int) {
	asked := 0
	return Stores(LocalFiles(), Access{Properties: func() (map[string]string, error) { asked++; return properties, nil }}), &asked
}

// TestStoresByScheme: every spelling of a kind of storage is one store, in layers whose order matters, and local files need no properties.
func TestStoresByScheme(t *testing.T) {
	resolve, asked := resolving(map[string]string{"adls.account-name": "a"})
	_, _, err := resolve("/lake/t")
	require.NoError(t, err)
	require.Zero(t, *asked)
	kinds := map[store.Store]bool{}
	for _, location := range remote {
		require.True(t, Remote(location), location)
		s, key, err := resolve(location)
		require.NoError(t, err)
		require.Equal(t, location, key)
		kinds[s] = true
		outer, ok := s.(*retry.Store)
		require.True(t, ok, "tries are outermost")
		_, ok = outer.Inner().(*hedge.Store)
		require.True(t, ok, "second requests are within a try")
		_, ok = outer.Inner().(store.Decorator).Inner().(backend)
		require.True(t, ok)
	}
	require.Len(t, kinds, 3)
	require.Equal(t, 1, *asked)
	require.False(t, Remote("/lake/t"))
	_, _, err = resolve("hdfs://host/t")
	require.Equal(t, fault.Unsupported, fault.ClassOf(err))
}

func TestStoresAreConfigured(t *testing.T) {
	resolve, _ := resolving(map[string]string{"store.hedge-percent": "0", "store.max-requests": "3"})
	s, _, err := resolve("s3://b/o")
	require.NoError(t, err)
	_, hedged := s.(*retry.Store).Inner().(*hedge.Store)
	require.False(t, hedged)
	for _, bad := range []map[string]string{
		{"store.max-requests": "many"},
		{"store.hedge-percent": "-1"},
		{"store.hedge-percent": "NaN"},
		{"s3.endpoint": "minio:9000", "gcs.service.host": "h:1", "adls.connection-string": "x"},
	} {
		resolve, _ := resolving(bad)
		for _, location := range []string{"s3://b/o", "gs://b/o", "az://c/o"} {
			_, _, err := resolve(location)
			require.Equal(t, fault.Invalid, fault.ClassOf(err), "%v %s", bad, location)
		}
	}
}
