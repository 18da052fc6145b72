package store

import (
	"math"
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
)

// Plan says which requests answer the spans of one Read, and cuts their bodies back into spans.
type Plan struct {
	// Requests are the ranges to ask for, absolute ones ascending and apart by more than the gap. Off < 0 is a suffix
	// of -Off bytes. An unknown size leaves a whole object as {0, ToEnd}.
	Requests []Span
	// Limit is how many bytes the requests may bring in all. PlanRead has checked those whose length it knows.
	Limit int64

	key   string
	spans []Span
	by    []int // the request that answers spans[i]; -1: no bytes are needed
}

// ToEnd as the Len of a planned request means "to the end of the object".
const ToEnd = math.MaxInt64

// Body is the answer to one planned request: Data begins at offset Off of the object.
type Body struct {
	Off  int64
	Data []byte
}

// PlanRead unites spans of r that lie at most gap bytes apart, or r.Gap if that is less. size is the object's, or -1 when unknown: then suffixes
// cannot be placed and share one request of their own, and the end is checked by Cut. A span that leaves the object is Corrupt.
func PlanRead(r Read, size, gap int64) (Plan, error) {
	p := Plan{key: r.Key, spans: r.Spans, Limit: r.Max}
	if p.Limit <= 0 {
		p.Limit = MaxRead
	}
	if len(r.Spans) == 0 {
		p.spans = []Span{{0, ToEnd}}
		if size >= 0 {
			p.spans[0].Len = size
		}
	} else if err := p.resolve(size); err != nil {
		return Plan{}, err
	}
	if r.Gap > 0 {
		gap = min(gap, r.Gap)
	}
	p.unite(gap)
	return p, p.checkLimit()
}

// checkLimit gives an Exhausted fault if the requests of known length bring more than Limit bytes.
func (p *Plan) checkLimit() error {
	left := p.Limit
	for _, q := range p.Requests {
		if q.Off < 0 || q.Len == ToEnd {
			continue
		}
		if left -= q.Len; left < 0 {
			return fault.New(fault.Exhausted, p.key, "a read of more than %d bytes", p.Limit)
		}
	}
	return nil
}

// resolve checks the spans and, with a known size, turns suffixes into absolute ranges.
func (p *Plan) resolve(size int64) error {
	out := make([]Span, len(p.spans))
	for i, s := range p.spans {
		switch {
		case s.Off < 0 && size >= 0:
			n := size
			if s.Off > -size {
				n = -s.Off
			}
			s = Span{size - n, n}
		case s.Off < 0:
			s.Len = 0
		case s.Len < 0 || s.Len == ToEnd || s.Off > math.MaxInt64-s.Len:
			return fault.New(fault.Corrupt, p.key, "impossible range: offset %d, length %d", s.Off, s.Len)
		case size >= 0 && s.End() > size:
			return pastEnd(p.key, s, size)
		}
		out[i] = s
	}
	p.spans = out
	return nil
}

func pastEnd(key string, s Span, size int64) error {
	return fault.New(fault.Corrupt, key, "range of %d bytes at offset %d ends behind the object's %d bytes", s.Len, s.Off, size)
}

// unite fills Requests and by.
func (p *Plan) unite(gap int64) {
	p.by = make([]int, len(p.spans))
	order := make([]int, 0, len(p.spans))
	var suffix int64
	for i, s := range p.spans {
		p.by[i] = -1
		switch {
		case s.Off < 0:
			suffix = min(suffix, s.Off)
		case s.Len > 0:
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(min(max(p.spans[a].Off-p.spans[b].Off, -1), 1))
	})
	for _, i := range order {
		s, last := p.spans[i], len(p.Requests)-1
		if last < 0 || s.Off-p.Requests[last].End() > gap {
			p.Requests = append(p.Requests, s)
			last++
		} else if r := &p.Requests[last]; s.End() > r.End() {
			r.Len = s.End() - r.Off
		}
		p.by[i] = last
	}
	if suffix < 0 {
		p.Requests = append(p.Requests, Span{Off: suffix})
		for i, s := range p.spans {
			if s.Off < 0 {
				p.by[i] = len(p.Requests) - 1
			}
		}
	}
}

// Cut slices the bodies, parallel to Requests, into the data of each span. Slices share the bodies' memory. A body too
// short for a span is Corrupt: the object ends before it.
func (p Plan) Cut(bodies []Body) ([][]byte, error) {
	out := make([][]byte, len(p.spans))
	for i, s := range p.spans {
		if p.by[i] < 0 {
			out[i] = []byte{}
			continue
		}
		b := bodies[p.by[i]]
		lo, hi := s.Off-b.Off, s.Off-b.Off+s.Len
		switch n := int64(len(b.Data)); {
		case s.Off < 0:
			lo, hi = max(0, n+s.Off), n
		case s.Len == ToEnd:
			hi = n
		case lo < 0 || hi > n:
			return nil, pastEnd(p.key, s, b.Off+n)
		}
		out[i] = b.Data[lo:hi:hi]
	}
	return out, nil
}

// CheckTag gives a Stale fault when want is set and is not got.
func CheckTag(key string, want, got Tag) error {
	if want == "" || want == got {
		return nil
	}
	return fault.New(fault.Stale, key, "changed since it was described: tag %q, expected %q", got, want)
}
