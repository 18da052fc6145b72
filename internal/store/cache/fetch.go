package cache

import (
	"context"
	"math"
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// whole stands for the whole object, which a Read asks for with no spans: a suffix longer than any object. Other suffixes
// have a Len of 0 here.
var whole = store.Span{Off: math.MinInt64, Len: -1}

// spansOf are the spans of a read in a form that can be compared.
func spansOf(r store.Read) []store.Span {
	if len(r.Spans) == 0 {
		return []store.Span{whole}
	}
	out := slices.Clone(r.Spans)
	for i := range out {
		if out[i].Off < 0 {
			out[i].Len = 0
		}
	}
	return out
}

// pending is a Read on its way: some spans are answered, the others are to be fetched or waited for.
type pending struct {
	read  store.Read
	spans []store.Span
	data  [][]byte  // by span; nil: not answered yet
	waits []*flight // by span: another caller's read of it; nil if there are none
	leads []*flight // by span: the read that others may wait for; nil if there are none
	tag   store.Tag // of what is answered
	size  int64
	err   error
}

func (p *pending) result() store.Result {
	if p.err != nil {
		return store.Result{Tag: p.tag, Size: p.size, Err: p.err}
	}
	return store.Result{Data: p.data, Tag: p.tag, Size: p.size}
}

// look answers what the cache can and finds out who fetches the rest.
func (s *Store) look(r store.Read) *pending {
	p := &pending{read: r, spans: spansOf(r), size: -1}
	if r.Tag == "" && !s.immutable(r.Key) {
		p.data = make([][]byte, len(p.spans))
		s.held.count(0, len(p.spans), 0)
		return p
	}
	p.data, p.tag, p.size = s.held.find(r.Key, r.Tag, p.spans)
	p.read.Tag = p.tag // what is missing must be of the same content
	hits := len(p.data) - len(p.missing())
	if hits == len(p.data) {
		s.held.count(hits, 0, 0)
		return p
	}
	p.waits, p.leads = make([]*flight, len(p.data)), make([]*flight, len(p.data))
	var misses, joined int
	for i, b := range p.data {
		if b != nil {
			continue
		}
		f, mine := s.flights.join(flightKey{r.Key, p.tag, p.spans[i]})
		if mine {
			p.leads[i] = f
			misses++
		} else {
			p.waits[i] = f
			joined++
		}
	}
	s.held.count(hits, misses, joined)
	return p
}

// missing are the spans to fetch now: not answered, and nobody else is at it.
func (p *pending) missing() []int {
	var out []int
	for i, b := range p.data {
		if b == nil && (p.waits == nil || p.waits[i] == nil) {
			out = append(out, i)
		}
	}
	return out
}

// fetch issues one wave for all that is missing.
func (s *Store) fetch(ctx context.Context, all []*pending) {
	defer func() { // also when the store panics: others wait
		for _, p := range all {
			p.land(s)
		}
	}()
	var reads []store.Read
	var of []*pending
	var which [][]int
	for _, p := range all {
		m := p.missing()
		if p.err != nil || len(m) == 0 {
			continue
		}
		r := store.Read{Key: p.read.Key, Tag: p.read.Tag, Max: p.read.Max}
		if p.spans[0] != whole {
			for _, i := range m {
				r.Spans = append(r.Spans, p.spans[i])
			}
		}
		reads, of, which = append(reads, r), append(of, p), append(which, m)
	}
	if len(reads) == 0 {
		return
	}
	for i, res := range s.Store.Fetch(ctx, reads) {
		s.take(of[i], which[i], res)
	}
}

// take fills in the answer for the spans of p that were missing, and keeps it.
func (s *Store) take(p *pending, missing []int, res store.Result) {
	key := p.read.Key
	if fault.Is(res.Err, fault.Stale) {
		s.held.forget(key)
	}
	if p.err = res.Err; p.err != nil {
		p.tag, p.size = res.Tag, res.Size
		return
	}
	if res.Tag == "" {
		res.Tag = p.read.Tag
	}
	p.tag, p.read.Tag, p.size = res.Tag, res.Tag, max(p.size, res.Size)
	for k, i := range missing {
		p.data[i] = res.Data[k]
		if res.Tag != "" || s.immutable(key) {
			s.keep(key, p.spans[i], res, res.Data[k])
		}
	}
}

func (s *Store) keep(key string, span store.Span, res store.Result, data []byte) {
	off := span.Off
	if span == whole {
		res.Size = int64(len(data))
	}
	if off < 0 {
		if res.Size < 0 {
			return // nobody knows where it lies
		}
		off = res.Size - int64(len(data))
	}
	s.held.keep(key, res.Tag, res.Size, off, data)
}

// land tells those who wait for the reads that p led.
func (p *pending) land(s *Store) {
	for i, f := range p.leads {
		if f == nil {
			continue
		}
		p.leads[i] = nil
		s.flights.land(f, landed{data: p.data[i], tag: p.tag, size: p.size})
	}
}

// await waits for the reads of others and reports whether some of them failed, so that their spans are missing now.
func (s *Store) await(ctx context.Context, all []*pending) (again bool) {
	for _, p := range all {
		for i, f := range p.waits {
			if f == nil || p.err != nil {
				continue
			}
			select {
			case <-f.done:
			case <-ctx.Done():
				p.err = fault.About(p.read.Key, ctx.Err())
				continue
			}
			p.waits[i] = nil
			if got := f.landed; got.data == nil || p.tag != "" && got.tag != p.tag {
				again = true
			} else {
				p.data[i], p.tag, p.size = got.data, got.tag, max(p.size, got.size)
				p.read.Tag = p.tag
			}
		}
	}
	return again
}
