package overlay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/lineage"
)

// entry is one artifact on its way into a chunk.
type entry struct {
	index               string
	bundle              bundleInfo
	shape               string // JSON of the columns
	format              uint32
	files               []Identity
	body, root, lineage lineage.Place
	inline              []byte // nil: read from the bundle
	sha, rootSHA        [32]byte
}

// bundleInfo is what all artifacts of a bundle share.
type bundleInfo struct {
	name, build        string
	snapshot, sequence int64
}

func shapeOf(columns []lineage.Column) (string, error) {
	b, err := json.Marshal(columns)
	return string(b), err
}

// chunkBytes is an encoded chunk.
type chunkBytes struct {
	hot, wide        []byte
	files, artifacts int
}

// chunkWriter lays entries out. Its maps give every distinct thing its record number.
type chunkWriter struct {
	entries []entry
	files   []Identity
	keys    []pathKey
	fileNo  map[Identity]uint32
	indexes numbered
	shapes  numbered
	bundles []bundleInfo
	heap    bytescan.Writer
	strings map[string]uint32 // offset in the heap
}

// numbered numbers strings in the order of their first use.
type numbered struct {
	list []string
	no   map[string]uint32
}

func (n *numbered) of(s string) uint32 {
	if n.no == nil {
		n.no = map[string]uint32{}
	}
	i, ok := n.no[s]
	if !ok {
		i = uint32(len(n.list))
		n.list = append(n.list, s)
		n.no[s] = i
	}
	return i
}

// encodeChunk sorts entries by key and lays them out. Equal entries in any order give equal bytes.
func encodeChunk(entries []entry) (*chunkBytes, error) {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(strings.Compare(a.bundle.name, b.bundle.name), cmp.Compare(a.lineage.Off, b.lineage.Off))
	})
	w := &chunkWriter{entries: entries, fileNo: map[Identity]uint32{}, strings: map[string]uint32{}}
	w.gather()
	out := &chunkBytes{files: len(w.files), artifacts: len(entries), hot: w.hot(), wide: w.wide()}
	if len(w.heap.Buf) > maxHeap || len(w.indexes.list) > maxIndexes || len(w.shapes.list) > maxShapes || len(strings.Join(w.shapes.list, "")) > maxShapeBytes {
		return nil, fault.New(fault.Exhausted, "artifact list", "%d heap bytes, %d indexes, %d column sets in one chunk",
			len(w.heap.Buf), len(w.indexes.list), len(w.shapes.list))
	}
	return out, nil
}

func (w *chunkWriter) gather() {
	for i := range w.entries {
		e := &w.entries[i]
		if n := len(w.bundles); n == 0 || w.bundles[n-1].name != e.bundle.name {
			w.bundles = append(w.bundles, e.bundle)
		}
		w.indexes.of(e.index)
		w.shapes.of(e.shape)
		for _, f := range e.files {
			if _, ok := w.fileNo[f]; !ok {
				w.fileNo[f] = 0
				w.files = append(w.files, f)
			}
		}
	}
	type keyed struct {
		key  pathKey
		file Identity
	}
	order := make([]keyed, len(w.files))
	for i, f := range w.files {
		order[i] = keyed{keyOf(f.Path), f}
	}
	slices.SortFunc(order, func(a, b keyed) int {
		return cmp.Or(bytes.Compare(a.key[:], b.key[:]), compareIdentity(a.file, b.file))
	})
	w.keys = make([]pathKey, len(w.files))
	for i, k := range order {
		w.files[i], w.keys[i] = k.file, k.key
		w.fileNo[k.file] = uint32(i)
	}
}

func compareIdentity(a, b Identity) int {
	return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Records, b.Records), cmp.Compare(a.Tag, b.Tag))
}

// text puts a string into the heap once and returns its offset and length.
func (w *chunkWriter) text(s string) (off, n uint32) {
	if s == "" {
		return 0, 0
	}
	off, ok := w.strings[s]
	if !ok {
		off = uint32(min(len(w.heap.Buf), math.MaxUint32))
		w.heap.Bytes([]byte(s))
		w.strings[s] = off
	}
	return off, uint32(len(s))
}

func (w *chunkWriter) pair(out *bytescan.Writer, s string) {
	off, n := w.text(s)
	out.U32(off)
	out.U32(n)
}

