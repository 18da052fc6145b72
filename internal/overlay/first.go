package overlay

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// MaxAheadBytes is the bytes of all parts that a head names to be read ahead; where Ahead tells of more, it names none.
const MaxAheadBytes = 1 << 20

// What a head copies of lists, and what is read for it ahead.
const (
	maxListCopies  = 40 << 10 // bytes of all copies
	maxAhead       = 4        // parts
	firstTimeout   = 30 * time.Second
	aheadBelow     = "data/"
	aheadForbidden = "/../"
)

// First is the newest version for a reader that knows nothing yet, in two round trips: a listing of one key and the head beside it, then the
// body, and beside it what the head says will be needed. Its chunks are not read: Full does so when artifacts are to be found.
//
// The head decides nothing. Copies in it count where they have the SHA-256 that the body holds; the parts that it names are only read early, for
// the store's cache to keep, and whoever uses them checks them as ever. early, if not nil, is told what the head says once it is known, in
// another goroutine, which First waits for.
func (o *Overlay) First(ctx context.Context, early func(*Head)) (*Version, error) {
	ctx, cancel := context.WithTimeout(ctx, firstTimeout)
	defer cancel()
	known, done := make(chan *Head, 1), make(chan struct{})
	go func() {
		defer close(done)
		h, err := o.ReadHead(ctx)
		if err != nil {
			known <- nil
			return
		}
		known <- &h
		if early != nil {
			early(&h)
		}
		o.readAhead(ctx, h.Ahead)
	}()
	v, err := o.first(ctx, known)
	if err != nil {
		cancel()
	}
	<-done
	switch {
	case err != nil:
		return nil, err
	case v == nil || v.broken == nil && !v.Mounted():
		return nil, o.notMounted()
	}
	return v, nil
}

func (o *Overlay) first(ctx context.Context, known <-chan *Head) (*Version, error) {
	number, err := o.newestNumber(ctx)
	if err != nil || number == 0 {
		return nil, err
	}
	key := o.key("versions", versionName(number))
	raw, err := fetchAll(ctx, o.store, key)
	if fault.Is(err, fault.NotFound) || err == nil && isStub(raw) {
		return o.newest(ctx) // it expired meanwhile, or stands in the wrong place
	}
	if err != nil {
		return nil, fault.About("overlay version", err)
	}
	b, err := o.parse(key, number, raw)
	if err != nil {
		return o.brokenVersion(number, err), nil
	}
	v := o.versionOf(b)
	v.partial = len(b.chunks) > 0
	for i := range v.views {
		v.views[i].unread = true
	}
	p := parts{version: v}
	p.lists(v.copied(<-known)) // it was asked for long ago: waiting is shorter than another round trip
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	v.bind()
	return v, nil
}

// copied is the lists of the version that a head has true copies of.
func (v *Version) copied(h *Head) map[string]*derivedList {
	out := map[string]*derivedList{}
	if h == nil {
		return out
	}
	for i := range v.body.lists {
		ref := &v.body.lists[i]
		if raw, ok := h.Lists[ref.name]; ok {
			if list, err := ref.open(raw, true); err == nil {
				out[ref.name] = list
			}
		}
	}
	return out
}

// Full is the version with its chunks, which it reads if the version came from First.
func (v *Version) Full(ctx context.Context) (*Version, error) {
	if !v.partial {
		return v, nil
	}
	v.filling.Lock()
	defer v.filling.Unlock()
	if v.full != nil {
		return v.full, nil
	}
	o := v.overlay
	full := o.versionOf(v.body)
	full.lists, full.warnings = v.lists, append([]Warning(nil), v.warnings...)
	o.mu.Lock()
	chunks := maps.Clone(o.chunks)
	o.mu.Unlock()
	for i, w := range v.views {
		if w.chunk != nil {
			chunks[v.body.chunks[i].name] = w.chunk
		}
	}
	p := parts{version: full}
	p.chunks(chunks)
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	full.bind()
	o.remember(full)
	for _, w := range full.warnings {
		if !lasting(w.Reason) {
			return full, nil // the next one may be able to read it
		}
	}
	v.full = full
	return full, nil
}

// readAhead reads parts of bundles, as far as they are few and short.
func (o *Overlay) readAhead(ctx context.Context, parts []Part) {
	var reads []store.Read
	var total int64
	for _, p := range parts {
		if len(reads) == maxAhead || p.Off < 0 || p.Len <= 0 || p.Len > MaxAheadBytes-total ||
			!strings.HasPrefix(p.Key, aheadBelow) || strings.Contains(p.Key, aheadForbidden) {
			return
		}
		total += p.Len
		reads = append(reads, store.Read{Key: o.key(p.Key), Spans: []store.Span{{Off: p.Off, Len: p.Len}}})
	}
	if len(reads) > 0 {
		o.store.Fetch(ctx, reads)
	}
}

// shortLists is the bytes of the version's lists, nil if they are many together.
func (v *Version) shortLists() map[string][]byte {
	out, total := map[string][]byte{}, int64(0)
	for i, ref := range v.body.lists {
		if total += ref.length; total > maxListCopies {
			return nil
		}
		if v.lists[i] != nil {
			out[ref.name] = v.lists[i].raw
		}
	}
	return out
}

// ahead is what a first query is likely to need, nil if that is much.
func (v *Version) ahead() []Part {
	if v.overlay.opts.Ahead == nil || v.broken != nil {
		return nil
	}
	var out []Part
	var total int64
	for _, e := range v.overlay.opts.Ahead(v) {
		if total += e.Len; len(out) == maxAhead || total > MaxAheadBytes {
			return nil
		}
		out = append(out, Part{e.Key, e.Off, e.Len})
	}
	return out
}
