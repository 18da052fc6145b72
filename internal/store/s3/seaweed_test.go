package s3_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/s3"
	"github.com/skomerdb/skomer/internal/store/storetest"
)

// TestInteropSeaweedFS runs the contract on a server that real deployments use. SKOMER_WEED is its program.
func TestInteropSeaweedFS(t *testing.T) {
	program := os.Getenv("SKOMER_WEED")
	if program == "" {
		if os.Getenv("SKOMER_INTEROP") != "" {
			t.Fatal("SKOMER_WEED does not name the program of SeaweedFS")
		}
		t.Skip("make interop sets SKOMER_WEED")
	}
	endpoint := seaweed(t, program)
	client := awss3.New(awss3.Options{
		BaseEndpoint: &endpoint, Region: "us-east-1", UsePathStyle: true, Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
	})
	_, err := client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String("bucket")})
	require.NoError(t, err)
	options := s3.Options{Endpoint: endpoint, Region: "us-east-1", AccessKey: "key", Secret: "secret"}
	t.Run("PartsOnce", func(t *testing.T) { partsOnce(t, options) })
	var subjects atomic.Int64
	storetest.Run(t, func(*testing.T) storetest.Subject {
		return storetest.Subject{
			Store: s3.New(options), Root: fmt.Sprintf("s3://bucket/%d/", subjects.Add(1)), ContentTags: true,
			Without: map[string]string{
				"ListOrder": "SeaweedFS lists folder by folder, so that a/x comes before a-b",
				"Backslash": "SeaweedFS takes a backslash for a slash",
			},
		}
	})
}

// partsOnce uploads an object in parts twice: the condition is judged at the end, and its tag is that of later reads.
func partsOnce(t *testing.T, o s3.Options) {
	o.PartBytes = 5 << 20
	s, b := s3.New(o), bytes.Repeat([]byte("0123456789abcdef"), 6<<16)
	tag, err := s.PutNew(t.Context(), "s3://bucket/parts", bytes.NewReader(b))
	require.NoError(t, err)
	r := s.Fetch(t.Context(), []store.Read{{Key: "s3://bucket/parts", Tag: tag}})[0]
	require.NoError(t, r.Err)
	require.True(t, bytes.Equal(b, r.Data[0]))
	_, err = s.PutNew(t.Context(), "s3://bucket/parts", bytes.NewReader(b[1:]))
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
	require.Equal(t, tag, s.Stat(t.Context(), []string{"s3://bucket/parts"})[0].Tag)
}

// seaweed starts a server on loopback that ends with the test, and gives its endpoint.
func seaweed(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	identities := filepath.Join(dir, "identities.json")
	require.NoError(t, os.WriteFile(identities, []byte(`{"identities": [{"name": "skomer", "actions": ["Admin", "Read", "Write", "List"],
		"credentials": [{"accessKey": "key", "secretKey": "secret"}]}]}`), 0o600))
	args := []string{
		"server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir=" + dir, "-master.telemetry=false",
		"-volume.max=20", "-master.volumeSizeLimitMB=64", "-filer", "-s3", "-s3.config=" + identities,
	}
	var port int
	for _, name := range []string{"master.port", "volume.port", "filer.port", "s3.port"} {
		port = freePort(t)
		args = append(args, fmt.Sprintf("-%s=%d", name, port), fmt.Sprintf("-%s.grpc=%d", name, freePort(t)))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was told to end
	})
	endpoint := fmt.Sprintf("http://127.0.0.1:%d", port)
	for range 600 {
		if r, err := http.Get(endpoint); err == nil {
			r.Body.Close()
			return endpoint
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("SeaweedFS did not answer within a minute")
	return ""
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