func (w *chunkWriter) hot() []byte {
	artifacts, covers, refs := w.artifactRecords()
	files, flat := w.fileRecords(refs)
	var tail bytescan.Writer
	for _, b := range w.bundles {
		w.pair(&tail, b.name)
		w.pair(&tail, b.build)
		tail.U64(uint64(b.snapshot))
		tail.U64(uint64(b.sequence))
	}
	tail.Bytes(flat)
	tail.Bytes(covers)
	for _, s := range slices.Concat(w.indexes.list, w.shapes.list) {
		w.pair(&tail, s)
	}
	var out bytescan.Writer
	out.Bytes([]byte(chunkMagic))
	out.Bytes([]byte{chunkVersion, 0, 0, 0})
	for _, n := range []int{
		len(w.files), len(w.entries), len(w.bundles), len(flat) / refSize, len(covers) / coverSize, len(w.indexes.list), len(w.shapes.list), 0,
	} {
		out.U32(uint32(n))
	}
	out.U64(uint64(len(w.heap.Buf)))
	return slices.Concat(out.Buf, files, artifacts, tail.Buf, w.heap.Buf)
}

type ref struct{ artifact, first uint32 }

// artifactRecords returns the records, the covers, and per file its refs.
func (w *chunkWriter) artifactRecords() (records, covers []byte, refs [][]ref) {
	var out, cov bytescan.Writer
	refs = make([][]ref, len(w.files))
	bundle := -1
	for i := range w.entries {
		e := &w.entries[i]
		if bundle < 0 || w.bundles[bundle].name != e.bundle.name {
			bundle++
		}
		firstCover, rows := uint32(len(cov.Buf)/coverSize), uint32(0)
		for _, f := range e.files {
			no := w.fileNo[f]
			cov.U32(no)
			refs[no] = append(refs[no], ref{uint32(i), rows})
			rows += uint32(f.Records)
		}
		inline := notInline
		if e.inline != nil {
			inline, _ = w.text(string(e.inline))
		}
		for _, v := range []uint32{w.indexes.of(e.index), uint32(bundle), w.shapes.of(e.shape), rows} {
			out.U32(v)
		}
		for _, v := range []int64{e.body.Off, e.body.Len, e.root.Off, e.lineage.Off} {
			out.U64(uint64(v))
		}
		for _, v := range []uint32{
			uint32(e.root.Len), uint32(e.lineage.Len), e.body.CRC, e.root.CRC, e.lineage.CRC, firstCover, inline, e.format,
		} {
			out.U32(v)
		}
	}
	return out.Buf, cov.Buf, refs
}

func (w *chunkWriter) fileRecords(refs [][]ref) (records, flat []byte) {
	var out, all bytescan.Writer
	for i, f := range w.files {
		out.Bytes(w.keys[i][:])
		out.U64(uint64(f.Size))
		out.U32(uint32(f.Records))
		out.U32(uint32(len(all.Buf) / refSize))
		w.pair(&out, string(f.Tag))
		for _, r := range refs[i] {
			all.U32(r.artifact)
			all.U32(r.first)
		}
	}
	return out.Buf, all.Buf
}

func (w *chunkWriter) wide() []byte {
	var out bytescan.Writer
	for i := range w.entries {
		out.Bytes(w.entries[i].sha[:])
	}
	for i := range w.entries {
		out.Bytes(w.entries[i].rootSHA[:])
	}
	order := make([]uint32, len(w.files))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return strings.Compare(w.files[a].Path, w.files[b].Path) })
	rank := make([]uint32, len(order))
	var paths, restarts bytescan.Writer
	last := ""
	for r, no := range order {
		rank[no] = uint32(r)
		path := w.files[no].Path
		shared := 0
		if r%pathsPerBlock == 0 {
			restarts.U32(uint32(len(paths.Buf)))
		} else {
			shared = sharedPrefix(last, path)
		}
		paths.Uvarint(uint64(shared))
		paths.String(path[shared:])
		last = path
	}
	for _, r := range rank {
		out.U32(r)
	}
	out.Bytes(restarts.Buf)
	out.Bytes(paths.Buf)
	return out.Buf
}

func sharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
