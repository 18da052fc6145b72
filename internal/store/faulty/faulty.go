// Package faulty answers: does the caller survive a store that fails? It decorates a store with faults by rule, and, with
// Slow, with the latency of an object store. For tests and benches.
//
// Whether a rule with a rate strikes depends on the seed, the rule, the key and how often the rule has seen that key, not
// on the order in which goroutines run: a failing run can be replayed.
package faulty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Op is an operation of a store. Every read of a Fetch and every key of Stat and Delete is an operation of its own.
type Op string

// The operations.
const (
	Any    Op = "" // in rules: all of them
	Fetch  Op = "fetch"
	PutNew Op = "put new"
	PutIf  Op = "put if"
	Stat   Op = "stat"
	List   Op = "list" // its key is the prefix
	Delete Op = "delete"
)

// Rule says when something happens, and what.
type Rule struct {
	Op   Op
	Key  func(key string) bool // nil: every key
	Nth  int                   // the nth operation that matches, from 1; 0: by Rate
	Rate float64               // probability for each operation that matches

	Do    func(ctx context.Context, op Op, key string) // called before the operation, without locks; may use other stores
	Err   func(key string) error                       // nil: the operation goes on
	After bool                                         // the operation is done, but the answer is lost and Err comes instead
	Flip  bool                                         // the read succeeds with one bit of its data inverted
}

// Class makes errors of class c that do not pass.
func Class(c fault.Class) func(string) error {
	return func(key string) error { return fault.New(c, key, "injected fault") }
}

// Throttled is what a store says that wants fewer requests.
func Throttled(key string) error {
	return fault.New(fault.Exhausted, key, "injected: slow down").WithRetry()
}

// TimedOut is an operation of which nobody knows whether it was done.
func TimedOut(key string) error {
	return fault.New(fault.Unclassified, key, "injected: timed out").WithRetry()
}

// CutShort is a body that ended early: a backend gives it as an error, never as a short slice.
func CutShort(key string) error {
	return fault.New(fault.Unclassified, key, "injected: connection broke").WithCause(io.ErrUnexpectedEOF).WithRetry()
}

// Store is a decorator that injects faults.
type Store struct {
	inner store.Store
	seed  uint64
	rules []Rule

	mu    sync.Mutex
	seen  []int            // by rule: operations that matched
	byKey []map[string]int // the same by key
	hits  []int            // by rule: how often it struck
}

var _ store.Store = (*Store)(nil)

// New decorates inner. Of several rules that strike the first with an Err or Flip counts; every Do is called.
func New(inner store.Store, seed uint64, rules ...Rule) *Store {
	s := &Store{inner: inner, seed: seed, rules: rules, seen: make([]int, len(rules)), hits: make([]int, len(rules))}
	for range rules {
		s.byKey = append(s.byKey, map[string]int{})
	}
	return s
}

// Injected is how often each rule struck, parallel to the rules.
func (s *Store) Injected() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int(nil), s.hits...)
}

// strike calls the hooks of an operation and gives the rule that decides its outcome, or a rule that does nothing.
func (s *Store) strike(ctx context.Context, op Op, key string) (outcome Rule) {
	var hit []Rule
	s.mu.Lock()
	for i, r := range s.rules {
		if r.Op != Any && r.Op != op || r.Key != nil && !r.Key(key) {
			continue
		}
		s.seen[i]++
		s.byKey[i][key]++
		if r.Nth > 0 && s.seen[i] == r.Nth || r.Nth == 0 && s.draw(i, key, s.byKey[i][key]) < r.Rate {
			s.hits[i]++
			hit = append(hit, r)
		}
	}
	s.mu.Unlock()
	for _, r := range hit {
		if r.Do != nil {
			r.Do(ctx, op, key)
		}
		if outcome.Err == nil && !outcome.Flip {
			outcome = r
		}
	}
	return outcome
}

