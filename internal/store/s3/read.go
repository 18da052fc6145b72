package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// longestSuffix is more than any object has; servers fail on numbers near 2^63.
const longestSuffix = 1 << 46

// pending is a Read on its way.
type pending struct {
	read    store.Read
	place   place
	plan    store.Plan
	left    atomic.Int64 // bytes that its answers may still bring
	answers []answer     // to the plan's requests, or one to a HEAD
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

// Fetch implements store.Store. An object that turns out to be shorter than a suffix, or empty, may cost more requests: servers
// differ in what they say then.
func (s *Store) Fetch(ctx context.Context, reads []store.Read) []store.Result {
	all := make([]*pending, len(reads))
	for i, r := range reads {
		p := &pending{read: r}
		if p.place, p.err = object(r.Key); p.err == nil {
			p.plan, p.err = store.PlanRead(r, -1, Gap)
		}
		all[i] = p
	}
	var used store.Counter
	s.wave(ctx, all, &used)
	var again []*pending
	for _, p := range all {
		if p.placed() {
			again = append(again, p)
		}
	}
	s.wave(ctx, again, &used)
	sum := used.Usage()
	if sum.Requests() > 0 {
		sum.Waves = 1
	}
	store.Count(ctx, sum)
	out := make([]store.Result, len(reads))
	for i, p := range all {
		out[i] = p.result()
	}
	return out
}

// wave sends all requests of the plans and waits for the answers.
func (s *Store) wave(ctx context.Context, all []*pending, used *store.Counter) {
	var wg sync.WaitGroup
	for _, p := range all {
		if p.err != nil {
			continue
		}
		p.left.Store(p.plan.Limit)
		p.answers = make([]answer, max(1, len(p.plan.Requests)))
		for k := range p.answers {
			if p.err = s.enter(ctx, p.read.Key); p.err != nil {
				break
			}
			wg.Go(func() {
				defer s.leave()
				p.answers[k] = s.ask(ctx, p, k, used)
			})
		}
	}
	wg.Wait()
}

// placed plans a read again if a range was outside of its object, whose size is known by now. It is true if there is something
// to fetch then, of the same content.
func (p *pending) placed() bool {
	at := slices.IndexFunc(p.answers, func(a answer) bool { return a.outside && a.err == nil })
	if p.err != nil || at < 0 {
		return false
	}
	a := p.answers[at]
	if p.err = store.CheckTag(p.read.Key, p.read.Tag, a.tag); p.err != nil {
		return false
	}
	plan, err := store.PlanRead(p.read, a.size, Gap)
	if err != nil {
		p.err = err
		return false
	}
	p.plan, p.answers, p.read.Tag = plan, []answer{a}, a.tag
	return len(plan.Requests) > 0
}

// ask sends the k-th request of a read. Spans without bytes need none, but the object's size must be known to judge them.
func (s *Store) ask(ctx context.Context, p *pending, k int, used *store.Counter) answer {
	client, err := s.connect()
	if err != nil {
		return answer{err: fault.About(p.read.Key, err)}
	}
	if len(p.plan.Requests) > 0 {
		a := p.get(ctx, client, p.plan.Requests[k], used)
		var e *awshttp.ResponseError
		if !errors.As(a.err, &e) || e.HTTPStatusCode() != http.StatusRequestedRangeNotSatisfiable {
			return a
		}
	}
	used.Add(store.Usage{Heads: 1})
	info, err := stat(ctx, client, p.read.Key, p.place)
	return answer{tag: info.Tag, size: info.Size, outside: true, err: err}
}

func (p *pending) get(ctx context.Context, client *s3.Client, q store.Span, used *store.Counter) answer {
	in := &s3.GetObjectInput{Bucket: &p.place.bucket, Key: &p.place.name, Range: rangeOf(q), IfMatch: header(p.read.Tag)}
	used.Add(store.Usage{Gets: 1})
	out, err := client.GetObject(ctx, in)
	if err != nil {
		return answer{err: classify(ctx, p.read.Key, p.place, reading, err)}
	}
	defer out.Body.Close()
	a := answer{tag: tagOf(out.ETag)}
	n := aws.ToInt64(out.ContentLength)
	if out.ContentLength == nil || n < 0 {
		a.err = fault.New(fault.Unsupported, p.read.Key, "the server does not say how long its answer is")
		return a
	}
	if a.body.Off, a.size, err = contentRange(aws.ToString(out.ContentRange), n); err != nil {
		a.err = fault.New(fault.Unclassified, p.read.Key, "bad answer").WithCause(err).WithRetry()
		return a
	}
	if p.left.Add(-n) < 0 {
		a.err = fault.New(fault.Exhausted, p.read.Key, "a read of more than %d bytes", p.plan.Limit)
		return a
	}
	a.body.Data = make([]byte, n)
	got, err := io.ReadFull(out.Body, a.body.Data)
	used.Add(store.Usage{BytesRead: int64(got)})
	switch {
	case err == nil || n == 0:
	case ctx.Err() != nil:
		a.err = fault.About(p.read.Key, ctx.Err())
	default:
		a.err = fault.New(fault.Unclassified, p.read.Key, "the answer broke off").WithCause(err).WithRetry()
	}
	return a
}

// result puts the answers together. Servers that ignore If-Match are found out by the tags they send.
func (p *pending) result() store.Result {
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
	if _, res.Err = store.PlanRead(p.read, res.Size, Gap); res.Err != nil { // judges spans without bytes, too
		return res
	}
	res.Data, res.Err = p.plan.Cut(bodies)
	return res
}

// rangeOf is the header of a planned request; nil: the whole object.
func rangeOf(q store.Span) *string {
	switch {
	case q.Off < 0:
		return aws.String("bytes=-" + strconv.FormatInt(-max(q.Off, -longestSuffix), 10))
	case q.Len == store.ToEnd && q.Off == 0:
		return nil
	}
	return aws.String(fmt.Sprintf("bytes=%d-%d", q.Off, q.End()-1))
}

// contentRange is where an answer of n bytes begins, and the object's size.
func contentRange(text string, n int64) (off, size int64, err error) {
	if text == "" {
		return 0, n, nil
	}
	span, total, ok := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	first, last, ok2 := strings.Cut(span, "-")
	off, err = strconv.ParseInt(first, 10, 64)
	end, err2 := strconv.ParseInt(last, 10, 64)
	size, err3 := strconv.ParseInt(total, 10, 64)
	if !ok || !ok2 || errors.Join(err, err2, err3) != nil || off < 0 || end-off != n-1 || end >= size {
		return 0, 0, fmt.Errorf("Content-Range %q of %d bytes", text, n)
	}
	return off, size, nil
}

// tagOf is an entity tag without its quotes, which not every server sends everywhere.
func tagOf(etag *string) store.Tag { return store.Tag(strings.Trim(aws.ToString(etag), `"`)) }

// header is a tag as If-Match wants it; nil: any.
func header(t store.Tag) *string {
	switch {
	case t == "":
		return nil
	case strings.HasPrefix(string(t), "W/"):
		return aws.String(string(t))
	}
	return aws.String(`"` + string(t) + `"`)
}
