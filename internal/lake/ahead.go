package lake

import (
	"context"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	// aheadFor is how long what was read ahead is kept for whoever asks for it.
	aheadFor = 10 * time.Second
	// aheadBytes is the largest object that is read ahead.
	aheadBytes = 8 << 20
)

// ahead is whole objects that are being read before they are asked for, by location. Each answers one read.
type ahead struct {
	mu   sync.Mutex
	read map[string]*early
}

type early struct {
	done chan struct{}
	used store.Counter
	data []byte
	tag  store.Tag
	err  error
}

// Ahead reads manifest lists and manifests, named as the metadata states them, that are expected to be asked for soon, and returns when it
// has begun. Objects of a table that a snapshot names are never written twice, so that it does not matter when they are read. What
// was expected wrongly costs a request; what cannot be read is read again by whoever asks.
func (l *Lake) Ahead(ctx context.Context, stated []string) {
	for _, path := range stated {
		location := l.mapping.Apply(path)
		if e := l.ahead.begin(location); e != nil {
			go l.readEarly(ctx, location, e)
		}
	}
}

func (l *Lake) readEarly(ctx context.Context, location string, e *early) {
	defer close(e.done)
	ctx, cancel := context.WithTimeout(ctx, aheadFor)
	defer cancel()
	defer time.AfterFunc(aheadFor, func() { l.ahead.take(location, e) })
	s, key, err := l.resolve(location)
	if err != nil {
		e.err = err
		return
	}
	r := s.Fetch(store.CountOnly(ctx, &e.used), []store.Read{{Key: key, Max: aheadBytes}})[0]
	if e.err = r.Err; e.err == nil {
		e.data, e.tag = r.Data[0], r.Tag
	}
}

// begin is nil where the object is being read already.
func (a *ahead) begin(location string) *early {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.read == nil {
		a.read = map[string]*early{}
	}
	if a.read[location] != nil {
		return nil
	}
	e := &early{done: make(chan struct{})}
	a.read[location] = e
	return e
}

// take removes what is read of an object: this, or nil: whatever it is.
func (a *ahead) take(location string, only *early) *early {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.read[location]
	if e == nil || only != nil && e != only {
		return nil
	}
	delete(a.read, location)
	return e
}

// wait gives what was read, and what it cost to the context's counters.
func (e *early) wait(ctx context.Context) ([]byte, store.Tag, error) {
	select {
	case <-e.done:
	case <-ctx.Done():
		return nil, "", fault.About("metadata", context.Cause(ctx))
	}
	store.Count(ctx, e.used.Usage())
	return e.data, e.tag, e.err
}