// draw is a number in [0, 1) that depends on its arguments and the seed.
func (s *Store) draw(rule int, key string, n int) float64 {
	return float64(xxhash.Sum64String(fmt.Sprintf("%d %d %d %s", s.seed, rule, n, key))>>11) / (1 << 53)
}

// Fetch implements store.Store.
func (s *Store) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	out := make([]store.Result, len(reads))
	outcomes := make([]Rule, len(reads))
	var sent []store.Read
	var at []int
	for i, r := range reads {
		outcomes[i] = s.strike(ctx, Fetch, r.Key)
		if o := outcomes[i]; o.Err != nil && !o.After {
			out[i] = store.Result{Size: -1, Err: o.Err(r.Key)}
			continue
		}
		sent, at = append(sent, r), append(at, i)
	}
	if len(sent) == 0 {
		return out
	}
	for k, res := range s.inner.Fetch(ctx, sent) {
		switch o := outcomes[at[k]]; {
		case o.Err != nil:
			res = store.Result{Size: -1, Err: o.Err(sent[k].Key)}
		case o.Flip && res.Err == nil:
			res.Data = s.flip(sent[k].Key, res.Data)
		}
		out[at[k]] = res
	}
	return out
}

// flip gives a copy of data with one bit inverted.
func (s *Store) flip(key string, data [][]byte) [][]byte {
	total := 0
	out := make([][]byte, len(data))
	for i, b := range data {
		out[i] = append([]byte{}, b...)
		total += 8 * len(b)
	}
	bit := int(s.draw(math.MaxInt, key, total) * float64(total))
	for i := range out {
		if bit < 8*len(out[i]) {
			out[i][bit/8] ^= 1 << (bit % 8)
			break
		}
		bit -= 8 * len(out[i])
	}
	return out
}

// do runs one operation under the rules.
func (s *Store) do(ctx context.Context, op Op, key string, f func() error) error {
	o := s.strike(ctx, op, key)
	if o.Err != nil && !o.After {
		return o.Err(key)
	}
	if err := f(); err != nil || o.Err == nil {
		return err
	}
	return o.Err(key)
}

// put is do for writes, whose tag is lost with the answer.
func (s *Store) put(ctx context.Context, op Op, key string, f func() (store.Tag, error)) (tag store.Tag, err error) {
	err = s.do(ctx, op, key, func() (err error) {
		tag, err = f()
		return err
	})
	if err != nil {
		return "", err
	}
	return tag, nil
}

// PutNew implements store.Store.
func (s *Store) PutNew(ctx context.Context, key string, r io.ReadSeeker) (store.Tag, error) {
	return s.put(ctx, PutNew, key, func() (store.Tag, error) { return s.inner.PutNew(ctx, key, r) })
}

// PutIf implements store.Store.
func (s *Store) PutIf(ctx context.Context, key string, old store.Tag, b []byte) (store.Tag, error) {
	return s.put(ctx, PutIf, key, func() (store.Tag, error) { return s.inner.PutIf(ctx, key, old, b) })
}

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, keys []string) []store.Info {
	outcomes := make([]Rule, len(keys))
	for i, key := range keys {
		outcomes[i] = s.strike(ctx, Stat, key)
	}
	out := s.inner.Stat(ctx, keys)
	for i, key := range keys {
		if f := outcomes[i].Err; f != nil {
			out[i] = store.Info{Key: key, Err: f(key)}
		}
	}
	return out
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, prefix, after string, most int) (out []store.Info, err error) {
	err = s.do(ctx, List, prefix, func() (err error) {
		out, err = s.inner.List(ctx, prefix, after, most)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, keys []string) error {
	var errs []error
	var sent []string
	for _, key := range keys {
		o := s.strike(ctx, Delete, key)
		if o.Err != nil {
			errs = append(errs, o.Err(key))
		}
		if o.Err == nil || o.After {
			sent = append(sent, key)
		}
	}
	if len(sent) > 0 || len(keys) == 0 {
		errs = append(errs, s.inner.Delete(ctx, sent))
	}
	return errors.Join(errs...)
}
