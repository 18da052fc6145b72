// Package ranges answers: which HTTP requests bring the spans of many reads, all at once, and what do their answers say? It is what
// the backends for object storage have in common.
//
// Spans of one object that lie close together share a request. The tags of all answers of a read are compared with each other and
// with the one that was asked for, so that servers that ignore conditions are found out. Where a span lies outside of its object, or
// a suffix cannot be asked for, the object's size is asked for and the read is planned once more.
//
// It knows no protocol: a Backend sends one request.
package ranges

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
	"github.com/skomerdb/skomer/internal/store/limit"
)

// Backend sends single requests of a protocol. Errors are classified; neither method tries again.
type Backend interface {
	// Get asks for one planned range (see store.Plan) of an object, if its tag is still tag, which may be empty.
	Get(ctx context.Context, key string, tag store.Tag, q store.Span) (*Answer, error)
	// Head describes an object.
	Head(ctx context.Context, key string) (store.Info, error)
}

// Answer is the answer to one range, its body not read yet.
type Answer struct {
	Body     io.ReadCloser
	Off, Len int64 // where the body begins in the object, and its bytes; a negative Len: the server did not say
	Size     int64 // of the whole object
	Tag      store.Tag
}

// ErrOutside is what Get gives if the range begins behind the object's end.
var ErrOutside = errors.New("the range begins behind the object's end")

// Reader reads by waves.
type Reader struct {
	Backend Backend
	Gate    *limit.Gate
	Gap     int64              // by which spans coalesce
	Check   func(string) error // of a key, before anything is sent
	// NoSuffix: the protocol knows no suffixes. The size of an object is asked for first, unless it was seen under the same tag.
	NoSuffix bool

	sizes sizes
}

// pending is a Read on its way.
type pending struct {
	read    store.Read
	plan    store.Plan
	left    atomic.Int64 // bytes that its answers may still bring
	answers []answer     // to the plan's requests, or one to a HEAD
	head    bool         // only the size is asked for
	err     error
}

// answer is what one request found out. outside: only the object's size and tag, because a range lies outside of it.
type answer struct {
	body    store.Body
	tag     store.Tag
	size    int64
	outside bool
	err     error
}

// Fetch does what store.Store says of it.
func (r *Reader) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	all := make([]*pending, len(reads))
	for i, read := range reads {
		all[i] = r.plan(read)
	}
	sent := r.wave(ctx, all)
	var again []*pending
	for _, p := range all {
		if r.placed(p) {
			again = append(again, p)
		}
	}
	if r.wave(ctx, again) || sent {
		store.Count(ctx, store.Usage{Waves: 1})
	}
	out := make([]store.Result, len(reads))
	for i, p := range all {
		out[i] = r.result(p)
	}
	return out
}

// Stat does what store.Store says of it.
func (r *Reader) Stat(ctx context.Context, keys []string) []store.Info {
	out := make([]store.Info, len(keys))
	var wg sync.WaitGroup
	for i, key := range keys {
		err := r.Check(key)
		var pass limit.Pass
		if err == nil {
			pass, err = r.Gate.Enter(ctx)
			err = fault.About(key, err)
		}
		if err != nil {
			out[i] = store.Info{Key: key, Err: err}
			continue
		}
		wg.Go(func() {
			store.Count(ctx, store.Usage{Heads: 1})
			info, err := r.Backend.Head(ctx, key)
			info.Key, info.Err = key, err
			out[i] = info
			r.Saw(key, info.Tag, info.Size)
			pass.Leave(err)
		})
	}
	wg.Wait()
	return out
}

func (r *Reader) plan(read store.Read) *pending {
	p := &pending{read: read}
	if p.err = r.Check(read.Key); p.err != nil {
		return p
	}
	size := int64(-1)
	if r.NoSuffix {
		size = r.sizes.of(read.Key, read.Tag)
	}
	p.plan, p.err = store.PlanRead(read, size, r.Gap)
	p.head = len(p.plan.Requests) == 0 ||
		r.NoSuffix && slices.ContainsFunc(p.plan.Requests, func(q store.Span) bool { return q.Off < 0 })
	return p
}

// wave sends all requests of the plans and waits for the answers. It reports whether it sent any.
func (r *Reader) wave(ctx context.Context, all []*pending) bool {
	var wg sync.WaitGroup
	sent := false
	for _, p := range all {
		if p.err != nil {
			continue
		}
		p.left.Store(p.plan.Limit)
		n := len(p.plan.Requests)
		if p.head {
			n = 1
		}
		p.answers = make([]answer, n)
		for k := range p.answers {
			pass, err := r.Gate.Enter(ctx)
			if err != nil {
				p.err = fault.About(p.read.Key, err)
				break
			}
			sent = true
			wg.Go(func() {
				p.answers[k] = r.ask(ctx, p, k)
				pass.Leave(p.answers[k].err)
			})
		}
	}
	wg.Wait()
	return sent
}

