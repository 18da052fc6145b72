package skomer_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/cli/verify"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/azure"
	"github.com/skomerdb/skomer/internal/store/azure/azuretest"
	"github.com/skomerdb/skomer/internal/store/gcs"
	"github.com/skomerdb/skomer/internal/store/gcs/gcstest"
	"github.com/skomerdb/skomer/internal/store/retry"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// cloud is object storage with a table's place and an overlay's, reached by identities of their own.
type cloud struct {
	writer        store.Store // may do everything
	lake, overlay string
	reader, owner map[string]string // keys of the identities
}

func (c cloud) config() skomer.Config {
	return skomer.Config{
		Catalogs: map[string]map[string]string{"remote": c.reader}, DefaultCatalog: "remote",
		OverlayRoot: c.overlay, OverlayStore: c.owner,
		MaxStaleness: time.Nanosecond, MinPlannedFiles: -1, MinPlannedScanBytes: -1, CacheBytes: 32 << 20,
		OverlayWait: time.Minute, // this server is not silent, though the machine may be busy
	}
}

// lives mounts a table, indexes it, lets it grow, and compares every answer with the rows that the table holds.
func (c cloud) lives(t *testing.T, rng *rand.Rand) {
	ctx := context.Background()
	made := tabletest.CreateIn(t, rng, retry.New(c.writer, retry.Options{}), c.lake+"dir%20x/table")
	made.Append(t, 4, 300)
	open := func() *skomer.Table {
		client, err := skomer.New(c.config())
		require.NoError(t, err)
		table, err := client.Open(ctx, made.Dir, skomer.TableOptions{})
		require.NoError(t, err)
		t.Cleanup(table.Close)
		return table
	}
	table := open()
	require.NoError(t, table.Mount(ctx))
	for _, index := range []string{"ordered(id)", "zonemap(id)"} {
		_, err := table.AddIndex(ctx, index)
		require.NoError(t, err)
	}
	var rows int64
	for range 2 {
		report, err := table.Sync(ctx, skomer.SyncOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Skipped)
		table = open() // nothing is in memory, only what is in the buckets
		for range 5 {
			e := made.Expr(rng.IntN(3))
			want := made.Answer(e)
			for _, q := range []skomer.Query{{Where: e.SQL()}, {Where: e.SQL(), NoIndex: true}, {Where: e.SQL(), Strict: true}} {
				got, stats := positions(t, table, q)
				require.Equal(t, describe(want), describe(got), "NoIndex %v Strict %v\n%s", q.NoIndex, q.Strict, q.Where)
				require.Empty(t, stats.Rejected)
				rows += stats.Rows
			}
		}
		made.Append(t, 2, 200)
	}
	require.Positive(t, rows)
	report, err := verify.Run(ctx, table, verify.Options{Answers: 5, Seed: rng.Uint64() >> 1})
	require.NoError(t, err)
	require.Empty(t, report.Differences)
}

// denied: the reader's identity cannot write overlays, and the error says what is missing where.
func (c cloud) denied(t *testing.T, rng *rand.Rand, what string) {
	ctx := context.Background()
	made := tabletest.CreateIn(t, rng, c.writer, c.lake+"denied")
	c.owner = nil // then as the table
	client, err := skomer.New(c.config())
	require.NoError(t, err)
	table, err := client.Open(ctx, made.Dir, skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	err = table.Mount(ctx)
	require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
	require.Contains(t, fault.FixOf(err), what)
}

// TestGoogleCloudStorage is a table in one bucket with an overlay in another, each reached by its own token and now and then throttled.
func TestGoogleCloudStorage(t *testing.T) {
	rng, _ := seeded(t)
	var requests, throttled atomic.Int64
	server := gcstest.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			allowed := who == "writer" || who == "reader" && strings.Contains(r.URL.Path, "/b/lake/") && r.Method == http.MethodGet ||
				who == "owner" && strings.Contains(r.URL.Path, "/b/overlays/")
			switch n := requests.Add(1); {
			case !allowed:
				w.WriteHeader(http.StatusForbidden)
			case n%20 == 0 && who != "writer":
				throttled.Add(1)
				w.WriteHeader(http.StatusTooManyRequests)
			default:
				next.ServeHTTP(w, r)
			}
		})
	}, "lake", "overlays")
	writer := server.Options
	writer.Token = "writer"
	keys := func(who string) map[string]string {
		return map[string]string{"gcs.service.host": server.Options.Endpoint, "gcs.oauth2.token": who}
	}
	c := cloud{writer: gcs.New(writer), lake: "gs://lake/", overlay: "gs://overlays/skomer", reader: keys("reader"), owner: keys("owner")}
	c.lives(t, rng)
	require.Positive(t, throttled.Load())
	c.denied(t, rng, "on the bucket overlays")
}

// TestInteropAzureStorage is the same in Azure, where signatures say who may do what.
func TestInteropAzureStorage(t *testing.T) {
	rng, _ := seeded(t)
	server := azuretest.Start(t, nil, "lake", "overlays")
	keys := func(container, permissions string) map[string]string {
		return map[string]string{
			"adls.account-name": azuretest.Account, "adls.account-host": "", "adls.sas-token": server.SAS(t, container, permissions, time.Hour),
			"adls.blob-storage-scheme": "http", "adls.blob-storage-authority": server.Authority,
		}
	}
	at := func(container string) string {
		return "abfss://" + container + "@" + azuretest.Account + ".dfs.core.windows.net/"
	}
	c := cloud{
		writer: azure.New(server.Options), lake: at("lake"), overlay: at("overlays") + "skomer",
		reader: keys("lake", "rl"), owner: keys("overlays", "racwdl"),
	}
	c.lives(t, rng)
	c.denied(t, rng, "on the container overlays of the account "+azuretest.Account)
}
