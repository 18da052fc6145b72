package interop_test

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/interop"
)

// TestInteropREST: tables that PyIceberg makes in Iceberg's own REST catalog server are found there, with the server's prefix
// and a token of its own, and read as PyIceberg reads them.
func TestInteropREST(t *testing.T) {
	dir := t.TempDir()
	uri := restCatalog(t, filepath.Join(dir, "warehouse"))
	interop.Lines(t, interop.Python(t), filepath.Join("python", "tables.py"), dir, uri, "ada:secret")
	credential := map[string]string{"type": "rest", "uri": uri, "credential": "ada:secret"}
	sum := compareAll(t, catalogs(credential), interop.Cases(t, dir))
	require.GreaterOrEqual(t, sum.tables, 3)
	require.Greater(t, sum.asked, 40)

	ctx := context.Background()
	for _, c := range []struct {
		name       string
		properties map[string]string
		table      string
		class      fault.Class
	}{
		{"a token", map[string]string{"uri": uri, "token": "client-credentials-token:sub=ada"}, "local.db.plain", fault.Unclassified},
		{"another case", credential, "local.db.PLAIN", fault.Unclassified},
		{"no token", map[string]string{"uri": uri}, "local.db.plain", fault.Denied},
		{"a token of another", map[string]string{"uri": uri, "credential": "eve:secret"}, "local.db.plain", fault.Denied},
		{"no such table", credential, "local.db.none", fault.NotFound},
		{"no such namespace", credential, "local.none.plain", fault.NotFound},
	} {
		client, err := skomer.New(catalogs(c.properties))
		require.NoError(t, err)
		table, err := client.Open(ctx, c.table, skomer.TableOptions{})
		require.Equal(t, c.class, fault.ClassOf(err), "%s: %v", c.name, err)
		if c.class == fault.Unclassified {
			require.NoError(t, err, c.name)
			table.Close()
		}
	}
}

func catalogs(properties map[string]string) skomer.Config {
	return skomer.Config{Catalogs: map[string]map[string]string{"local": properties}}
}

// restCatalog starts the server over a folder and returns its address. It ends with the test, or with the test's process.
func restCatalog(t *testing.T, warehouse string) string {
	t.Helper()
	server := exec.Command("java", append(interop.Java(t, "RestCatalog"), warehouse)...)
	var trouble strings.Builder
	server.Stderr = &trouble
	in, err := server.StdinPipe()
	require.NoError(t, err)
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	stuck := time.AfterFunc(15*time.Minute, func() { _ = server.Process.Kill() })
	t.Cleanup(func() {
		_ = in.Close()
		_ = server.Wait()
		stuck.Stop()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "%s", &trouble)
	return "http://127.0.0.1:" + strings.TrimSpace(port)
}