// placed plans a read again if only its size is known by now. It is true if there is something to fetch then, of the same content.
func (r *Reader) placed(p *pending) bool {
	at := slices.IndexFunc(p.answers, func(a answer) bool { return a.outside && a.err == nil })
	if p.err != nil || at < 0 {
		return false
	}
	a := p.answers[at]
	if p.err = store.CheckTag(p.read.Key, p.read.Tag, a.tag); p.err != nil {
		return false
	}
	plan, err := store.PlanRead(p.read, a.size, r.Gap)
	if err != nil {
		p.err = err
		return false
	}
	p.plan, p.answers, p.read.Tag, p.head = plan, []answer{a}, a.tag, false
	return len(plan.Requests) > 0
}

// ask sends the k-th request of a read. Spans without bytes need none, but the object's size must be known to judge them.
func (r *Reader) ask(ctx context.Context, p *pending, k int) answer {
	if !p.head {
		a := r.get(ctx, p, p.plan.Requests[k])
		if !errors.Is(a.err, ErrOutside) {
			return a
		}
	}
	store.Count(ctx, store.Usage{Heads: 1})
	info, err := r.Backend.Head(ctx, p.read.Key)
	return answer{tag: info.Tag, size: info.Size, outside: true, err: err}
}

func (r *Reader) get(ctx context.Context, p *pending, q store.Span) answer {
	key := p.read.Key
	store.Count(ctx, store.Usage{Gets: 1})
	got, err := r.Backend.Get(ctx, key, p.read.Tag, q)
	if err != nil {
		return answer{err: err}
	}
	defer got.Body.Close()
	a := answer{tag: got.Tag, size: got.Size, body: store.Body{Off: got.Off}}
	if got.Len < 0 {
		a.err = fault.New(fault.Unsupported, key, "the server does not say how long its answer is")
		return a
	}
	if p.left.Add(-got.Len) < 0 {
		a.err = fault.New(fault.Exhausted, key, "a read of more than %d bytes", p.plan.Limit)
		return a
	}
	a.body.Data = make([]byte, got.Len)
	n, err := io.ReadFull(got.Body, a.body.Data)
	store.Count(ctx, store.Usage{BytesRead: int64(n)})
	switch {
	case err == nil || got.Len == 0:
	case ctx.Err() != nil:
		a.err = fault.About(key, ctx.Err())
	default:
		a.err = fault.New(fault.Unclassified, key, "the answer broke off").WithCause(err).WithRetry()
	}
	return a
}

// result puts the answers together.
func (r *Reader) result(p *pending) store.Result {
	for _, a := range p.answers {
		if p.err == nil {
			p.err = a.err
		}
	}
	if p.err != nil {
		return store.Result{Size: -1, Err: p.err}
	}
	first := p.answers[0]
	res := store.Result{Tag: first.tag, Size: first.size}
	var bodies []store.Body
	for _, a := range p.answers {
		if a.tag != first.tag {
			return store.Result{Size: -1, Err: fault.New(fault.Stale, p.read.Key, "changed while it was read").WithRetry()}
		}
		bodies = append(bodies, a.body)
	}
	if res.Err = store.CheckTag(p.read.Key, p.read.Tag, res.Tag); res.Err != nil {
		return res
	}
	if r.NoSuffix {
		r.sizes.saw(p.read.Key, res.Tag, res.Size)
	}
	if _, res.Err = store.PlanRead(p.read, res.Size, r.Gap); res.Err != nil { // judges spans without bytes, too
		return res
	}
	res.Data, res.Err = p.plan.Cut(bodies)
	return res
}

// longestSuffix is more than any object has; servers fail on numbers near 2^63.
const longestSuffix = 1 << 46

// Header is the Range header of a planned request; "": the whole object.
func Header(q store.Span) string {
	switch {
	case q.Off < 0:
		return "bytes=-" + strconv.FormatInt(-max(q.Off, -longestSuffix), 10)
	case q.Len == store.ToEnd && q.Off == 0:
		return ""
	}
	return fmt.Sprintf("bytes=%d-%d", q.Off, q.End()-1)
}

// Content is where an answer of n bytes begins, and the object's size, by its Content-Range header. One that contradicts n is a
// broken answer.
func Content(key, header string, n int64) (off, size int64, err error) {
	if header == "" || n < 0 {
		return 0, n, nil
	}
	span, total, ok := strings.Cut(strings.TrimPrefix(header, "bytes "), "/")
	first, last, ok2 := strings.Cut(span, "-")
	off, err = strconv.ParseInt(first, 10, 64)
	end, err2 := strconv.ParseInt(last, 10, 64)
	size, err3 := strconv.ParseInt(total, 10, 64)
	if !ok || !ok2 || errors.Join(err, err2, err3) != nil || off < 0 || end-off != n-1 || end >= size {
		return 0, 0, fault.New(fault.Unclassified, key, "bad answer: Content-Range %q of %d bytes", header, n).WithRetry()
	}
	return off, size, nil
}
