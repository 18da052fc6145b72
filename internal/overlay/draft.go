package overlay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"
	"strconv"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
)

// newDraft starts the version after base.
func (o *Overlay) newDraft(planned, base *Version, commit string) *draft {
	d := &draft{
		overlay: o, planned: planned, base: base, commit: commit, receipt: &Receipt{},
		taken: map[claimed]bool{}, keys: map[Key]bool{}, bundles: map[string]bundleInfo{}, putDerived: map[DerivedKey]Derived{},
	}
	d.header = base.body.header
	d.header.Indexes = slices.Clone(d.header.Indexes)
	d.header.Dropped = slices.Clone(d.header.Dropped)
	d.header.Previous = base.Commit()
	d.erased = base.body.erased
	d.tombstones()
	d.header.Version++
	d.header.Commit = commit
	d.header.CommittedMs = o.opts.Now()
	return d
}

// tombstones takes over those of base.
func (d *draft) tombstones() {
	d.dead, d.deadDerived = nil, nil
	for _, c := range d.base.body.chunks {
		d.dead = append(d.dead, c.dead)
	}
	for _, c := range d.base.body.lists {
		d.deadDerived = append(d.deadDerived, c.dead)
	}
}

// next is the body of the new version, after its new chunk, if it needs one, has been written.
func (d *draft) next(ctx context.Context, w *chunkPuts) (*body, *chunk, error) {
	b := &body{header: d.header, erased: d.erased}
	d.renew()
	entries := slices.Clone(d.fresh)
	if len(d.fresh) > 0 && len(d.merge) == 0 {
		d.merge = d.smallChunks()
	}
	merged := map[int]bool{}
	if len(d.merge) > 0 {
		more, err := d.overlay.entriesOf(ctx, d)
		if err != nil && len(d.fresh) == 0 {
			return nil, nil, err
		}
		if err == nil {
			entries = append(entries, more...)
			for _, i := range d.merge {
				merged[i] = true
			}
		}
	}
	for i, c := range d.base.body.chunks {
		c.dead = d.dead[i]
		if !merged[i] && !d.silent(i) {
			b.chunks = append(b.chunks, c)
		}
	}
	if len(entries) == 0 {
		return b, nil, nil
	}
	ref, c, err := w.put(ctx, entries)
	if err != nil {
		return nil, nil, err
	}
	b.chunks = append(b.chunks, ref)
	if len(b.chunks) > maxChunks {
		return nil, nil, fault.New(fault.Exhausted, d.overlay.prefix, "%d artifact lists, limit %d", len(b.chunks), maxChunks)
	}
	return b, c, nil
}

// renew picks the chunks and lists that are written anew because they are stale.
func (d *draft) renew() {
	if d.stale == nil {
		return
	}
	d.merge, d.mergeLists = nil, nil
	for i := range d.base.body.chunks {
		if !d.silent(i) && d.stale(i, -1) {
			d.merge = append(d.merge, i)
		}
	}
	for i := range d.base.body.lists {
		if d.stale(-1, i) {
			d.mergeLists = append(d.mergeLists, i)
		}
	}
}

// silent reports whether no artifact of a chunk of base speaks in the new version.
func (d *draft) silent(i int) bool {
	c := d.base.views[i].chunk
	if d.base.readable(i) && d.dead[i].count() == d.base.body.chunks[i].artifacts {
		return true
	}
	if c == nil {
		return false
	}
	return !slices.ContainsFunc(c.indexes, d.declared)
}

// chunkPuts writes the chunks of one commit. An attempt that needs the same chunk as one before finds it written.
type chunkPuts struct {
	overlay *Overlay
	commit  string
	n       int
	mark    uint64 // of the version that the chunks were written for, by its last vacuum: a later one may have deleted them
	written map[[32]byte]chunkRef
	lists   map[[32]byte]listRef
}

func (o *Overlay) newPuts(commit string) *chunkPuts {
	return &chunkPuts{overlay: o, commit: commit, written: map[[32]byte]chunkRef{}, lists: map[[32]byte]listRef{}}
}

func (w *chunkPuts) put(ctx context.Context, entries []entry) (ref chunkRef, c *chunk, err error) {
	enc, err := encodeChunk(entries)
	if err != nil {
		return ref, nil, err
	}
	raw := slices.Concat(enc.hot, enc.wide)
	sum := sha256.Sum256(raw)
	ref, done := w.written[sum]
	if !done {
		w.n++
		ref = chunkRef{
			name: w.commit + "-" + strconv.Itoa(w.n), artifacts: enc.artifacts, files: enc.files, hotLen: int64(len(enc.hot)), wideLen: int64(len(enc.wide)),
			hotCRC: bytescan.CRC32C(enc.hot), wideCRC: bytescan.CRC32C(enc.wide), sha: sum,
		}
	}
	if c, err = openChunk(ref.name, enc.hot); err != nil {
		return ref, nil, err
	}
	wide, err := openWide(ref.name, c, enc.wide)
	if err != nil {
		return ref, nil, err
	}
	c.wide.Store(wide)
	if done {
		return ref, c, nil
	}
	if err := w.overlay.putOwn(ctx, w.overlay.key("chunks", ref.name), raw); err != nil {
		return ref, nil, err
	}
	w.written[sum] = ref
	return ref, c, nil
}

// putOwn creates an object whose name no other commit uses: that it exists already means that an earlier try succeeded.
func (o *Overlay) putOwn(ctx context.Context, key string, raw []byte) error {
	for try := 1; ; try++ {
		_, err := o.store.PutNew(ctx, key, bytes.NewReader(raw))
		switch {
		case err == nil || fault.Is(err, fault.Conflict):
			return nil
		case !fault.Retryable(err) || try == putTries || !pause(ctx, try):
			return fault.About(key, err)
		}
	}
}
