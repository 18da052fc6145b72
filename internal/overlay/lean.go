package overlay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/store"
)

const (
	// leanChunk is the bytes of a chunk that a lean version reads at once: a look into a longer one costs a request as well.
	leanChunk = 32 << 10
	// spread is how many standard deviations around its expected place a file record is looked for.
	spread = 3
)

// Lean is the newest version, of whose chunks only those that are short, or in memory, are read. It answers for the files that Reach was asked
// for, and Full makes a whole version of it. The version of a small overlay is whole at once, and so is that of a signed one, whose chunks are
// believed for their SHA-256 alone.
func (o *Overlay) Lean(ctx context.Context) (*Version, error) {
	v, err := o.newestBy(ctx, !o.Keyed())
	if err != nil {
		return nil, err
	}
	if v == nil || v.broken == nil && !v.Mounted() {
		return nil, o.notMounted()
	}
	return v, nil
}

// leanChunks enters the chunks that a lean version reads beside its lists. Of a small overlay that is all of them, and of short chunks the wide part
// too: the next commit is likely to write them anew.
func (p *parts) leanChunks(known map[string]*chunk) {
	v := p.version
	artifacts, most := 0, cmp.Or(v.overlay.opts.WholeUpTo, maxListed)
	for _, c := range v.body.chunks {
		artifacts += c.artifacts
	}
	for i, c := range v.body.chunks {
		switch v.views[i].chunk = known[c.name]; {
		case v.views[i].chunk != nil:
		case artifacts <= most || most >= 0 && c.bytes() <= leanChunk:
			p.chunk(i, true)
		default:
			v.views[i].unread, v.partial = true, true
		}
	}
}

// with is a copy of the version, whose views are its own.
func (v *Version) with() *Version {
	out := v.overlay.versionOf(v.body)
	out.lists, out.warnings, out.broken = v.lists, slices.Clone(v.warnings), v.broken
	copy(out.views, v.views)
	out.partial, out.reached = v.partial, v.reached
	return out
}

// asFarAsItGoes tells that there is no list to be read yet.
func (v *Version) asFarAsItGoes() bool { return !v.partial || v.broken != nil }

// settle ends the making of a version some of whose chunks may be unread.
func (v *Version) settle() *Version {
	v.partial = slices.ContainsFunc(v.views, func(w view) bool { return w.unread })
	v.bind()
	return v
}

// Reach is the version with every chunk that has a file with one of the paths. Chunks are sorted by hashes of paths, so that a short look at the
// expected place tells whether a chunk has one; those that do are read whole. The looks have no checksum of their own: bytes that are wrong
// and seem right can hide an artifact from the version. Chunks that without accepts, which may be nil, have none of the files, as the caller
// knows.
func (v *Version) Reach(ctx context.Context, paths []string, without func(Chunk) bool) (*Version, error) {
	if v.asFarAsItGoes() {
		return v, nil
	}
	keys := map[pathKey]bool{}
	for _, p := range paths {
		if k := keyOf(p); !v.reached[k] {
			keys[k] = true
		}
	}
	if len(keys) == 0 {
		return v, nil
	}
	hit, err := v.look(ctx, without, slices.SortedFunc(maps.Keys(keys), func(a, b pathKey) int { return bytes.Compare(a[:], b[:]) }))
	if err != nil {
		return nil, err
	}
	out, err := v.read(ctx, hit)
	if err != nil {
		return nil, err
	}
	if out == v {
		out = v.with().settle()
	}
	out.reached = maps.Clone(v.reached)
	if out.reached == nil {
		out.reached = map[pathKey]bool{}
	}
	maps.Copy(out.reached, keys)
	return out, nil
}

// look tells which unread chunks have, or may have, a file with one of the keys, in one wave.
func (v *Version) look(ctx context.Context, without func(Chunk) bool, keys []pathKey) (hit []int, err error) {
	var reads []store.Read
	var asked []int
	for i, c := range v.Chunks() {
		if !v.views[i].unread || v.body.chunks[i].files == 0 || without != nil && without(c) {
			continue
		}
		spans := chunkFiles(v.body.chunks[i].files).windows(keys)
		if spans == nil {
			hit = append(hit, i)
			continue
		}
		reads = append(reads, store.Read{Key: v.overlay.key("chunks", v.body.chunks[i].name), Spans: spans})
		asked = append(asked, i)
	}
	if len(reads) == 0 {
		return hit, nil
	}
	for k, r := range v.overlay.store.Fetch(ctx, reads) {
		if r.Err != nil {
			return nil, fault.About(reads[k].Key, r.Err)
		}
		for n, span := range reads[k].Spans {
			if !chunkFiles(v.body.chunks[asked[k]].files).lacks(keys[n], span, r.Data[n]) {
				hit = append(hit, asked[k])
				break
			}
		}
	}
	return hit, nil
}

// sortedKeys is n records of a size from an offset on, sorted by the hash of a path that each begins with, or by so many bytes of it.
type sortedKeys struct{ n, off, size, width int64 }

