// Package hedge answers: is it worth asking once more? It decorates a store: a read that takes longer than almost all reads like it
// is sent a second time, the first answer wins, and the other request is cancelled (Dean and Barroso, The Tail at Scale, 2013).
// A wave waits for its slowest read, and the slowest of forty reads of an object store takes twice the time of the median.
//
// What is slow is learned: a read waits for the 95th percentile of the last reads of about its size. Second requests are bounded by
// a share of all reads, saved up for a few at once, and there are none while requests wait for their turn: then the delay is our own.
// Only reads are sent twice, never writes, descriptions or listings.
package hedge

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	// DefaultPercent is how many of a hundred reads may be sent twice.
	DefaultPercent = 5

	saved     = 8   // second requests that can be saved up
	mostReads = 256 // of a wave: in larger ones bandwidth counts, and not the slowest
)

// Options bound the second requests. The zero value means the values stated here.
type Options struct {
	Percent float64     // of reads that may be sent twice; 0: DefaultPercent
	Busy    func() bool // whether requests wait for their turn; nil: never
}

// clock is the time; tests have their own.
type clock interface {
	Now() time.Time
	After(time.Duration) <-chan time.Time
}

type wall struct{}

func (wall) Now() time.Time                         { return time.Now() }
func (wall) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Store is a decorator that asks twice.
type Store struct {
	inner   store.Store
	options Options
	clock   clock

	mu     sync.Mutex
	budget float64 // second requests that may be sent now
	seen   [classes]window
}

var _ store.Store = (*Store)(nil)

// New decorates inner.
func New(inner store.Store, o Options) *Store {
	if o.Percent == 0 {
		o.Percent = DefaultPercent
	}
	if o.Busy == nil {
		o.Busy = func() bool { return false }
	}
	return &Store{inner: inner, options: o, clock: wall{}}
}

// Inner implements store.Decorator.
func (s *Store) Inner() store.Store { return s.inner }

// attempt is one request for a read.
type attempt struct {
	read   int // its place in the wave
	start  time.Time
	used   store.Counter
	cancel context.CancelFunc
	result store.Result
}

// Fetch implements store.Store.
func (s *Store) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	if len(reads) == 0 || len(reads) > mostReads {
		return s.inner.Fetch(ctx, reads)
	}
	w := &race{store: s, reads: reads, out: make([]store.Result, len(reads)), running: make([][]*attempt, len(reads)), done: make(chan *attempt, 2*len(reads))}
	for i := range reads {
		w.send(ctx, i)
	}
	s.earn(len(reads))
	w.run(ctx)
	w.used.Waves = min(w.used.Waves, 1)
	store.Count(ctx, w.used)
	return w.out
}

// earn adds to the budget what n reads allow.
func (s *Store) earn(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget = min(saved, s.budget+float64(n)*s.options.Percent/100)
}

// spend takes one second request from the budget, if there is one and it makes sense.
func (s *Store) spend() bool {
	if s.options.Busy() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.budget < 1 {
		return false
	}
	s.budget--
	return true
}

// delay is how long to wait before a read of a class is sent again; ok is false while too little is known.
func (s *Store) delay(class int) (d time.Duration, ok bool) {
	if class < 0 {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[class].high()
}

// took remembers how long a read took.
func (s *Store) took(class int, d time.Duration) {
	if class < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[class].add(d)
}

// race is one wave: every read as one or two attempts.
type race struct {
	store   *Store
	reads   []store.Read
	out     []store.Result
	running [][]*attempt // by read; nil: answered
	done    chan *attempt
	used    store.Usage
}

func (r *race) send(ctx context.Context, i int) {
	a := &attempt{read: i, start: r.store.clock.Now()}
	ctx, a.cancel = context.WithCancel(store.CountOnly(ctx, &a.used))
	r.running[i] = append(r.running[i], a)
	go func() {
		a.result = r.store.inner.Fetch(ctx, r.reads[i:i+1:i+1])[0]
		r.done <- a
	}()
}

// run waits for an answer to every read. Reads of one class become slow at the same moment, because a wave starts at once.
func (r *race) run(ctx context.Context) {
	start, left := r.store.clock.Now(), len(r.reads)
	alarms := [classes]<-chan time.Time{}
	for i := range r.reads {
		c := classOf(r.reads[i])
		if c < 0 || alarms[c] != nil {
			continue
		}
		if d, ok := r.store.delay(c); ok {
			alarms[c] = r.store.clock.After(d)
		}
	}
	for left > 0 {
		class := -1
		select {
		case a := <-r.done:
			if r.settle(a, start) {
				left--
			}
			continue
		case <-alarms[0]:
			class = 0
		case <-alarms[1]:
			class = 1
		case <-alarms[2]:
			class = 2
		case <-alarms[3]:
			class = 3
		}
		alarms[class] = nil
		for i := range r.reads {
			if r.running[i] != nil && classOf(r.reads[i]) == class && r.store.spend() {
				r.used.Hedges++
				r.send(ctx, i)
			}
		}
	}
}

// settle takes an answer, unless it is one that may be better by the other attempt. It reports whether the read is answered by it.
func (r *race) settle(a *attempt, start time.Time) bool {
	all := r.running[a.read]
	if all == nil {
		return false // the other attempt has won
	}
	a.cancel()
	r.used = r.used.Add(a.used.Usage())
	if len(all) > 1 && fault.Retryable(a.result.Err) {
		for k, other := range all {
			if other == a {
				r.running[a.read] = append(all[:k:k], all[k+1:]...)
			}
		}
		return false
	}
	for _, loser := range all {
		if loser != a {
			loser.cancel()
			r.used = r.used.Add(loser.used.Usage())
		}
	}
	if a.result.Err == nil {
		r.store.took(classOf(r.reads[a.read]), r.store.clock.Now().Sub(start))
	}
	r.out[a.read], r.running[a.read] = a.result, nil
	return true
}

// PutNew implements store.Store.
func (s *Store) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	return s.inner.PutNew(ctx, key, r)
}

// PutIf implements store.Store.
func (s *Store) PutIf(ctx context.Context, key string, old store.Tag, b []byte) (store.Tag, error) {
	return s.inner.PutIf(ctx, key, old, b)
}

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, keys []string) []store.Info { return s.inner.Stat(ctx, keys) }

// List implements store.Store.
func (s *Store) List(ctx context.Context, prefix, after string, most int) ([]store.Info, error) {
	return s.inner.List(ctx, prefix, after, most)
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, keys []string) error { return s.inner.Delete(ctx, keys) }
