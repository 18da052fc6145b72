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

// outage is a server of overlays that can fail while the lake's goes on.
type outage struct {
	refuses, hangs atomic.Bool
	asked          atomic.Int64 // requests that were not answered
	enough         atomic.Int64 // with so many of them
	stop           func()       // is called
}

func (o *outage) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/overlays") && (o.refuses.Load() || o.hangs.Load()) {
			if o.asked.Add(1) == o.enough.Load() {
				o.stop()
			}
			if o.hangs.Load() {
				<-r.Context().Done()
			}
			panic(http.ErrAbortHandler) // the connection breaks off without an answer
		}
		next.ServeHTTP(w, r)
	})
}

// TestUnreachableOverlay: an overlay whose server is down costs a query a few tries, once, and the answer is a scan's that says why. It is used
// again when it answers again.
func TestUnreachableOverlay(t *testing.T) {
	rng, _ := seeded(t)
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute) // only a hang takes so long
	defer stop()
	var out outage
	server := s3test.Start(t, out.around, "lake", "overlays")
	made := tabletest.CreateIn(t, rng, retry.New(s3.New(server.Options), retry.Options{}), "s3://lake/table")
	made.Append(t, 3, 200)
	config := remote(server.Options.Endpoint)
	config.MaxStaleness = time.Hour
	client := func(change func(*skomer.Config)) *skomer.Client {
		c := config
		change(&c)
		made, err := skomer.New(c)
		require.NoError(t, err)
		return made
	}
	open := func(c *skomer.Client) *skomer.Table {
		table, err := c.Open(ctx, made.Dir, skomer.TableOptions{})
		require.NoError(t, err)
		t.Cleanup(table.Close)
		return table
	}
	table := open(client(func(*skomer.Config) {}))
	require.NoError(t, table.Mount(ctx))
	_, err := table.AddIndex(ctx, "ordered(id)")
	require.NoError(t, err)
	_, err = table.Sync(ctx, skomer.SyncOptions{})
	require.NoError(t, err)

	check := func(table *skomer.Table, lost bool) {
		e := made.Expr(2)
		got, stats := positions(t, table, skomer.Query{Where: e.SQL()})
		require.Equal(t, describe(made.Answer(e)), describe(got), e.SQL())
		require.Equal(t, lost, stats.Rejected["overlay_unreadable"] == 1, "%v", stats.Rejected)
		if lost {
			require.Len(t, stats.Warnings, 1)
			require.Contains(t, stats.Warnings[0], "no answer")
		}
		require.Equal(t, lost, stats.OverlayVersion == 0)
	}
	out.refuses.Store(true)
	c := client(func(*skomer.Config) {})
	table = open(c)
	check(table, true)
	asked := out.asked.Load()
	require.Positive(t, asked)
	require.Less(t, asked, int64(16), "a listing and a look at the head, three times each, some of them sent twice, and not eight times")
	check(table, true)
	check(open(c), true)
	require.Less(t, out.asked.Load(), asked+4, "what was silent a moment ago is not asked again, though a request may still have been under way")

	asked = out.asked.Load()
	_, err = table.Status(ctx)
	require.Equal(t, fault.Unreachable, fault.ClassOf(err), "%v", err)
	require.Contains(t, fault.FixOf(err), strings.TrimPrefix(server.Options.Endpoint, "http://"))
	require.Less(t, out.asked.Load(), asked+8, "nor is it patient")
	asked = out.asked.Load()
	patient, giveUp := context.WithCancel(ctx)
	out.stop = giveUp
	out.enough.Store(asked + 5)
	_, err = table.Sync(patient, skomer.SyncOptions{})
	require.ErrorIs(t, err, context.Canceled)
	require.GreaterOrEqual(t, out.asked.Load(), asked+5, "who has to write is patient")

	out.refuses.Store(false)
	check(table, true)
	_, err = table.Status(ctx)
	require.NoError(t, err)
	check(table, false)

	out.hangs.Store(true)
	defer out.hangs.Store(false)
	check(open(client(func(c *skomer.Config) { c.OverlayWait = 20 * time.Millisecond })), true)
}

// TestThrottledOverlay: a query goes on without an overlay whose server wants no requests for too long.
func TestThrottledOverlay(t *testing.T) {
	rng, _ := seeded(t)
	ctx := context.Background()
	server := s3test.Start(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/overlays") {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, "lake", "overlays")
	made := tabletest.CreateIn(t, rng, retry.New(s3.New(server.Options), retry.Options{}), "s3://lake/table")
	made.Append(t, 2, 100)
	config := remote(server.Options.Endpoint)
	config.OverlayWait = 50 * time.Millisecond
	c, err := skomer.New(config)
	require.NoError(t, err)
	table, err := c.Open(ctx, made.Dir, skomer.TableOptions{})
	require.NoError(t, err)
	defer table.Close()
	e := made.Expr(1)
	got, stats := positions(t, table, skomer.Query{Where: e.SQL()})
	require.Equal(t, describe(made.Answer(e)), describe(got))
	require.EqualValues(t, 1, stats.Rejected["overlay_unreadable"])
}
