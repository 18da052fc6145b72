// Package wave answers: how does work that needs bytes get them in the fewest dependent round trips?
//
// Every task says which spans of which object it needs next; a runner unites the needs of all tasks into one store.Fetch,
// feeds them, and repeats until none needs more. A query's round trips are then the longest chain of one task and not the
// sum. The package knows objects and spans, not predicates or tables.
package wave

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Steps is work on one object that needs bytes wave by wave, in absolute offsets.
type Steps interface {
	// Need is the spans wanted next; empty: done.
	Need() []store.Span
	// Feed takes exactly the needed spans, in order. An error ends the steps. Those of several tasks run side by side: what tasks share must be
	// safe for that.
	Feed(data [][]byte) error
}

// Task is steps over one object. Err holds why they ended early: a failed read or a failed Feed.
type Task struct {
	Key   string
	Tag   store.Tag // sent as If-Match when not empty
	Steps Steps
	Err   error
	// Seen is the object's tag as the store reported it with the last read.
	Seen store.Tag
}

// Run advances all tasks together until each is done or failed. Spans of tasks over one object are one read, so that the
// store can join neighbours. Only a cancelled context or an exhausted limit is an error of the run itself: a task that fails
// alone leaves its reason in Err.
func Run(ctx context.Context, st store.Store, tasks []*Task) error {
	for {
		asks := collect(tasks)
		if len(asks) == 0 {
			return nil
		}
		for len(asks) > 0 {
			var err error
			if asks, err = fetch(ctx, st, asks); err != nil {
				return err
			}
		}
	}
}

// fetch reads and feeds. It returns what to read again, task by task: a span outside of its object spoils the read of all tasks
// that share it.
func fetch(ctx context.Context, st store.Store, asks []*ask) (again []*ask, err error) {
	reads := make([]store.Read, len(asks))
	for i, a := range asks {
		reads[i] = a.read
	}
	results := st.Fetch(ctx, reads)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var feeds []feed
	for i, res := range results {
		switch {
		case fault.Is(res.Err, fault.Exhausted):
			return nil, res.Err
		case fault.Is(res.Err, fault.Corrupt) && len(asks[i].tasks) > 1:
			again = append(again, asks[i].apart()...)
			asks[i] = nil
		default:
			feeds = asks[i].deliver(feeds, res)
		}
	}
	feedAll(feeds)
	for _, a := range asks {
		if a != nil {
			a.forget(st)
		}
	}
	return again, nil
}

// feed is the bytes that one task waits for.
type feed struct {
	task *Task
	data [][]byte
}

// feedAlone is the bytes that one core parses before another is worth waking.
const feedAlone = 64 << 10

// feedAll feeds tasks, on every core where there is much to parse: a query that waits for its indexes has nothing else to do.
func feedAll(feeds []feed) {
	bytes := 0
	for i := range feeds {
		for _, d := range feeds[i].data {
			bytes += len(d)
		}
	}
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(feeds)); i = next.Add(1) - 1 {
			feeds[i].task.Err = feeds[i].task.Steps.Feed(feeds[i].data)
		}
	}
	var g sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(feeds), 1+bytes/feedAlone) - 1 {
		g.Go(work)
	}
	work()
	g.Wait()
}

// forgetter is a store that keeps bytes and can drop an object's.
type forgetter interface{ Forget(key string) }

// forget makes a cache drop the object if a task found its bytes damaged: the next query reads them anew.
func (a *ask) forget(st store.Store) {
	f, ok := st.(forgetter)
	if ok && slices.ContainsFunc(a.tasks, func(t *Task) bool { return fault.Is(t.Err, fault.Corrupt) }) {
		f.Forget(a.read.Key)
	}
}

// ask is one object's read and the tasks that wait for it.
type ask struct {
	read  store.Read
	tasks []*Task
	spans []int // per task how many of the read's spans are its own
}

func collect(tasks []*Task) []*ask {
	type object struct {
		key string
		tag store.Tag
	}
	known := map[object]*ask{}
	var out []*ask
	for _, t := range tasks {
		if t.Err != nil {
			continue
		}
		spans := t.Steps.Need()
		if len(spans) == 0 {
			continue
		}
		a := known[object{t.Key, t.Tag}]
		if a == nil {
			a = &ask{read: store.Read{Key: t.Key, Tag: t.Tag}}
			known[object{t.Key, t.Tag}] = a
			out = append(out, a)
		}
		a.read.Spans = append(a.read.Spans, spans...)
		a.tasks, a.spans = append(a.tasks, t), append(a.spans, len(spans))
	}
	return out
}

// apart is an ask per task.
func (a *ask) apart() []*ask {
	var out []*ask
	at := 0
	for i, t := range a.tasks {
		read := a.read
		read.Spans = a.read.Spans[at : at+a.spans[i]]
		out = append(out, &ask{read: read, tasks: []*Task{t}, spans: a.spans[i : i+1]})
		at += a.spans[i]
	}
	return out
}

// deliver notes what the store said and adds what is to be fed.
func (a *ask) deliver(feeds []feed, res store.Result) []feed {
	at := 0
	for i, t := range a.tasks {
		if res.Err != nil {
			t.Err = res.Err
			continue
		}
		t.Seen = res.Tag
		feeds = append(feeds, feed{t, res.Data[at : at+a.spans[i]]})
		at += a.spans[i]
	}
	return feeds
}
