package skomer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/azure"
	"github.com/skomerdb/skomer/internal/store/azure/azuretest"
	"github.com/skomerdb/skomer/internal/store/gcs"
	"github.com/skomerdb/skomer/internal/store/gcs/gcstest"
	"github.com/skomerdb/skomer/internal/store/s3"
	"github.com/skomerdb/skomer/internal/store/s3/s3test"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// vendor is a REST catalog with one table, which hands out other credentials every time it is asked.
type vendor struct {
	writer   store.Store
	location string
	loads    atomic.Int64
	hand     func(n int64) map[string]any // the n-th storage credential's config
}

// start serves the catalog and gives its URL.
func (v *vendor) start(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/v1/config"):
			fmt.Fprint(w, `{"defaults":{},"overrides":{}}`)
		case strings.HasSuffix(r.URL.Path, "/namespaces/ns/tables/t"):
			infos, err := v.writer.List(r.Context(), v.location+"/metadata/", "", 1000)
			if err != nil {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			newest := ""
			for _, i := range infos {
				if strings.HasSuffix(i.Key, ".metadata.json") && len(i.Key) >= len(newest) {
					newest = i.Key
				}
			}
			text := v.writer.Fetch(r.Context(), []store.Read{{Key: newest}})[0]
			prefix := v.location[:strings.Index(v.location, "://")+3]
			_ = json.NewEncoder(w).Encode(map[string]any{
				"metadata-location": newest, "metadata": json.RawMessage(text.Data[0]),
				"storage-credentials": []any{
					map[string]any{"prefix": prefix, "config": v.hand(0)},
					map[string]any{"prefix": v.location, "config": v.hand(v.loads.Add(1))},
				},
			})
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// lives queries a table whose credentials end while it is read. keys is what the user has configured himself.
func (v *vendor) lives(t *testing.T, keys map[string]string) {
	rng, _ := seeded(t)
	ctx := context.Background()
	made := tabletest.CreateIn(t, rng, v.writer, v.location)
	made.Append(t, 4, 200)
	config := map[string]string{"uri": v.start(t), "type": "rest"}
	for k, value := range keys {
		config[k] = value
	}
	client, err := skomer.New(skomer.Config{
		Catalogs: map[string]map[string]string{"v": config}, DefaultCatalog: "v", OverlayRoot: t.TempDir(),
		MinPlannedFiles: -1, MinPlannedScanBytes: -1, MaxStaleness: time.Hour,
	})
	require.NoError(t, err)
	table, err := client.Open(ctx, "v.ns.t", skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	require.NoError(t, table.Mount(ctx))
	_, err = table.AddIndex(ctx, "ordered(id)")
	require.NoError(t, err)
	report, err := table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)
	require.Empty(t, report.Skipped)
	for range 3 {
		e := made.Expr(2)
		got, _ := positions(t, table, skomer.Query{Where: e.SQL()})
		require.Equal(t, describe(made.Answer(e)), describe(got))
	}
}

// TestCredentialsThatACatalogHandsOut: the most specific ones are used, and others asked for when they end.
func TestCredentialsThatACatalogHandsOut(t *testing.T) {
	t.Run("S3", func(t *testing.T) {
		var v vendor
		var ended, old atomic.Int64
		server := s3test.Start(t, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				who := r.Header.Get("Authorization")
				now := fmt.Sprintf("Credential=key%d/", v.loads.Load())
				switch {
				case strings.Contains(who, "Credential=writer/"):
				case ended.Add(1) == 20: // in the middle of work, what the catalog has handed out so far ends
					old.Store(v.loads.Load())
					fallthrough
				case strings.Contains(who, fmt.Sprintf("Credential=key%d/", old.Load())), !strings.Contains(who, now):
					w.WriteHeader(http.StatusBadRequest)
					fmt.Fprint(w, "<Error><Code>ExpiredToken</Code></Error>")
					return
				}
				next.ServeHTTP(w, r)
			})
		}, "lake")
		o := server.Options
		o.AccessKey = "writer"
		v.writer, v.location = s3.New(o), "s3://lake/table"
		v.hand = func(n int64) map[string]any {
			return map[string]any{
				"s3.access-key-id": fmt.Sprintf("key%d", n), "s3.secret-access-key": "secret", "s3.session-token": "session",
				"s3.session-token-expires-at-ms": fmt.Sprint(time.Now().Add(time.Hour).UnixMilli()),
			}
		}
		v.lives(t, map[string]string{"s3.endpoint": server.Options.Endpoint, "s3.region": "us-east-1"})
		require.Positive(t, old.Load())
		require.Greater(t, v.loads.Load(), old.Load())
	})
	t.Run("Google", func(t *testing.T) {
		var v vendor
		var refused atomic.Int64
		server := gcstest.Start(t, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				who := r.Header.Get("Authorization")
				if who != "Bearer writer" && (who != fmt.Sprintf("Bearer token%d", v.loads.Load()) || refused.Add(1) == 8) {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				next.ServeHTTP(w, r)
			})
		}, "lake")
		o := server.Options
		o.Token = "writer"
		v.writer, v.location = gcs.New(o), "gs://lake/table"
		v.hand = func(n int64) map[string]any {
			return map[string]any{
				"gcs.oauth2.token": fmt.Sprintf("token%d", n), "gcs.oauth2.token-expires-at": fmt.Sprint(time.Now().Add(time.Hour).UnixMilli()),
			}
		}
		v.lives(t, map[string]string{"gcs.service.host": server.Options.Endpoint})
		require.GreaterOrEqual(t, refused.Load(), int64(8))
	})
}

// TestInteropCredentialsOfAzure: signatures that last less than the time in which they are renewed are asked for again and again.
func TestInteropCredentialsOfAzure(t *testing.T) {
	server := azuretest.Start(t, nil, "lake")
	v := vendor{writer: azure.New(server.Options), location: "abfss://lake@" + azuretest.Account + ".dfs.core.windows.net/table"}
	v.hand = func(n int64) map[string]any {
		sas := "nothing"
		if n > 0 {
			sas = server.SAS(t, "lake", "rl", 30*time.Second)
		}
		return map[string]any{"adls.sas-token." + azuretest.Account + ".dfs.core.windows.net": sas}
	}
	v.lives(t, map[string]string{
		"adls.account-name": azuretest.Account, "adls.blob-storage-scheme": "http", "adls.blob-storage-authority": server.Authority,
	})
	require.Greater(t, v.loads.Load(), int64(2))
}

// TestCredentialsThatAreNoLongerHandedOut: the error says whose they were.
func TestCredentialsThatAreNoLongerHandedOut(t *testing.T) {
	var v vendor
	server := s3test.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.Header.Get("Authorization"), "Credential=writer/") {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, "lake")
	o := server.Options
	o.AccessKey = "writer"
	v.writer, v.location = s3.New(o), "s3://lake/table"
	v.hand = func(int64) map[string]any {
		return map[string]any{"s3.access-key-id": "a", "s3.secret-access-key": "b"}
	}
	rng, _ := seeded(t)
	tabletest.CreateIn(t, rng, v.writer, v.location).Append(t, 1, 10)
	client, err := skomer.New(skomer.Config{
		Catalogs:       map[string]map[string]string{"v": {"uri": v.start(t), "s3.endpoint": server.Options.Endpoint, "s3.region": "x"}},
		DefaultCatalog: "v", OverlayRoot: os.TempDir(),
	})
	require.NoError(t, err)
	table, err := client.Open(t.Context(), "v.ns.t", skomer.TableOptions{Overlay: t.TempDir() + "/o"})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	_, err = table.Describe(t.Context(), "")
	require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
}
