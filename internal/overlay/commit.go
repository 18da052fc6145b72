package overlay

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/fault"
)

const (
	putTries    = 5    // of one object after errors that may pass
	commitTries = 1000 // lost races of one commit
	// crowded is the number of chunks from which a commit is followed by a merge.
	crowded = 48
	// afterCancel is how long a cancelled commit may take to find out whether it happened.
	afterCancel = 5 * time.Second
)

// Commit applies changes to base, the version that the caller planned on (nil: the newest), and makes the result the newest
// version. If others committed first, the changes are applied anew to what they left. Nothing is committed if the changes
// leave everything as it is.
//
// A commit that ends a sync, or leaves very many chunks, is followed by merges in commits of their own.
//
// An error means that nothing was committed, with one exception that its text states: if the store did not answer, the
// commit may still appear. Committing the same changes again is safe then.
func (o *Overlay) Commit(ctx context.Context, base *Version, changes ...Change) (*Receipt, error) {
	r, err := o.commit(ctx, base, changes)
	if err == nil && r.Changed && (r.Version.crowded() || slices.ContainsFunc(changes, endsSync)) {
		_, _ = o.Compact(ctx) // the commit stands; the next one tries again
	}
	return r, err
}

// crowded reports whether a version has very many chunks or lists.
func (v *Version) crowded() bool { return max(len(v.body.chunks), len(v.body.lists)) >= crowded }

func endsSync(c Change) bool {
	_, ok := c.(synced)
	return ok
}

func (o *Overlay) commit(ctx context.Context, planned *Version, changes []Change) (*Receipt, error) {
	id := uuid.NewString()
	puts := o.newPuts(id)
	base := o.newestKnown(planned)
	for try := 1; try <= commitTries; try++ {
		var err error
		if base == nil {
			if base, err = o.newestOrEmpty(ctx); err != nil {
				return nil, err
			}
		}
		if planned == nil {
			planned = base
		}
		if base, err = base.suited(ctx, changes); err != nil {
			return nil, err
		}
		r, err := o.attempt(ctx, planned, base, puts, changes)
		if !fault.Is(err, fault.Conflict) {
			return r, err
		}
		if !pause(ctx, try) {
			return nil, fault.About(o.prefix, context.Cause(ctx))
		}
		base = nil
	}
	return nil, fault.New(fault.Conflict, o.prefix, "lost %d races in a row", commitTries).WithRetry()
}

// newestKnown is the newest version in memory if it is newer than planned: building on planned would only lose a race.
func (o *Overlay) newestKnown(planned *Version) *Version {
	o.mu.Lock()
	defer o.mu.Unlock()
	if planned != nil && o.latest != nil && o.latest.number > planned.number {
		return o.latest
	}
	return planned
}

func (o *Overlay) newestOrEmpty(ctx context.Context) (*Version, error) {
	v, err := o.newest(ctx)
	if v == nil && err == nil {
		v = &Version{body: &body{}, overlay: o}
	}
	return v, err
}

// attempt makes the version after base. A Conflict fault means that it exists already and is another commit's.
func (o *Overlay) attempt(ctx context.Context, planned, base *Version, puts *chunkPuts, changes []Change) (*Receipt, error) {
	if err := usable(base); err != nil {
		return nil, err
	}
	if err := o.mayFollow(base); err != nil {
		return nil, err
	}
	if base.body.header.Vacuumed != puts.mark {
		puts.mark = base.body.header.Vacuumed
		clear(puts.written)
		clear(puts.lists)
	}
	d := o.newDraft(planned, base, puts.commit)
	for _, c := range changes {
		if err := c.apply(ctx, d); err != nil {
			return nil, notConflict(err)
		}
	}
	if d.changed {
		d.lowered(changes)
	}
	if !d.changed {
		d.receipt.Version = base
		return d.receipt, nil
	}
	b, fresh, err := d.next(ctx, puts)
	if err != nil {
		return nil, notConflict(err)
	}
	lists, freshList, err := d.nextLists(ctx, puts)
	if err != nil {
		return nil, notConflict(err)
	}
	b.lists = lists
	raw, err := b.encode(o.opts.Key)
	if err != nil {
		return nil, err
	}
	if err := d.mark(ctx); err != nil {
		return nil, notConflict(err)
	}
	if err := o.putVersion(ctx, b, raw); err != nil {
		return nil, err
	}
	v := o.successor(d.base, b, fresh, freshList)
	o.remember(v)
	o.head.write(o, v)
	d.receipt.Version, d.receipt.Changed = v, true
	return d.receipt, nil
}

