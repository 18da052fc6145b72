package retry

import (
	"context"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
)

// hurriedTries is how often an operation in a hurry is tried that gets no answer at all.
const hurriedTries = 3

// hurry is the impatience of one context.
type hurry struct {
	most time.Duration
	late context.CancelFunc

	mu       sync.Mutex
	timer    *time.Timer // nil: nothing was asked for yet, or there is no bound
	answered bool
}

type hurryKey struct{}

// Hurry is a context for work that has another way to go where a server is down. Under it a store of this package tries what gets no answer
// (fault.Unreachable) three times, and the context ends when nothing was answered within most of the first request; 0: it does not. The first
// success, or error that does not pass, ends the hurry: from then on stores are as patient as ever. end frees what the context holds.
func Hurry(ctx context.Context, most time.Duration) (hurried context.Context, end context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	h := &hurry{most: most, late: cancel}
	return context.WithValue(ctx, hurryKey{}, h), func() { h.answer(); cancel() }
}

// hurryOf is that of a context, whose time begins to run; nil if there is none.
func hurryOf(ctx context.Context) *hurry {
	h, _ := ctx.Value(hurryKey{}).(*hurry)
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer == nil && !h.answered && h.most > 0 {
		h.timer = time.AfterFunc(h.most, h.late)
	}
	return h
}

// answer ends the hurry.
func (h *hurry) answer() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answered = true
	if h.timer != nil {
		h.timer.Stop()
	}
}

// heard takes note of how a try ended, and gives the number of tries that there may be of otherwise most.
func (h *hurry) heard(err error, most int) int {
	if h == nil {
		return most
	}
	if !fault.Retryable(err) {
		h.answer()
		return most
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.answered || !fault.Is(err, fault.Unreachable) {
		return most
	}
	return min(most, hurriedTries)
}
