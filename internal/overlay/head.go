package overlay

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// HeadName is the object beside the versions that people and tools may read.
const HeadName = "detached_catalog.json"

const (
	maxHead     = 64 << 10
	headVersion = 1
	headTimeout = 10 * time.Second
)

// Head is the readable hint at the newest version. It is written after a commit and decides nothing: one that is old,
// damaged or missing changes no answer.
type Head struct {
	FormatVersion  int    `json:"format_version"`
	OverlayVersion uint64 `json:"overlay_version"`
	Table
	Upstream
	Mounted bool     `json:"mounted"`
	Indexes []string `json:"indexes"` // ids, as many as fit
}

// ReadHead reads the hint.
func (o *Overlay) ReadHead(ctx context.Context) (Head, error) {
	var h Head
	key := o.key(HeadName)
	r := o.store.Fetch(ctx, []store.Read{{Key: key, Spans: []store.Span{store.Suffix(maxHead)}}})[0]
	if r.Err != nil {
		return h, fault.About(key, r.Err)
	}
	return h, fault.Wrap(fault.Corrupt, key, json.Unmarshal(r.Data[0], &h))
}

// headWriter writes hints behind the commits, the newest only, one at a time.
type headWriter struct {
	mu      sync.Mutex
	next    *Version
	running bool
	idle    sync.WaitGroup
}

func (w *headWriter) write(o *Overlay, v *Version) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == nil || w.next.number < v.number {
		w.next = v
	}
	if w.running {
		return
	}
	w.running = true
	w.idle.Go(func() {
		for v := w.take(); v != nil; v = w.take() {
			o.putHead(v)
		}
	})
}

func (w *headWriter) take() *Version {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.next
	w.next = nil
	w.running = v != nil
	return v
}

// Close waits for the hint of the last commit to be written. It must not run beside a commit.
func (o *Overlay) Close() { o.head.idle.Wait() }

// putHead replaces the hint unless a newer one is there. Errors are dropped: it is only a hint.
func (o *Overlay) putHead(v *Version) {
	ctx, cancel := context.WithTimeout(context.Background(), headTimeout)
	defer cancel()
	key := o.key(HeadName)
	raw := v.headBytes()
	for range 2 {
		r := o.store.Fetch(ctx, []store.Read{{Key: key, Spans: []store.Span{store.Suffix(maxHead)}}})[0]
		if r.Err != nil && !fault.Is(r.Err, fault.NotFound) {
			return
		}
		var old Head
		if r.Err == nil && json.Unmarshal(r.Data[0], &old) == nil && old.OverlayVersion >= v.number {
			return
		}
		if _, err := o.store.PutIf(ctx, key, r.Tag, raw); !fault.Is(err, fault.Conflict) {
			return
		}
	}
}

func (v *Version) headBytes() []byte {
	h := Head{FormatVersion: headVersion, OverlayVersion: v.number, Table: v.Table(), Upstream: v.Upstream(), Mounted: v.Mounted(), Indexes: []string{}}
	for _, d := range v.Indexes() {
		h.Indexes = append(h.Indexes, d.ID)
	}
	for {
		raw, err := json.MarshalIndent(h, "", "  ")
		if err != nil || len(raw) < maxHead || len(h.Indexes) == 0 {
			return append(raw, '\n')
		}
		h.Indexes = h.Indexes[:len(h.Indexes)/2]
	}
}
