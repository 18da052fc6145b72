package s3test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/store/s3"
)

// Seaweed starts SeaweedFS, a server that real deployments use, on loopback, with a bucket. It ends with the test. SKOMER_WEED is its
// program; a test that cannot have it is skipped, but not where engines are asked (SKOMER_INTEROP).
func Seaweed(t *testing.T, bucket string) s3.Options {
	t.Helper()
	program := os.Getenv("SKOMER_WEED")
	if program == "" {
		if os.Getenv("SKOMER_INTEROP") != "" {
			t.Fatal("SKOMER_WEED does not name the program of SeaweedFS")
		}
		t.Skip("make interop sets SKOMER_WEED")
	}
	endpoint := serve(t, program)
	client := awss3.New(awss3.Options{
		BaseEndpoint: &endpoint, Region: "us-east-1", UsePathStyle: true, Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
	})
	_, err := client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String(bucket)})
	require.NoError(t, err)
	return s3.Options{Endpoint: endpoint, Region: "us-east-1", AccessKey: "key", Secret: "secret"}
}

func serve(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	identities := filepath.Join(dir, "identities.json")
	require.NoError(t, os.WriteFile(identities, []byte(`{"identities": [{"name": "skomer", "actions": ["Admin", "Read", "Write", "List"],
		"credentials": [{"accessKey": "key", "secretKey": "secret"}]}]}`), 0o600))
	args := []string{
		"server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir=" + dir, "-master.telemetry=false",
		"-volume.max=20", "-master.volumeSizeLimitMB=64", "-filer", "-s3", "-s3.config=" + identities,
		"-s3.port.iceberg=0", "-s3.port.lance=0", // both listen on fixed ports, so that two servers would not start side by side
	}
	names := []string{"master.port", "volume.port", "filer.port", "s3.port"}
	ports := freePorts(t, 2*len(names))
	for i, name := range names {
		args = append(args, fmt.Sprintf("-%s=%d", name, ports[2*i]), fmt.Sprintf("-%s.grpc=%d", name, ports[2*i+1]))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute) // it ends with the test
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was told to end
	})
	endpoint := fmt.Sprintf("http://127.0.0.1:%d", ports[2*len(names)-2])
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if r, err := http.Get(endpoint); err == nil {
			r.Body.Close()
			return endpoint
		}
	}
	t.Fatal("SeaweedFS did not answer within three minutes")
	return ""
}

// freePorts are n ports, each another, that nobody listens on.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { require.NoError(t, l.Close()) }() // all are held until the last one is found
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}
