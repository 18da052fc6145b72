package store

import (
	"context"
	"sync/atomic"
)

// Usage is what operations cost the backend, after coalescing and caches.
type Usage struct {
	Waves                             int64 // Fetch calls that sent at least one request
	Gets, Heads, Lists, Puts, Deletes int64 // physical requests
	BytesRead, BytesWritten           int64 // object bytes moved, coalesced gaps included
	Hedges                            int64 // reads that were sent once more because they were slow; their requests are counted above
}

// Requests is the number of physical requests of every kind.
func (u Usage) Requests() int64 { return u.Gets + u.Heads + u.Lists + u.Puts + u.Deletes }

// Sub is what was used since an earlier snapshot.
func (u Usage) Sub(earlier Usage) Usage {
	return Usage{
		Waves: u.Waves - earlier.Waves, Gets: u.Gets - earlier.Gets, Heads: u.Heads - earlier.Heads,
		Lists: u.Lists - earlier.Lists, Puts: u.Puts - earlier.Puts, Deletes: u.Deletes - earlier.Deletes,
		BytesRead: u.BytesRead - earlier.BytesRead, BytesWritten: u.BytesWritten - earlier.BytesWritten,
		Hedges: u.Hedges - earlier.Hedges,
	}
}

// Add is what was used by both.
func (u Usage) Add(other Usage) Usage {
	var c Counter
	c.Add(u)
	c.Add(other)
	return c.Usage()
}

// Counter sums usage. The zero value is ready and safe for concurrent use.
type Counter struct {
	waves, gets, heads, lists, puts, deletes, read, written, hedges atomic.Int64
}

// Add adds u.
func (c *Counter) Add(u Usage) {
	for _, f := range [...]struct {
		to *atomic.Int64
		by int64
	}{
		{&c.waves, u.Waves},
		{&c.gets, u.Gets},
		{&c.heads, u.Heads},
		{&c.lists, u.Lists},
		{&c.puts, u.Puts},
		{&c.deletes, u.Deletes},
		{&c.read, u.BytesRead},
		{&c.written, u.BytesWritten},
		{&c.hedges, u.Hedges},
	} {
		if f.by != 0 {
			f.to.Add(f.by)
		}
	}
}

// Usage is the sum so far.
func (c *Counter) Usage() Usage {
	return Usage{
		Waves: c.waves.Load(), Gets: c.gets.Load(), Heads: c.heads.Load(), Lists: c.lists.Load(), Puts: c.puts.Load(),
		Deletes: c.deletes.Load(), BytesRead: c.read.Load(), BytesWritten: c.written.Load(), Hedges: c.hedges.Load(),
	}
}

type counters struct {
	own   *Counter
	outer *counters
}

type counterKey struct{}

// WithCounter makes every operation under the returned context add its usage to c, besides the counters that ctx
// already carries: a query, its server and a test can each count the same requests.
func WithCounter(ctx context.Context, c *Counter) context.Context {
	outer, _ := ctx.Value(counterKey{}).(*counters)
	return context.WithValue(ctx, counterKey{}, &counters{own: c, outer: outer})
}

// CountOnly makes every operation under the returned context add its usage to c and to no counter that ctx carries. A decorator
// that makes several operations of one gives the sum to Count.
func CountOnly(ctx context.Context, c *Counter) context.Context {
	return context.WithValue(ctx, counterKey{}, &counters{own: c})
}

// Count is called by backends, once per operation, with what it cost.
func Count(ctx context.Context, u Usage) {
	for c, _ := ctx.Value(counterKey{}).(*counters); c != nil; c = c.outer {
		c.own.Add(u)
	}
}
