package skomer

import (
	"context"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store/retry"
)

const (
	defaultOverlayWait = 2 * time.Second
	// statusWait is how long a status waits for the first answer of the overlay's store: it has nothing else to say.
	statusWait = 10 * time.Second
)

// silent is the overlays whose store did not answer when it was asked last, by location.
type silent struct {
	remember time.Duration

	mu sync.Mutex
	at map[string]silence
}

type silence struct {
	since time.Time
	err   error
}

// note remembers that an overlay did not answer, and returns why.
func (s *silent) note(where string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[string]silence{}
	}
	s.at[where] = silence{time.Now(), err}
	return err
}

// told is why an overlay did not answer, if that is not long ago.
func (s *silent) told(where string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.at[where]
	if ok && time.Since(was.since) >= s.remember {
		delete(s.at, where)
		return nil
	}
	return was.err
}

// forget is for an overlay that has answered.
func (s *silent) forget(where string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, where)
}

// hurried looks at the overlay for somebody who has another way to go, or nothing to gain by waiting. Where nothing is answered in time the
// error is an Unreachable fault.
func (t *Table) hurried(ctx context.Context, wait time.Duration, look func(context.Context) (*overlay.Version, error)) (*overlay.Version, error) {
	soon, end := retry.Hurry(ctx, max(wait, 0))
	defer end()
	v, err := look(soon)
	if err != nil && soon.Err() != nil && ctx.Err() == nil {
		return nil, fault.New(fault.Unreachable, t.where, "no answer within %s", wait).WithRetry().
			WithFix("check the endpoint of the overlay's store, the network and the proxy")
	}
	return v, err
}
