package skomer_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skomerdb/skomer"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store/retry"
	"github.com/skomerdb/skomer/internal/store/s3"
	"github.com/skomerdb/skomer/internal/store/s3/s3test"
	"github.com/skomerdb/skomer/internal/tabletest"
)

// guard lets the reader read the lake, the owner of overlays do what he likes with those, and a writer do everything. Every so
// often it wants fewer requests.
type guard struct {
	requests, throttled, heads atomic.Int64
	noListing                  bool // of the lake
}

func (g *guard) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := r.Header.Get("Authorization")
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		lake, overlays := strings.HasPrefix(r.URL.Path, "/lake"), strings.HasPrefix(r.URL.Path, "/overlays")
		allowed := strings.Contains(who, "Credential=writer/") ||
			strings.Contains(who, "Credential=reader/") && lake && reads ||
			strings.Contains(who, "Credential=owner/") && overlays
		n := g.requests.Add(1)
		if lake && r.Method == http.MethodHead {
			g.heads.Add(1)
		}
		allowed = allowed && !(g.noListing && lake && r.URL.Query().Has("list-type"))
		switch {
		case !allowed:
			w.WriteHeader(http.StatusForbidden)
		case n%20 == 0 && !strings.Contains(who, "Credential=writer/"):
			g.throttled.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// remote configures a client for a server: a catalog with the reader's keys, overlays with the owner's.
func remote(endpoint string) skomer.Config {
	keys := func(who string) map[string]string {
		return map[string]string{
			"s3.endpoint": endpoint, "s3.region": "us-east-1", "s3.access-key-id": who, "s3.secret-access-key": "secret", "s3.path-style-access": "true",
		}
	}
	return skomer.Config{
		Catalogs: map[string]map[string]string{"remote": keys("reader")}, DefaultCatalog: "remote",
		OverlayRoot: "s3://overlays/skomer", OverlayStore: keys("owner"),
		MaxStaleness: time.Nanosecond, MinPlannedFiles: -1, MinPlannedScanBytes: -1, CacheBytes: 32 << 20,
		OverlayWait: time.Minute, // this server is not silent, though the machine may be busy
	}
}

// TestObjectStorage asks a table in one bucket with an overlay in another, each reached by its own identity and now and then
// throttled, and compares every answer with the rows that the table holds.
func TestObjectStorage(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	var g guard
	server := s3test.Start(t, g.around, "lake", "overlays")
	o := server.Options
	o.AccessKey = "writer"
	made := tabletest.CreateIn(t, rng, retry.New(s3.New(o), retry.Options{}), "s3://lake/dir%20x/table")
	made.Append(t, 4, 300)
	open := func() *skomer.Table {
		c, err := skomer.New(remote(server.Options.Endpoint))
		require.NoError(t, err)
		table, err := c.Open(ctx, made.Dir, skomer.TableOptions{})
		require.NoError(t, err)
		t.Cleanup(table.Close)
		return table
	}
	table := open()
	require.NoError(t, table.Mount(ctx))
	_, err := table.AddIndex(ctx, "ordered(id)")
	require.NoError(t, err)
	_, err = table.AddIndex(ctx, "zonemap(id)")
	require.NoError(t, err)
	var indexed, rows, requests, waves int64
	for range 3 {
		report, err := table.Sync(ctx, skomer.SyncOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Skipped)
		table = open() // nothing is in memory, only what is in the buckets
		for range 8 {
			e := made.Expr(rng.IntN(3))
			want := made.Answer(e)
			for _, q := range []skomer.Query{
				{Where: e.SQL()}, {Where: e.SQL(), NoIndex: true}, {Where: e.SQL(), NoPrune: true}, {Where: e.SQL(), Strict: true},
			} {
				got, stats := positions(t, table, q)
				require.Equal(t, describe(want), describe(got), "NoIndex %v NoPrune %v Strict %v\n%s", q.NoIndex, q.NoPrune, q.Strict, q.Where)
				require.Empty(t, stats.Rejected)
				indexed += int64(len(stats.IndexesUsed))
				rows, requests, waves = rows+stats.Rows, requests+stats.Requests, waves+stats.Waves
				require.LessOrEqual(t, stats.Waves, stats.Requests)
			}
		}
		made.Append(t, 2, 200)
	}
	t.Logf("%d rows, %d index answers, %d requests in %d waves; %d requests at the server, %d throttled",
		rows, indexed, requests, waves, g.requests.Load(), g.throttled.Load())
	require.Positive(t, g.throttled.Load())
	require.Positive(t, rows)
	require.Positive(t, requests)
}

// TestRemoteIdentities: the identity of the table cannot write overlays, that of the overlay cannot read the table, and the
// errors say which permission is missing where.
func TestRemoteIdentities(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	var g guard
	server := s3test.Start(t, g.around, "lake", "overlays")
	o := server.Options
	o.AccessKey = "writer"
	made := tabletest.CreateIn(t, rng, s3.New(o), "s3://lake/table")
	config := remote(server.Options.Endpoint)
	config.OverlayStore = nil // then as the table
	c, err := skomer.New(config)
	require.NoError(t, err)
	table, err := c.Open(ctx, made.Dir, skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	err = table.Mount(ctx)
	require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
	require.Contains(t, fault.FixOf(err), "arn:aws:s3:::overlays")

	config.Catalogs["remote"]["s3.access-key-id"] = "owner"
	c, err = skomer.New(config)
	require.NoError(t, err)
	_, err = c.Open(ctx, made.Dir, skomer.TableOptions{})
	require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
	require.Contains(t, fault.FixOf(err), "arn:aws:s3:::lake")
}

// TestRemoteKeysAreReadLate: properties that cannot be understood, or need variables that are not set, do not trouble local tables.
func TestRemoteKeysAreReadLate(t *testing.T) {
	rng, _ := seeded(t)
	dir := t.TempDir()
	made := tabletest.Create(t, rng, dir+"/table")
	c, err := skomer.New(skomer.Config{
		Catalogs:       map[string]map[string]string{"x": {"s3.secret-access-key": "${SKOMER_NO_SUCH_VARIABLE}", "s3.access-key-id": "a"}},
		DefaultCatalog: "x", OverlayRoot: dir + "/overlays", OverlayStore: map[string]string{"s3.anonymous": "perhaps"},
	})
	require.NoError(t, err)
	table, err := c.Open(t.Context(), made.Dir, skomer.TableOptions{})
	require.NoError(t, err)
	t.Cleanup(table.Close)
	_, err = c.Open(t.Context(), "s3://lake/table", skomer.TableOptions{})
	require.ErrorContains(t, err, "SKOMER_NO_SUCH_VARIABLE")
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
	_, err = c.Open(t.Context(), made.Dir, skomer.TableOptions{Overlay: "s3://overlays/x"})
	require.ErrorContains(t, err, "s3.anonymous")
}
