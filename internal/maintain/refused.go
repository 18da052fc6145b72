package maintain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/skomerdb/skomer/internal/build"
	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/overlay"
	"github.com/skomerdb/skomer/internal/store"
)

// A list of refusals is a derived object of the overlay, of this kind: artifacts that a build made and found not worth keeping, such
// as a Bloom filter above its fill. It spares later syncs from building them again until the file or the format changes; a changed
// definition is another index. The object is JSON:
//
//	{"format": 1, "made_ms": 1, "algorithm": "bloom.v1", "reason": "…", "files": [{"path": "…", "size": 1, "records": 1, "tag": "…"}]}
//
// Of several lists with a file the youngest counts. One that cannot be read is as good as none: the build is tried again.
const (
	refusedKind     = "refused"
	refusedFormat   = 1
	maxRefused      = 64 << 20 // bytes of one list
	refusedPerIndex = 8        // lists of one index above which they are merged
)

type refusedList struct {
	Format    int           `json:"format"`
	MadeMs    int64         `json:"made_ms"` // by its writer's clock
	Algorithm string        `json:"algorithm"`
	Reason    string        `json:"reason"`
	Files     []refusedFile `json:"files"`
}

type refusedFile struct {
	Path    string    `json:"path"`
	Size    int64     `json:"size"`
	Records int64     `json:"records"`
	Tag     store.Tag `json:"tag"`
}

// Refused keeps the refusals of an overlay between syncs. The zero value is ready and safe for concurrent use.
type Refused struct {
	mu    sync.Mutex
	lists map[string]*refusedList // by key
	live  map[target]refusal
}

type refusal struct {
	refusedFile
	algorithm string
	madeMs    int64
}

// Clear forgets everything that is in memory; it is read again when it is needed.
func (x *Refused) Clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lists, x.live = map[string]*refusedList{}, map[target]refusal{}
}

// load reads the lists of a version that are not in memory, in one wave.
func (x *Refused) load(ctx context.Context, st store.Store, o *overlay.Overlay, v *overlay.Version) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	entries := v.Derived(refusedKind)
	lists := map[string]*refusedList{}
	var reads []store.Read
	for _, e := range entries {
		switch known := x.lists[e.Key]; {
		case known != nil:
			lists[e.Key] = known
		case e.Len <= maxRefused:
			reads = append(reads, store.Read{Key: o.Prefix() + "/" + e.Key, Spans: []store.Span{{Off: e.Off, Len: e.Len}}})
			lists[e.Key] = nil
		}
	}
	if len(reads) > 0 {
		results, next := st.Fetch(ctx, reads), 0
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, e := range entries {
			if known, asked := lists[e.Key]; !asked || known != nil {
				continue
			}
			if r := results[next]; r.Err == nil && e.Check(r.Data[0]) == nil {
				lists[e.Key] = parseRefused(r.Data[0])
			}
			next++
		}
	}
	x.lists, x.live = lists, map[target]refusal{}
	for _, e := range entries {
		x.index(e.Index, lists[e.Key])
	}
	return nil
}

func (x *Refused) index(id string, l *refusedList) {
	if l == nil {
		return
	}
	for _, f := range l.Files {
		if was, ok := x.live[target{f.Path, id}]; !ok || was.madeMs <= l.MadeMs {
			x.live[target{f.Path, id}] = refusal{f, l.Algorithm, l.MadeMs}
		}
	}
}

// parseRefused reads a list; nil where it makes no sense.
func parseRefused(raw []byte) *refusedList {
	l := &refusedList{}
	if json.Unmarshal(raw, l) != nil || l.Format != refusedFormat {
		return nil
	}
	return l
}

// holds tells whether an artifact was refused for the file as its manifest states it.
func (x *Refused) holds(index, algorithm, path string, size, records int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	r, ok := x.live[target{path, index}]
	return ok && r.algorithm == algorithm && r.Size == size && r.Records == records
}

// tag is the entity tag under which some index of the file was refused, "" if none was.
func (x *Refused) tag(path string, indexes []overlay.Definition) store.Tag {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, d := range indexes {
		if r, ok := x.live[target{path, d.ID}]; ok {
			return r.Tag
		}
	}
	return ""
}

