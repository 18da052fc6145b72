// Package trace answers: which waves did a query wait for, and what did each of them bring? It decorates a store with a log.
//
// A log is for one query at a time: explain draws its waterfall from it. The package adds no request and changes no answer.
package trace

import (
	"context"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/store"
)

// Wave is one wave that sent at least one request.
type Wave struct {
	Of         string        // which store, in the words of who made the decorator
	Start, End time.Duration // since the log was begun
	Objects    int
	First      string // one of their keys
	Requests   int64
	Bytes      int64
	Failed     int // objects that could not be read
}

// Log collects waves. It is safe for concurrent use.
type Log struct {
	begun time.Time
	mu    sync.Mutex
	waves []Wave
}

// NewLog begins a log.
func NewLog() *Log { return &Log{begun: time.Now()} }

// Waves is what was logged, in the order in which the waves ended.
func (l *Log) Waves() []Wave {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Wave(nil), l.waves...)
}

// Store logs the waves of a store.
type Store struct {
	store.Store
	log *Log
	of  string
}

var _ store.Store = (*Store)(nil)

// New logs what inner reads under the name of.
func New(inner store.Store, log *Log, of string) *Store {
	return &Store{Store: inner, log: log, of: of}
}

// Fetch implements store.Store.
func (s *Store) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	var c store.Counter
	start := time.Since(s.log.begun)
	out := s.Store.Fetch(store.WithCounter(ctx, &c), reads)
	u := c.Usage()
	if u.Requests() == 0 || len(reads) == 0 {
		return out
	}
	w := Wave{Of: s.of, Start: start, End: time.Since(s.log.begun), Objects: len(reads), First: reads[0].Key, Requests: u.Requests(), Bytes: u.BytesRead}
	for i := range out {
		if out[i].Err != nil {
			w.Failed++
		}
	}
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.waves = append(s.log.waves, w)
	return out
}

// Forget makes a cache below drop an object.
func (s *Store) Forget(key string) {
	if f, ok := s.Store.(interface{ Forget(key string) }); ok {
		f.Forget(key)
	}
}