// notConflict makes sure that only a lost race is taken for one.
func notConflict(err error) error {
	if fault.Is(err, fault.Conflict) {
		return &fault.Error{Cause: err, Class: fault.Invalid}
	}
	return err
}

// usable refuses to build on a version of which a part is unreadable for now or as a whole.
func usable(base *Version) error {
	if base.broken != nil {
		e := fault.New(fault.ClassOf(base.broken), base.overlay.prefix, "nothing can be committed on top of version %d", base.number).WithCause(base.broken)
		if fault.Is(base.broken, fault.Corrupt) {
			e.WithFix("recover the overlay: the newest readable version becomes the newest again")
		}
		return e
	}
	for _, w := range base.warnings {
		if !lasting(w.Reason) {
			return fault.About(w.Part, w.Reason)
		}
	}
	return nil
}

// successor is the version that was just committed, without reading it.
func (o *Overlay) successor(base *Version, b *body, fresh *chunk, freshList *derivedList) *Version {
	v := o.versionOf(b)
	v.warnings = base.warnings
	known, unread := map[string]*chunk{}, map[string]bool{}
	for i, c := range base.body.chunks {
		known[c.name] = base.views[i].chunk
		if base.views[i].unread {
			unread[c.name] = true
		}
	}
	for i, c := range b.chunks {
		if v.views[i].chunk = known[c.name]; fresh != nil && i == len(b.chunks)-1 {
			v.views[i].chunk = fresh
		}
		v.views[i].unread = unread[c.name]
	}
	v.reached = base.reached
	v.partial = len(unread) > 0
	lists := map[string]*derivedList{}
	for i, c := range base.body.lists {
		lists[c.name] = base.lists[i]
	}
	for i, c := range b.lists {
		if v.lists[i] = lists[c.name]; freshList != nil && c.name == freshList.name {
			v.lists[i] = freshList
		}
	}
	v.bind()
	return v
}

// putVersion creates the version's object. Whatever the store says, the object itself tells who won.
func (o *Overlay) putVersion(ctx context.Context, b *body, raw []byte) error {
	key := o.key("versions", versionName(b.header.Version))
	for try := 1; ; try++ {
		_, err := o.store.PutNew(ctx, key, bytes.NewReader(raw))
		if err == nil {
			return nil
		}
		won, known := o.winner(ctx, key, b.header.Commit)
		switch {
		case known && won:
			return nil
		case known || fault.Is(err, fault.Conflict):
			return fault.New(fault.Conflict, key, "another commit was first")
		case !fault.Retryable(err) && ctx.Err() == nil && fault.ClassOf(err) != fault.Unclassified:
			return fault.About(key, err)
		case try == putTries || !pause(ctx, try):
			return fault.New(fault.ClassOf(err), key, "the store did not tell whether version %d was committed; it may still appear", b.header.Version).
				WithCause(err).WithRetry()
		}
	}
}

// winner reads the version back: known if it is there, won if the commit made it.
func (o *Overlay) winner(ctx context.Context, key, commit string) (won, known bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterCancel)
	defer cancel()
	for try := 1; ; try++ {
		raw, err := fetchAll(ctx, o.store, key)
		if err == nil {
			id, err := commitOf(key, raw)
			if err == nil || try >= readTries {
				return err == nil && id == commit, true
			}
		}
		if fault.Is(err, fault.NotFound) || try == putTries || !pause(ctx, try) {
			return false, false
		}
	}
}

// commitOf is the commit that made a version, by its body or its stub.
func commitOf(key string, raw []byte) (string, error) {
	if isStub(raw) {
		s, err := parseStub(key, raw)
		if err != nil {
			return "", err
		}
		return s.commit, nil
	}
	b, err := parseBody(key, raw)
	if err != nil {
		return "", err
	}
	return b.header.Commit, nil
}

// pause waits longer with each try, at random, and tells whether the context is still alive.
func pause(ctx context.Context, try int) bool {
	limit := time.Millisecond << min(try, 8)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(rand.N(limit)):
		return ctx.Err() == nil
	}
}

func systemMs() int64 { return time.Now().UnixMilli() }