func chunkFiles(n int) sortedKeys {
	return sortedKeys{int64(n), chunkHeader, fileSize, int64(len(pathKey{}))}
}

// windows is where the records with the keys are, if there are any; nil where that would be half of all or more.
// A key is a hash: among n records the place of one at a share x of all hashes has the standard deviation √(n·x·(1−x)).
func (s sortedKeys) windows(keys []pathKey) []store.Span {
	n := float64(s.n)
	var out []store.Span
	total := int64(0)
	for _, k := range keys {
		x := float64(binary.BigEndian.Uint64(k[:])) / (1 << 64)
		reach := spread*math.Sqrt(n*x*(1-x)) + 8
		from, to := int64(max(n*x-reach, 0)), int64(min(n*x+reach+1, n))
		out = append(out, store.Span{Off: s.off + from*s.size, Len: (to - from) * s.size})
		if total += to - from; 2*total >= s.n {
			return nil
		}
	}
	return out
}

// lacks tells that the records around the expected place of a key prove that there is none with it.
func (s sortedKeys) lacks(k pathKey, span store.Span, raw []byte) bool {
	n := int64(len(raw)) / s.size
	if n == 0 || int64(len(raw)) != span.Len {
		return false
	}
	key := func(i int64) []byte { return raw[i*s.size : i*s.size+s.width] }
	for i := range n {
		if i > 0 && bytes.Compare(key(i-1), key(i)) > 0 || bytes.Equal(key(i), k[:s.width]) {
			return false
		}
	}
	first := (span.Off - s.off) / s.size
	before := first == 0 || bytes.Compare(key(0), k[:]) < 0
	after := first+n == s.n || bytes.Compare(key(n-1), k[:]) > 0
	return before && after
}

// read is the version with some more of its chunks, both of their parts, read in one wave. What cannot be read now is an error, what can never be
// read again a warning.
func (v *Version) read(ctx context.Context, chunks []int) (*Version, error) {
	chunks = slices.DeleteFunc(slices.Clone(chunks), func(i int) bool { return !v.views[i].unread })
	if len(chunks) == 0 {
		return v, nil
	}
	out := v.with()
	p := parts{version: out}
	for _, i := range chunks {
		out.views[i].unread = false
		p.chunk(i, true)
	}
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	for _, w := range out.warnings[len(v.warnings):] {
		if !lasting(w.Reason) {
			return nil, fault.About(w.Part, w.Reason)
		}
	}
	return out.settle(), nil
}

// Chunk is what a version's body says of one of its lists of artifacts.
type Chunk struct {
	Name      string
	Artifacts int
	Dead      int // of them
	Read      bool
}

// Chunks describes the lists of artifacts, by the numbers in Place.
func (v *Version) Chunks() []Chunk {
	out := make([]Chunk, len(v.body.chunks))
	for i, c := range v.body.chunks {
		out[i] = Chunk{c.name, c.artifacts, c.dead.count(), v.views[i].chunk != nil}
	}
	return out
}

// ReadChunks is the version with all chunks but those that skip names.
func (v *Version) ReadChunks(ctx context.Context, skip func(Chunk) bool) (*Version, error) {
	var want []int
	for i, c := range v.Chunks() {
		if v.views[i].unread && !skip(c) {
			want = append(want, i)
		}
	}
	return v.read(ctx, want)
}

// touching is a change that looks at no artifacts but those of some files, and at those that it names.
type touching interface {
	touches() (paths []string, keys []Key)
}

// suited is the version with the chunks that the changes look at.
func (v *Version) suited(ctx context.Context, changes []Change) (*Version, error) {
	if v.asFarAsItGoes() {
		return v, nil
	}
	var paths []string
	var keys []Key
	for _, c := range changes {
		t, ok := c.(touching)
		if !ok {
			return v.Full(ctx)
		}
		p, k := t.touches()
		paths, keys = append(paths, p...), append(keys, k...)
	}
	out, err := v.Reach(ctx, paths, nil)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if _, ok := out.lookup(k); !ok {
			return out.Full(ctx)
		}
	}
	return out, nil
}

func (p *publish) touches() (paths []string, keys []Key) {
	for b := range p.builds {
		for i := range p.builds[b].Artifacts {
			a := &p.builds[b].Artifacts[i]
			keys = append(keys, a.Replaces...)
			for _, f := range a.Files {
				paths = append(paths, f.Path)
			}
		}
	}
	return paths, keys
}

func (c retire) touches() (paths []string, keys []Key)  { return nil, c.keys } //nolint:unparam // others have paths
func (c derive) touches() (paths []string, keys []Key)  { return nil, nil }
func (s synced) touches() (paths []string, keys []Key)  { return nil, nil }
func (b built) touches() (paths []string, keys []Key)   { return nil, nil }
func (compact) touches() (paths []string, keys []Key)   { return nil, nil }
func (c sparing) touches() (paths []string, keys []Key) { return c.Change.(touching).touches() }
func (c complete) touches() (paths []string, keys []Key) {
	return nil, nil
}
