package overlay

import (
	"cmp"
	"context"
	"slices"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

// Chunks are merged like the runs of a log-structured merge tree. A commit that adds artifacts writes them together with
// small chunks, so that it writes little and leaves few; Compact merges chunks of like size. An artifact is written anew with
// every commit until the tiny chunk it stands in is full, and after that once whenever the chunk it stands in doubles: what a
// commit writes does not grow with the table.
type sizes struct {
	tiny       int64 // bytes; a commit writes such chunks anew
	small      int64 // bytes; a commit may write such chunks anew, each no larger than what is written with it
	smallTotal int64 // and as many bytes of them
	tier       int64 // bytes of the chunks in the lowest tier
	merge      int64 // bytes of one merge
	fanOut     int   // ratio of sizes between tiers, and how many chunks of a tier are merged at once
}

var usualSizes = sizes{tiny: 16 << 10, small: 128 << 10, smallTotal: 512 << 10, tier: 512 << 10, merge: 512 << 20, fanOut: 8}

func (c *chunkRef) bytes() int64 { return c.hotLen + c.wideLen }

// smallChunks is the readable chunks of base that go into the new one.
func (d *draft) smallChunks() []int {
	var chunks []sized
	for i := range d.base.body.chunks {
		if d.base.readable(i) && !d.silent(i) {
			chunks = append(chunks, sized{i, d.base.body.chunks[i].bytes()})
		}
	}
	return d.overlay.sizes.anew(chunks, d.overlay.sizes.smallTotal)
}

// anew is the runs that a commit writes together with what it adds, in all at most so many bytes.
func (s sizes) anew(runs []sized, most int64) (out []int) {
	slices.SortStableFunc(runs, func(a, b sized) int { return cmp.Compare(a.bytes, b.bytes) })
	total := int64(0)
	for _, r := range runs {
		if r.bytes > min(s.small, max(s.tiny, total)) || total+r.bytes > most {
			break
		}
		total += r.bytes
		out = append(out, r.no)
	}
	return out
}

type compact struct{}

// Compact merges chunks of like size where there are many, in commits of their own. It tells whether it did anything.
func (o *Overlay) Compact(ctx context.Context) (bool, error) {
	for did := false; ; did = true {
		r, err := o.commit(ctx, nil, []Change{compact{}})
		if err != nil || !r.Changed {
			return did, err
		}
	}
}

func (compact) apply(_ context.Context, d *draft) error {
	if err := d.mounted(); err != nil {
		return err
	}
	d.merge, d.mergeLists = d.fullTier(), d.fullListTier()
	d.changed = d.changed || len(d.merge) > 0 || len(d.mergeLists) > 0
	return nil
}

// fullTier is the chunks of the lowest tier that is full; where the version is crowded, of its smallest chunks.
func (d *draft) fullTier() []int {
	var chunks []sized
	for i := range d.base.body.chunks {
		if d.base.readable(i) {
			chunks = append(chunks, sized{i, d.base.body.chunks[i].bytes()})
		}
	}
	return d.overlay.sizes.full(chunks, len(d.base.body.chunks), d.overlay.sizes.tier)
}

// readable tells that a chunk can be read, as far as that is known.
func (v *Version) readable(i int) bool { return v.views[i].chunk != nil || v.views[i].unread }

// sized is a run, by its number, and its bytes.
type sized struct {
	no    int
	bytes int64
}

// full is the runs of the lowest full tier, of which tier is the size of the lowest; all is the number of runs in the version.
func (s sizes) full(runs []sized, all int, tier int64) []int {
	slices.SortStableFunc(runs, func(a, b sized) int { return cmp.Compare(a.bytes, b.bytes) })
	for from := 0; from < len(runs); {
		limit := tier
		for limit < runs[from].bytes {
			limit *= int64(s.fanOut)
		}
		to, total := from, int64(0)
		for ; to < len(runs) && runs[to].bytes <= limit && total+runs[to].bytes <= s.merge; to++ {
			total += runs[to].bytes
		}
		if to-from >= s.fanOut || all >= crowded && to-from > 1 {
			out := make([]int, 0, to-from)
			for _, r := range runs[from:to] {
				out = append(out, r.no)
			}
			return out
		}
		from = max(to, from+1)
	}
	return nil
}

// entriesOf reads the artifacts of the chunks to be merged that speak in the draft. Records that make no sense never spoke
// and are left behind.
func (o *Overlay) entriesOf(ctx context.Context, d *draft) ([]entry, error) {
	base, err := d.base.read(ctx, d.merge)
	if err != nil {
		return nil, err
	}
	d.base = base
	if err := o.readWide(ctx, d.base, d.merge); err != nil {
		return nil, err
	}
	var out []entry
	for _, i := range d.merge {
		c := d.base.views[i].chunk
		if c == nil {
			return nil, fault.New(fault.Corrupt, o.key("chunks", d.base.body.chunks[i].name), "cannot be read any more")
		}
		for row := range c.artifacts.n {
			index := c.index(row)
			if index < 0 || d.dead[i].has(row) || !d.declared(c.indexes[index]) {
				continue
			}
			if e, ok := d.base.entry(Place{int32(i), int32(row)}); ok {
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// entry is an artifact as it was published.
func (v *Version) entry(at Place) (e entry, ok bool) {
	a, ok := v.Artifact(at)
	if !ok {
		return e, false
	}
	c := v.views[at.Chunk].chunk
	w, covered := c.wide.Load(), v.Segment(at)
	if w == nil || len(covered) != a.Files {
		return e, false
	}
	e = entry{
		index: a.IndexID, bundle: bundleInfo{a.Bundle, a.BuildID, a.SnapshotID, a.Sequence}, shape: c.shapeText(int(at.Row)), format: uint32(a.FormatVersion),
		body: a.Body, root: a.Root, lineage: a.Lineage, inline: a.RootInline, sha: w.sum(int(at.Row)), rootSHA: w.root(int(at.Row)), files: make([]Identity, len(covered)),
	}
	for i, f := range covered {
		e.files[i] = Identity{Path: w.paths[f.file], Size: f.Size, Records: int64(f.Records), Tag: f.Tag}
	}
	return e, true
}

// readWide fetches the wide parts of chunks that are not in memory yet, in one wave.
func (o *Overlay) readWide(ctx context.Context, v *Version, chunks []int) error {
	var reads []store.Read
	var missing []int
	for _, i := range chunks {
		if c := v.views[i].chunk; c != nil && c.wide.Load() == nil {
			ref := &v.body.chunks[i]
			missing = append(missing, i)
			reads = append(reads, store.Read{Key: o.key("chunks", ref.name), Spans: []store.Span{{Off: ref.hotLen, Len: ref.wideLen}}})
		}
	}
	if len(reads) == 0 {
		return nil
	}
	for k, r := range o.store.Fetch(ctx, reads) {
		ref := &v.body.chunks[missing[k]]
		if r.Err != nil {
			return fault.About(reads[k].Key, r.Err)
		}
		if err := bytescan.CheckCRC(reads[k].Key, r.Data[0], ref.wideCRC); err != nil {
			return err
		}
		c := v.views[missing[k]].chunk
		w, err := openWide(ref.name, c, r.Data[0])
		if err != nil {
			return err
		}
		c.wide.Store(w)
	}
	return nil
}

// Paths is the paths of an artifact's files in ordinal order, and the SHA-256 of its body: what no query needs. It may
// read once per chunk.
func (v *Version) Paths(ctx context.Context, at Place) (paths []string, sum [32]byte, err error) {
	if err := v.overlay.readWide(ctx, v, []int{int(at.Chunk)}); err != nil {
		return nil, sum, err
	}
	w := v.views[at.Chunk].chunk.wide.Load()
	for _, f := range v.Segment(at) {
		paths = append(paths, w.paths[f.file])
	}
	return paths, w.sum(int(at.Row)), nil
}
