// Package wave answers: how does work that needs bytes get them in the fewest dependent round trips?
//
// Every task says which spans of which object it needs next; a runner unites the needs of all tasks into one store.Fetch,
// feeds them, and repeats until none needs more. A query's round trips are then the longest chain of one task and not the
// sum. The package knows objects and spans, not predicates or tables.
package wave

import (
	"context"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Steps is work on one object that needs bytes wave by wave, in absolute offsets.
type Steps interface {
	// Need is the spans wanted next; empty: done.
	Need() []store.Span
	// Feed takes exactly the needed spans, in order. An error ends the steps.
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

// Run advances all tasks together until each is done or failed. Only a cancelled context or an exhausted limit is an
// error of the run itself: a task that fails alone leaves its reason in Err.
func Run(ctx context.Context, st store.Store, tasks []*Task) error {
	for {
		reads, askers := collect(tasks)
		if len(reads) == 0 {
			return nil
		}
		results := st.Fetch(ctx, reads)
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, res := range results {
			t := askers[i]
			if res.Err != nil {
				if fault.Is(res.Err, fault.Exhausted) {
					return res.Err
				}
				t.Err = res.Err
				continue
			}
			t.Seen = res.Tag
			t.Err = t.Steps.Feed(res.Data)
		}
	}
}

func collect(tasks []*Task) (reads []store.Read, askers []*Task) {
	for _, t := range tasks {
		if t.Err != nil {
			continue
		}
		if spans := t.Steps.Need(); len(spans) > 0 {
			reads = append(reads, store.Read{Key: t.Key, Tag: t.Tag, Spans: spans})
			askers = append(askers, t)
		}
	}
	return reads, askers
}
