// Package probe answers: does this store do what is asked of it, with this identity? It reads an object that exists, and writes
// some of its own under a prefix, which it removes again.
//
// It looks for what breaks in practice: servers that ignore conditions, identities that may read and not write, and clocks. It knows
// nothing of tables and overlays.
package probe

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Finding is what came of one check.
type Finding struct {
	Name string // what was tried
	Note string // what was found, if all is well
	Err  error  // why not
}

// racers is how many writers create one object at once.
const racers = 8

// another is a tag that an object does not have.
func another(tag store.Tag) store.Tag {
	if tag == "1" {
		return "2"
	}
	return "1"
}

// Reads checks that an object can be described, read by ranges and suffixes, and only while it is what it was.
func Reads(ctx context.Context, s store.Store, key string) []Finding {
	info := s.Stat(ctx, []string{key})[0]
	if info.Err != nil {
		return []Finding{{Name: "describe", Err: info.Err}}
	}
	out := []Finding{{Name: "describe", Note: fmt.Sprintf("%d bytes", info.Size)}}
	if info.Tag == "" {
		out[0].Err = fault.New(fault.Unsupported, key, "the store gives no tag, so that overwritten files are not noticed")
	}
	return append(out, ranged(ctx, s, info), conditional(ctx, s, info))
}

// ranged reads parts of an object twice, alone and together with others.
func ranged(ctx context.Context, s store.Store, info store.Info) Finding {
	f := Finding{Name: "ranges", Note: "a range and a suffix were read"}
	n := min(info.Size, 4)
	parts := s.Fetch(ctx, []store.Read{{Key: info.Key, Spans: []store.Span{{Len: n}, store.Suffix(n)}}})[0]
	if f.Err = parts.Err; f.Err != nil {
		return f
	}
	both := s.Fetch(ctx, []store.Read{{Key: info.Key, Spans: []store.Span{{Len: n}, {Off: info.Size - n, Len: n}}}})[0]
	switch {
	case both.Err != nil:
		f.Err = both.Err
	case !bytes.Equal(parts.Data[0], both.Data[0]) || !bytes.Equal(parts.Data[1], both.Data[1]):
		f.Err = fault.New(fault.Corrupt, info.Key, "the store gives other bytes for the same range")
	}
	return f
}

func conditional(ctx context.Context, s store.Store, info store.Info) Finding {
	f := Finding{Name: "If-Match", Note: "a read of another version is refused"}
	out := s.Fetch(ctx, []store.Read{
		{Key: info.Key, Tag: info.Tag, Spans: []store.Span{{Len: min(info.Size, 1)}}},
		{Key: info.Key, Tag: another(info.Tag), Spans: []store.Span{{Len: min(info.Size, 1)}}},
	})
	switch {
	case out[0].Err != nil:
		f.Err = out[0].Err
	case out[1].Err == nil:
		f.Err = fault.New(fault.Unsupported, info.Key, "a read of another version is answered")
	case !fault.Is(out[1].Err, fault.Stale):
		f.Err = out[1].Err
	}
	return f
}

// Lists checks that a prefix can be listed.
func Lists(ctx context.Context, s store.Store, prefix string) Finding {
	_, err := s.List(ctx, prefix, "", 1)
	if fault.Is(err, fault.NotFound) {
		err = nil // nothing is there yet
	}
	return Finding{Name: "list", Note: "listings are allowed", Err: err}
}

// Written is what Writes found out beside its findings.
type Written struct {
	Findings []Finding
	// Skew is how far the store's clock is ahead of this machine's, good to a second or two. Known is false if nothing was written.
	Skew  time.Duration
	Known bool
}

// Writes checks that objects below a prefix, which ends in a slash, are created once, replaced only by who knows them, read, listed
// and removed.
func Writes(ctx context.Context, s store.Store, prefix string) Written {
	w := &writer{store: s, prefix: prefix + uuid.NewString() + "/"}
	defer w.clean(ctx)
	var out Written
	create := w.create(ctx)
	out.Findings = append(out.Findings, create)
	if create.Err != nil {
		return out
	}
	out.Skew, out.Known = w.clock(ctx)
	out.Findings = append(out.Findings, w.race(ctx), w.swap(ctx), w.read(ctx), w.list(ctx), w.remove(ctx))
	return out
}

type writer struct {
	store  store.Store
	prefix string
	tag    store.Tag
	holds  string    // what was written last
	made   time.Time // when the object was created, by this machine's clock
	keys   []string  // that may be there
}

