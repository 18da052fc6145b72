// Package retry answers: does the same call succeed if it is made again? It decorates a store: errors that are marked as passing
// (fault.Retryable) are tried again after a wait, others are given back at once.
//
// Waits are random between nothing and a bound that doubles ("full jitter", Brooker, Exponential Backoff And Jitter, 2015), so
// that many clients that failed together do not come back together. Tries and the sum of waits are bounded for each operation.
//
// A write that timed out may have happened. If it is tried again and meets a conflict, the object is compared with what was to
// be written: equal bytes are the success of the first try. So two writers of equal bytes can both be told that they won, and a
// write that was done and replaced meanwhile is a conflict that says so. Who must know writes something of his own into the bytes.
package retry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Options bound the tries of one operation. The zero value means the values stated here.
type Options struct {
	Tries  int           // the first one included; 0: 8
	First  time.Duration // bound of the first wait; 0: 50 ms
	Most   time.Duration // bound of any wait; 0: 5 s
	Budget time.Duration // of all waits together; 0: 30 s
}

// Store is a decorator that tries again.
type Store struct {
	inner   store.Store
	options Options
	sleep   func(context.Context, time.Duration) error
}

var _ store.Store = (*Store)(nil)

// Inner implements store.Decorator.
func (s *Store) Inner() store.Store { return s.inner }

// New decorates inner.
func New(inner store.Store, o Options) *Store {
	if o.Tries == 0 {
		o.Tries = 8
	}
	if o.First == 0 {
		o.First = 50 * time.Millisecond
	}
	if o.Most == 0 {
		o.Most = 5 * time.Second
	}
	if o.Budget == 0 {
		o.Budget = 30 * time.Second
	}
	return &Store{inner: inner, options: o, sleep: sleep}
}

// tries are those of one operation.
type tries struct {
	of     *Store
	hurry  *hurry // nil: there is none
	made   int
	waited time.Duration
}

func (s *Store) begin(ctx context.Context) *tries { return &tries{of: s, hurry: hurryOf(ctx)} }

// again waits before the next try; false: there is none, because err does not pass, the tries are used up, or ctx has ended.
func (t *tries) again(ctx context.Context, err error) bool {
	o := t.of.options
	t.made++
	if most := t.hurry.heard(err, o.Tries); err == nil || !fault.Retryable(err) || t.made >= most || ctx.Err() != nil {
		return false
	}
	wait := rand.N(min(o.Most, o.First<<min(t.made-1, 20)) + 1)
	if t.waited += wait; t.waited > o.Budget {
		return false
	}
	return t.of.sleep(ctx, wait) == nil
}

// last is the error of the last try; if the context ended while it might have passed, it is the context's as well.
func last(ctx context.Context, subject string, err error) error {
	if ctx.Err() == nil || !fault.Retryable(err) || errors.Is(err, ctx.Err()) {
		return err
	}
	return fault.About(subject, errors.Join(ctx.Err(), err))
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Fetch implements store.Store. Only the reads that failed are sent again.
func (s *Store) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	t := s.begin(ctx)
	out := s.inner.Fetch(ctx, reads)
	t.repeat(ctx, len(reads), func(i int) error { return out[i].Err }, func(failed []int) {
		some := make([]store.Read, len(failed))
		for k, i := range failed {
			some[k] = reads[i]
		}
		for k, r := range s.inner.Fetch(ctx, some) {
			out[failed[k]] = r
		}
	})
	for i := range out {
		out[i].Err = last(ctx, reads[i].Key, out[i].Err)
	}
	return out
}

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, keys []string) []store.Info {
	t := s.begin(ctx)
	out := s.inner.Stat(ctx, keys)
	t.repeat(ctx, len(keys), func(i int) error { return out[i].Err }, func(failed []int) {
		some := make([]string, len(failed))
		for k, i := range failed {
			some[k] = keys[i]
		}
		for k, info := range s.inner.Stat(ctx, some) {
			out[failed[k]] = info
		}
	})
	for i := range out {
		out[i].Err = last(ctx, keys[i], out[i].Err)
	}
	return out
}

// repeat calls do with those of n parts whose errors pass, until there are none or the tries are used up.
func (t *tries) repeat(ctx context.Context, n int, err func(int) error, do func(failed []int)) {
	for {
		var failed []int
		for i := range n {
			if fault.Retryable(err(i)) {
				failed = append(failed, i)
			} else {
				t.hurry.heard(nil, 0)
			}
		}
		if len(failed) == 0 || !t.again(ctx, err(failed[0])) {
			return
		}
		do(failed)
	}
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, prefix, after string, most int) (infos []store.Info, err error) {
	for t := s.begin(ctx); ; {
		if infos, err = s.inner.List(ctx, prefix, after, most); !t.again(ctx, err) {
			return infos, last(ctx, prefix, err)
		}
	}
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, keys []string) (err error) {
	for t := s.begin(ctx); ; {
		if err = s.inner.Delete(ctx, keys); !t.again(ctx, err) {
			return last(ctx, "delete", err)
		}
	}
}

// PutNew implements store.Store.
func (s *Store) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	return s.put(ctx, key, r, func() (store.Tag, error) { return s.inner.PutNew(ctx, key, r) })
}

// PutIf implements store.Store.
func (s *Store) PutIf(ctx context.Context, key string, old store.Tag, b []byte) (store.Tag, error) {
	return s.put(ctx, key, bytes.NewReader(b), func() (store.Tag, error) { return s.inner.PutIf(ctx, key, old, b) })
}

func (s *Store) put(ctx context.Context, key string, r io.ReadSeeker, try func() (store.Tag, error)) (store.Tag, error) {
	uncertain := false // an earlier try may have been done
	for t := s.begin(ctx); ; {
		tag, err := try()
		if uncertain && fault.Is(err, fault.Conflict) {
			if mine, ok := s.written(ctx, key, r); ok {
				return mine, nil
			}
			return "", fault.New(fault.Conflict, key, "somebody else wrote it, before or after an earlier try of this write that may have been done").WithCause(err)
		}
		// Throttling and lost races are answers; anything else that passes may have been done.
		uncertain = uncertain || fault.Retryable(err) && !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.Exhausted)
		if !t.again(ctx, err) {
			return tag, last(ctx, key, err)
		}
	}
}
