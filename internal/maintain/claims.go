package maintain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	// lease is how long after its last renewal a declaration holds, by the store's clock, if nothing else tells that its writer died.
	lease  = 2 * time.Minute
	renews = 30 * time.Second
)

// process is this process among all that ever write declarations.
var process = struct {
	host, id string
	pid      int
	active   sync.Map // build ids
}{host: host(), id: uuid.NewString(), pid: os.Getpid()}

func host() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// fileHash is a file in a declaration.
func fileHash(stated string) string {
	sum := sha256.Sum256([]byte(stated))
	return hex.EncodeToString(sum[:8])
}

// claim is a declaration that is renewed until it ends. It keeps others from doing the same work; that nobody publishes twice is the
// commit's business.
type claim struct {
	overlay  *overlay.Overlay
	declared overlay.InFlight
	tag      store.Tag
	stop     chan struct{}
	done     sync.WaitGroup
}

// announce declares that objects with the id in their names are about to be written, and renews the declaration until end. It gives
// nil where values were erased since the version that this was planned on: the erasure may have ended, and knew nothing of what was read
// before. Of what holds no values planned is nil.
func announce(ctx context.Context, o *overlay.Overlay, planned *overlay.Version, id string) (*claim, error) {
	c, err := begin(ctx, o, overlay.InFlight{BuildID: id, StartedMs: time.Now().UnixMilli(), Writer: writer()})
	if err != nil || planned == nil {
		return c, err
	}
	now, err := o.Lean(ctx)
	if err == nil && !erasedSince(now, planned) {
		return c, nil
	}
	return nil, errors.Join(err, c.end(ctx))
}

// erasedSince tells that what was planned on a version may hold values that were erased.
func erasedSince(now, planned *overlay.Version) bool { return now.ErasedIn() > planned.Number() }

// declare announces a build, renews the declaration until end, and tells which targets a live claim that came first holds.
func declare(ctx context.Context, o *overlay.Overlay, f overlay.InFlight) (*claim, map[hashedTarget]bool, error) {
	c, err := begin(ctx, o, f)
	if err != nil {
		return nil, nil, err
	}
	taken, err := c.taken(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, c.end(ctx))
	}
	return c, taken, nil
}

// begin announces a build and renews the declaration until end.
func begin(ctx context.Context, o *overlay.Overlay, f overlay.InFlight) (*claim, error) {
	f.Host, f.PID, f.Process = process.host, process.pid, process.id
	c := &claim{overlay: o, declared: f, stop: make(chan struct{})}
	process.active.Store(f.BuildID, true)
	var err error
	if c.tag, err = o.Declare(ctx, f); err != nil {
		process.active.Delete(f.BuildID)
		_ = withdraw(ctx, o, f.BuildID) // it may be there all the same; at worst others wait for its lease
		return nil, err
	}
	c.done.Go(func() { c.renew(ctx) })
	return c, nil
}

// shielded runs write with the id of a build that is declared meanwhile. No vacuum deletes what write uploads under names with the id
// before it has committed it; where one took the build for dead all the same, the commit leaves out what has the id as its Build. Nothing
// is written where values were erased since the version that this was planned on, as announce has it.
func shielded(ctx context.Context, o *overlay.Overlay, planned *overlay.Version, write func(id string) error) (err error) {
	id := uuid.NewString()
	c, err := announce(ctx, o, planned, id)
	if c == nil {
		return err
	}
	defer func() { err = errors.Join(err, c.end(ctx)) }()
	return write(id)
}

func (c *claim) renew(ctx context.Context) {
	tick := time.NewTicker(renews)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		tag, err := c.overlay.Renew(ctx, c.declared, c.tag)
		switch {
		case err == nil:
			c.tag = tag
		case fault.Is(err, fault.Conflict):
			return // revoked
		}
	}
}

// end withdraws the declaration.
func (c *claim) end(ctx context.Context) error {
	close(c.stop)
	c.done.Wait()
	process.active.Delete(c.declared.BuildID)
	return withdraw(ctx, c.overlay, c.declared.BuildID)
}

// withdraw tries a few times: others wait for a declaration that stays.
func withdraw(ctx context.Context, o *overlay.Overlay, build string) (err error) {
	for range 3 {
		if err = o.Withdraw(context.WithoutCancel(ctx), build); err == nil {
			return nil
		}
	}
	return err
}

// taken is the targets of all other live claims. Of two processes that declare the same at once at least one sees the other and yields; where
// both do, they come back at different times.
func (c *claim) taken(ctx context.Context) (map[hashedTarget]bool, error) {
	all, err := c.overlay.InFlight(ctx)
	if err != nil {
		return nil, err
	}
	own := slices.IndexFunc(all, func(f overlay.InFlight) bool { return f.BuildID == c.declared.BuildID })
	if own < 0 {
		return nil, fault.New(fault.Conflict, c.declared.BuildID, "the declaration of this build was removed").WithRetry()
	}
	now := all[own].Renewed
	out := map[hashedTarget]bool{}
	for i, f := range all {
		if i == own || !alive(f, now) {
			continue
		}
		for _, file := range f.Files {
			for _, index := range f.Indexes {
				out[hashedTarget{file, index}] = true
			}
		}
	}
	return out, nil
}

// hashedTarget is a target as declarations write it.
type hashedTarget struct{ hash, index string }

// alive tells whether the writer of a declaration may still be at work.
func alive(f overlay.InFlight, now time.Time) bool {
	switch {
	case f.Renewed.Before(now.Add(-lease)):
		return false
	case f.Process == process.id:
		_, active := process.active.Load(f.BuildID)
		return active
	case f.Host != "" && f.Host == process.host && f.PID > 0 && f.PID != process.pid:
		return running(f.PID)
	}
	return true
}

// running tells whether a process of this host may exist.
func running(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release() //nolint:errcheck // nothing was acquired that matters
	err = p.Signal(syscall.Signal(0))
	return !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH)
}

// pause waits about d, longer or shorter by up to a half, and tells whether the context is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	d += time.Duration(rand.Int64N(int64(d)+1)) - d/2
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return ctx.Err() == nil
	}
}