func (w *writer) key(name string) string {
	w.keys = append(w.keys, w.prefix+name)
	return w.prefix + name
}

const (
	needsConditions = "use storage that honours conditional writes: without them, of two commits at once one would be lost"
	once            = "put if absent"
	swap            = "compare and swap"
)

// create writes an object, and tries to create it again.
func (w *writer) create(ctx context.Context) Finding {
	f := Finding{Name: once, Note: "an object is created once"}
	key := w.key("object")
	if w.tag, f.Err = w.store.PutNew(ctx, key, strings.NewReader("one")); f.Err != nil {
		return f
	}
	w.made, w.holds = time.Now(), "one"
	_, err := w.store.PutNew(ctx, key, strings.NewReader("two"))
	f.Err = mustConflict(key, err, "an object that exists was created again")
	return f
}

// mustConflict is nil if err is the conflict that there should have been.
func mustConflict(key string, err error, otherwise string) error {
	switch {
	case err == nil:
		return fault.New(fault.Unsupported, key, "%s", otherwise).WithFix(needsConditions)
	case !fault.Is(err, fault.Conflict):
		return err
	}
	return nil
}

// race lets several writers create one object at the same time.
func (w *writer) race(ctx context.Context) Finding {
	f := Finding{Name: once + ", raced", Note: fmt.Sprintf("of %d writers at once one wins", racers)}
	key := w.key("race")
	errs := make([]error, racers)
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() { _, errs[i] = w.store.PutNew(ctx, key, strings.NewReader(fmt.Sprint(i))) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !fault.Is(err, fault.Conflict):
			f.Err = err
		}
	}
	if won != 1 && f.Err == nil {
		f.Err = fault.New(fault.Unsupported, key, "%d of %d writers created the same object", won, racers).WithFix(needsConditions)
	}
	return f
}

func (w *writer) swap(ctx context.Context) Finding {
	f := Finding{Name: swap, Note: "an object is replaced only by who knows it"}
	key := w.prefix + "object"
	next, err := w.store.PutIf(ctx, key, w.tag, []byte("three"))
	if f.Err = err; err != nil {
		return f
	}
	_, err = w.store.PutIf(ctx, key, w.tag, []byte("four"))
	f.Err = mustConflict(key, err, "an object that had changed was replaced")
	w.tag, w.holds = next, "three"
	return f
}

func (w *writer) read(ctx context.Context) Finding {
	f := Finding{Name: "read", Note: "what was written is read at once"}
	key := w.prefix + "object"
	r := w.store.Fetch(ctx, []store.Read{{Key: key}})[0]
	if f.Err = r.Err; f.Err == nil && string(r.Data[0]) != w.holds {
		f.Err = fault.New(fault.Unsupported, key, "an older version is read after a newer one was written").
			WithFix("use storage whose reads see the writes before them")
	}
	return f
}

func (w *writer) list(ctx context.Context) Finding {
	f := Finding{Name: "list", Note: "what was written is listed at once"}
	infos, err := w.store.List(ctx, w.prefix, "", 10)
	if f.Err = err; err == nil && len(infos) != len(w.keys) {
		f.Err = fault.New(fault.Unsupported, w.prefix, "%d of %d objects are listed", len(infos), len(w.keys)).
			WithFix("use storage whose listings see the writes before them")
	}
	return f
}

// clock compares the time at which the store says that the object was written with this machine's.
func (w *writer) clock(ctx context.Context) (time.Duration, bool) {
	info := w.store.Stat(ctx, []string{w.prefix + "object"})[0]
	if info.Err != nil || info.Modified.IsZero() {
		return 0, false
	}
	return info.Modified.Sub(w.made), true
}

func (w *writer) remove(ctx context.Context) Finding {
	err := w.store.Delete(ctx, w.keys)
	for _, info := range w.store.Stat(ctx, w.keys) {
		if err == nil && !fault.Is(info.Err, fault.NotFound) {
			err = fault.New(fault.Unsupported, info.Key, "it is still there after it was removed")
			if info.Err != nil {
				err = info.Err
			}
		}
	}
	return Finding{Name: "delete", Note: "the objects of this check are removed", Err: err}
}

// clean removes what a check that ended early has left.
func (w *writer) clean(ctx context.Context) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = w.store.Delete(late, w.keys) // remove has reported it, if it could not be done
}