// put writes lists of what a declared build refused and returns the change that enters them.
func (x *Refused) put(ctx context.Context, st store.Store, o *overlay.Overlay, id string, refused []build.Refusal) (overlay.Change, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var put []overlay.Derived
	byKind := map[target]*refusedList{}
	for _, r := range refused {
		key := target{r.Algorithm, r.IndexID}
		l := byKind[key]
		if l == nil {
			l = &refusedList{Format: refusedFormat, MadeMs: time.Now().UnixMilli(), Algorithm: r.Algorithm, Reason: r.Reason}
			byKind[key] = l
		}
		for _, f := range r.Files {
			l.Files = append(l.Files, refusedFile(f))
		}
	}
	for key, l := range byKind {
		e, err := x.write(ctx, st, o, id, key.index, l)
		if err != nil {
			return nil, err
		}
		x.index(key.index, l)
		put = append(put, e)
	}
	return overlay.Derive(put, nil), nil
}

func (x *Refused) write(ctx context.Context, st store.Store, o *overlay.Overlay, id, index string, l *refusedList) (overlay.Derived, error) {
	key := fmt.Sprintf("refused/%s-%s.json", id, index)
	raw, err := json.Marshal(l)
	if err != nil {
		return overlay.Derived{}, fault.Wrap(fault.Invalid, key, err)
	}
	if _, err := st.PutNew(ctx, o.Prefix()+"/"+key, bytes.NewReader(raw)); err != nil {
		return overlay.Derived{}, fault.About(key, err)
	}
	if x.lists == nil {
		x.lists, x.live = map[string]*refusedList{}, map[target]refusal{}
	}
	x.lists[key] = l
	return overlay.Derived{
		Kind: refusedKind, Name: index + "/" + id, Index: index, Key: key, Len: int64(len(raw)), CRC: bytescan.CRC32C(raw), SHA256: sha256.Sum256(raw),
		Build: id,
	}, nil
}

// crowded is the lists of an index that has many; nil where none has.
func crowded(v *overlay.Version) []overlay.Derived {
	byIndex := map[string][]overlay.Derived{}
	for _, e := range v.Derived(refusedKind) {
		byIndex[e.Index] = append(byIndex[e.Index], e)
		if len(byIndex[e.Index]) > refusedPerIndex {
			return slices.DeleteFunc(slices.Clone(v.Derived(refusedKind)), func(x overlay.Derived) bool { return x.Index != e.Index })
		}
	}
	return nil
}

// merged writes, as a declared build, one list of some lists of an index and returns the change that puts it in their place; nil where
// none of them can be read. keep tells which refusals still hold.
func (x *Refused) merged(ctx context.Context, st store.Store, o *overlay.Overlay, id string, entries []overlay.Derived, keep func(index string, f refusedFile) bool) (overlay.Change, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	index := entries[0].Index
	whole := x.whole(index, entries, keep)
	if whole == nil {
		return nil, nil
	}
	e, err := x.write(ctx, st, o, id, index, whole)
	if err != nil {
		return nil, err
	}
	return overlay.ReplaceDerived([]overlay.Derived{e}, entries), nil
}

// stale tells that a refusal no longer holds.
func (x *Refused) stale(keep func(index string, f refusedFile) bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, r := range x.live {
		if !keep(key.index, r.refusedFile) {
			return true
		}
	}
	return false
}

// whole is one list of what still holds of some lists of an index; of several algorithms the youngest counts.
func (x *Refused) whole(index string, entries []overlay.Derived, keep func(string, refusedFile) bool) (whole *refusedList) {
	for _, e := range entries {
		if l := x.lists[e.Key]; l != nil && (whole == nil || l.MadeMs > whole.MadeMs) {
			whole = &refusedList{Format: refusedFormat, MadeMs: l.MadeMs, Algorithm: l.Algorithm, Reason: l.Reason}
		}
	}
	if whole == nil {
		return nil
	}
	for key, r := range x.live {
		if key.index == index && r.algorithm == whole.Algorithm && keep(index, r.refusedFile) {
			whole.Files = append(whole.Files, r.refusedFile)
		}
	}
	slices.SortFunc(whole.Files, func(a, b refusedFile) int { return strings.Compare(a.Path, b.Path) })
	return whole
}

// forget lets the indexes of a file be built again: it was overwritten.
func (x *Refused) forget(path string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range x.live {
		if key.file == path {
			delete(x.live, key)
		}
	}
}
