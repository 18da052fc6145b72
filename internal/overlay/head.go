package overlay

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
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
	maxListed   = 512 // artifacts of an overlay whose head lists them
	headTimeout = 10 * time.Second
)

// Head is the readable hint at the newest version. It is written after a commit and decides nothing: one that is old,
// damaged or missing changes no answer.
type Head struct {
	FormatVersion  int    `json:"format_version"`
	OverlayVersion uint64 `json:"overlay_version"`
	Table
	Upstream
	Mounted   bool         `json:"mounted"`
	Indexes   []Definition `json:"indexes"`   // as many as fit
	Artifacts int          `json:"artifacts"` // without tombstones
	// Directory is the bundles, below the overlay's prefix, that cover a data file, by its path; only of small overlays, and only if it
	// fits.
	Directory map[string][]string `json:"directory,omitempty"`
	// Lists is copies of short lists of derived objects, by name, and Ahead the parts of derived objects that a first query is likely to need: what
	// First saves round trips with, if they fit.
	Lists map[string][]byte `json:"lists,omitempty"`
	Ahead []Part            `json:"ahead,omitempty"`
}

// Part is some bytes of an object below the overlay's prefix.
type Part struct {
	Key string `json:"key"`
	Off int64  `json:"off"`
	Len int64  `json:"len"`
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
	_ = o.PutHead(ctx, v)
}

// PutHead replaces the readable head by that of a version, unless a newer one is there. Who was about to write an older one does not
// write it then.
func (o *Overlay) PutHead(ctx context.Context, v *Version) error {
	key := o.key(HeadName)
	raw := v.headBytes(ctx)
	var err error
	for range 2 {
		r := o.store.Fetch(ctx, []store.Read{{Key: key, Spans: []store.Span{store.Suffix(maxHead)}}})[0]
		if r.Err != nil && !fault.Is(r.Err, fault.NotFound) {
			return fault.About(key, r.Err)
		}
		var old Head
		if r.Err == nil && json.Unmarshal(r.Data[0], &old) == nil && old.OverlayVersion >= v.number {
			return nil
		}
		if _, err = o.store.PutIf(ctx, key, r.Tag, raw); !fault.Is(err, fault.Conflict) {
			break
		}
	}
	return fault.About(key, err)
}

func (v *Version) headBytes(ctx context.Context) []byte {
	h := Head{FormatVersion: headVersion, OverlayVersion: v.number, Table: v.Table(), Upstream: v.Upstream(), Mounted: v.Mounted(), Indexes: []Definition{}}
	h.Indexes = append(h.Indexes, v.Indexes()...)
	h.Artifacts, h.Directory = v.directory(ctx)
	h.Lists, h.Ahead = v.shortLists(), v.ahead()
	for {
		raw, err := json.MarshalIndent(h, "", "  ")
		if err == nil && len(raw) < maxHead || h.Directory == nil && h.Lists == nil && len(h.Indexes) == 0 {
			return append(raw, '\n')
		}
		switch {
		case h.Directory != nil:
			h.Directory = nil
		case h.Lists != nil:
			h.Lists = nil
		default:
			h.Indexes = h.Indexes[:len(h.Indexes)/2]
		}
	}
}

// directory counts artifacts and, where there are few, lists the bundles of each data file. It may read once per chunk.
func (v *Version) directory(ctx context.Context) (artifacts int, files map[string][]string) {
	for _, c := range v.body.chunks {
		artifacts += c.artifacts - c.dead.count()
	}
	if artifacts == 0 || artifacts > maxListed {
		return artifacts, nil
	}
	if full, err := v.Full(ctx); err == nil {
		v = full
	} else {
		return artifacts, nil
	}
	files = map[string][]string{}
	v.Each(func(a ArtifactInfo) bool {
		paths, _, err := v.Paths(ctx, a.At)
		if err != nil {
			files = nil
			return false
		}
		bundle := strings.TrimPrefix(a.Bundle, v.overlay.prefix+"/")
		for _, path := range paths {
			if !slices.Contains(files[path], bundle) {
				files[path] = append(files[path], bundle)
			}
		}
		return true
	})
	return artifacts, files
}
