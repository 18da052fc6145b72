// Package azuretest answers: which server of Azure's blob protocol can a test speak to? It starts Azurite, Microsoft's own emulator.
package azuretest

import (
	"bufio"
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/store/azure"
)

// Account is the name of the server's account.
const Account = "account"

// Key is the account's key.
var Key = base64.StdEncoding.EncodeToString([]byte("a key that only tests use"))

// Server is a server on loopback that forgets everything at the end of the test.
type Server struct {
	// Options reach it.
	Options azure.Options
	// Authority is its host and port.
	Authority string
}

// SAS is a signature for a container that lasts so long. permissions are letters as the service knows them: r, a, c, w, d, l.
func (s *Server) SAS(t testing.TB, of, permissions string, lasts time.Duration) string {
	t.Helper()
	cred, err := container.NewSharedKeyCredential(Account, Key)
	require.NoError(t, err)
	values, err := sas.BlobSignatureValues{
		Protocol: sas.ProtocolHTTPSandHTTP, ExpiryTime: time.Now().UTC().Add(lasts), Permissions: permissions, ContainerName: of,
	}.SignWithSharedKey(cred)
	require.NoError(t, err)
	return values.Encode()
}

// Start starts a server with some containers. around may be nil; else it sees every request before the server does. SKOMER_AZURITE is
// the main.js of Azurite's blob service; without it the test is skipped, or fails where other engines are demanded.
func Start(t testing.TB, around func(http.Handler) http.Handler, containers ...string) *Server {
	t.Helper()
	program := os.Getenv("SKOMER_AZURITE")
	if program == "" {
		if os.Getenv("SKOMER_INTEROP") != "" {
			t.Fatal("SKOMER_AZURITE does not name the program of Azurite")
		}
		t.Skip("make interop sets SKOMER_AZURITE")
	}
	endpoint := launch(t, program)
	cred, err := container.NewSharedKeyCredential(Account, Key)
	require.NoError(t, err)
	for _, name := range containers {
		c, err := container.NewClientWithSharedKeyCredential(endpoint+"/"+Account+"/"+name, cred, nil)
		require.NoError(t, err)
		_, err = c.Create(t.Context(), nil)
		require.NoError(t, err)
	}
	if around != nil {
		target, err := url.Parse(endpoint)
		require.NoError(t, err)
		proxy := httptest.NewServer(around(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = r.In.Host
		}}))
		t.Cleanup(proxy.Close)
		endpoint = proxy.URL
	}
	return &Server{
		Options:   azure.Options{Account: Account, Key: Key, Endpoint: endpoint + "/" + Account},
		Authority: strings.TrimPrefix(endpoint, "http://"),
	}
}

// launch starts the program, which ends with the test, and gives its endpoint.
func launch(t testing.TB, program string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	cmd := exec.CommandContext(ctx, "node", program, "--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence",
		"--skipApiVersionCheck", "--disableProductStyleUrl", "--disableTelemetry", "--silent")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "AZURITE_ACCOUNTS="+Account+":"+Key)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was told to end
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "successfully listens on "); ok {
			go func() {
				for lines.Scan() { // the program must be able to go on writing
				}
			}()
			return strings.TrimSpace(at)
		}
	}
	t.Fatal("Azurite did not start")
	return ""
}
