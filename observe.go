package skomer

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/skomerdb/skomer/internal/scan"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/cache"
	"github.com/skomerdb/skomer/internal/telemetry"
)

// maxLogged bounds the rejections that one query logs one by one; the rest is one line.
const maxLogged = 20

// telemetry registers the client's metrics where the configuration asks for them.
func (c *Client) telemetry() (*telemetry.Metrics, error) {
	if c.config.Metrics == nil {
		return nil, nil
	}
	return telemetry.New(c.config.Metrics, []telemetry.Cache{
		{Name: "index", Count: c.overlayCacheCounts},
		{Name: "readers", Count: c.readers.Count},
		{Name: "footers", Count: c.footers.Count},
		{Name: "masks", Count: c.masks.Count},
	})
}

func (c *Client) overlayCacheCounts() (hits, misses int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.cached {
		if s, ok := s.(*cache.Store); ok {
			stats := s.Stats()
			hits, misses = hits+stats.Hits+stats.Joined, misses+stats.Misses
		}
	}
	return hits, misses
}

// observed reports a finished query to metrics and log, once.
func (r *Rows) observed(ctx context.Context, err error) {
	if r.reported {
		return
	}
	r.reported = true
	if errors.Is(err, errStopped) {
		err = nil
	}
	c := r.table.client
	rejected := map[string]int{}
	for _, x := range r.plan.Report.Rejected {
		rejected[x.Reason]++
	}
	rep := &r.plan.Report
	c.metrics.Query(telemetry.Query{
		Err: err, Took: time.Since(r.start), Accelerated: rep.Total - rep.Pruned - rep.Unanswered, Fallback: rep.Unanswered, Rejected: rejected,
	})
	c.metrics.IO(ioOf(r.usage.Usage()))
	logRejections(ctx, c.log, r.table.name, rep.Rejected)
	if r.overlayLost != nil {
		c.log.WarnContext(ctx, "the overlay cannot be read: the query was answered without indexes", "table", r.table.name, "reason", r.overlayLost.Error())
	}
}

// metered counts what is asked of storage under the returned context until end is called.
func (t *Table) metered(ctx context.Context) (_ context.Context, end func()) {
	used := &store.Counter{}
	return store.WithCounter(ctx, used), func() { t.client.metrics.IO(ioOf(used.Usage())) }
}

// synced reports a sync to the metrics, and where the indexes stand after it; one that its caller ended counts for nothing.
func (t *Table) synced(ctx context.Context, err error) {
	m := t.client.metrics
	if m == nil || ctx.Err() != nil {
		return
	}
	m.Synced(t.name, err, time.Now())
	t.mu.Lock()
	v := t.version
	t.mu.Unlock()
	if v == nil || v.Broken() != nil {
		return
	}
	s, err := t.snapshot(ctx, "")
	if err != nil {
		return // nobody knows how the table stands
	}
	if v, err = v.Full(ctx); err != nil {
		return
	}
	st := statusOf(s)
	t.stands(st, s, v)
	coverage := map[string]float64{}
	for _, x := range st.Indexes {
		coverage[x.Expr] = 1
		if x.Total > 0 {
			coverage[x.Expr] = float64(x.Covered) / float64(x.Total)
		}
	}
	m.Standing(t.name, time.Duration(st.LagSeconds*float64(time.Second)), coverage)
}

func ioOf(u store.Usage) telemetry.IO {
	return telemetry.IO{Requests: u.Requests(), BytesRead: u.BytesRead, BytesWritten: u.BytesWritten}
}

// logger names the table in what maintenance logs.
func (t *Table) logger() *slog.Logger { return t.client.log.With("table", t.name) }

func logRejections(ctx context.Context, log *slog.Logger, table string, all []scan.Rejection) {
	for i, x := range all {
		if i == maxLogged {
			log.WarnContext(ctx, "more indexes were rejected", "table", table, "count", len(all)-maxLogged)
			return
		}
		log.WarnContext(ctx, x.Detail, "table", table, "index", x.Index, "bundle", x.Bundle, "file", x.File, "reason", x.Reason)
	}
}
