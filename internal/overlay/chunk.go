package overlay

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"sort"
	"sync/atomic"
	"unsafe"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/lineage"
	"github.com/skomerdb/skomer/internal/store"
)

// chunk is an opened chunk: views of its hot part. Every number read from the bytes is checked before it is followed, so
// that bytes which pass their checksum and are wrong all the same give no answer instead of a panic.
type chunk struct {
	hot                                     []byte
	version                                 int
	files, artifacts, bundles, refs, covers table
	heap                                    []byte
	indexes                                 []string
	shapes                                  [][]lineage.Column
	shapeJSON                               table
	wide                                    atomic.Pointer[widePart] // nil until read
}

// table is records of one width.
type table struct {
	raw  []byte
	size int
	n    int
}

func (t table) at(i int) []byte { return t.raw[i*t.size : (i+1)*t.size] }

// openChunk reads the hot part of a chunk, whose checksum the caller has verified.
func openChunk(name string, hot []byte) (*chunk, error) {
	r := bytescan.NewReader("artifact list "+name, hot)
	if string(r.Bytes(len(chunkMagic))) != chunkMagic && r.Err() == nil {
		r.Fail("no artifact list")
	}
	version, pad := r.U8(), r.Bytes(3)
	if r.Err() == nil && (version < 1 || version > chunkVersion) {
		return nil, newerFormat("artifact list "+name, int(version), chunkVersion)
	}
	if len(pad) == 3 && (pad[0]|pad[1]|pad[2]) != 0 {
		r.Fail("padding is not zero")
	}
	var n [8]int
	for i := range n {
		n[i] = int(r.U32())
	}
	heap := r.U64()
	c := &chunk{hot: hot, version: int(version)}
	take := func(size, n int) table { return table{r.Bytes(size * n), size, n} }
	c.files, c.artifacts, c.bundles = take(fileSize, n[0]), take(artifactSize, n[1]), take(bundleSize, n[2])
	c.refs, c.covers = take(refSize, n[3]), take(coverSize, n[4])
	indexes, shapes := take(pairSize, n[5]), take(pairSize, n[6])
	if n[7] != 0 || n[5] > maxIndexes || n[6] > maxShapes {
		r.Fail("header of %d indexes and %d column sets", n[5], n[6])
	}
	if heap > maxHeap {
		r.Fail("heap of %d bytes", heap)
	}
	c.heap = r.Bytes(int(heap))
	if err := r.Done(); err != nil {
		return nil, err
	}
	c.indexes = make([]string, indexes.n)
	for i := range c.indexes {
		c.indexes[i] = c.text(indexes.at(i))
	}
	return c, c.readShapes(r, shapes)
}

func (c *chunk) readShapes(r *bytescan.Reader, shapes table) error {
	c.shapes, c.shapeJSON = make([][]lineage.Column, shapes.n), shapes
	total := 0
	for i := range c.shapes {
		s := c.text(shapes.at(i))
		if total += len(s); total > maxShapeBytes {
			r.Fail("column sets of more than %d bytes", maxShapeBytes)
			break
		}
		if err := json.Unmarshal([]byte(s), &c.shapes[i]); err != nil {
			r.Fail("column set %d: %v", i, err)
			break
		}
	}
	return r.Err()
}

// text is the string at an offset and length in the heap, "" if that lies outside. It shares the chunk's bytes, which
// never change.
func (c *chunk) text(pair []byte) string {
	off, n := uint64(binary.LittleEndian.Uint32(pair)), uint64(binary.LittleEndian.Uint32(pair[4:]))
	if n == 0 || off+n > uint64(len(c.heap)) {
		return ""
	}
	return unsafe.String(&c.heap[off], int(n))
}

// guesses is how often find interpolates before it closes in step by step: each guess leaves about the square root of the
// distance that the one before left.
const guesses = 3

// find is the range of file records with the key. Keys are hashes, spread evenly, so that a guess by proportion lands near.
func (c *chunk) find(k pathKey) (from, to int) {
	n := c.files.n
	if n == 0 {
		return 0, 0
	}
	want := binary.BigEndian.Uint64(k[:])
	at := 0
	for got, i := uint64(0), 0; i < guesses; i++ {
		step := float64(n) / (1 << 64)
		if want >= got {
			at += int(float64(want-got) * step)
		} else {
			at -= int(float64(got-want) * step)
		}
		at = min(max(at, 0), n-1)
		got = binary.BigEndian.Uint64(c.files.raw[at*fileSize:])
	}
	less := func(i int) bool { return bytes.Compare(c.files.raw[i*fileSize:i*fileSize+16], k[:]) < 0 }
	lo, hi := at, at // below lo all keys are less, from hi on none is
	if less(at) {
		for step := 1; hi < n && less(hi); step *= 2 {
			lo, hi = hi+1, min(hi+step, n)
		}
	} else {
		for step := 1; lo > 0 && !less(lo-1); step *= 2 {
			lo, hi = max(lo-step, 0), lo
		}
	}
	for lo < hi {
		if mid := (lo + hi) / 2; less(mid) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for from, to = lo, lo; to < n && bytes.Equal(c.files.raw[to*fileSize:to*fileSize+16], k[:]); to++ {
	}
	return from, to
}

// fileRec is a decoded file record.
type fileRec struct {
	size           int64
	records        uint32
	tag            store.Tag
	fromRef, toRef int
}

func (c *chunk) file(i int) fileRec {
	b := c.files.at(i)
	f := fileRec{
		size: int64(binary.LittleEndian.Uint64(b[16:])), records: binary.LittleEndian.Uint32(b[24:]),
		tag: store.Tag(c.text(b[32:])), fromRef: int(binary.LittleEndian.Uint32(b[28:])), toRef: c.refs.n,
	}
	if i+1 < c.files.n {
		f.toRef = int(binary.LittleEndian.Uint32(c.files.at(i + 1)[28:]))
	}
	if f.toRef > c.refs.n {
		f.toRef = f.fromRef
	}
	return f
}

func (c *chunk) ref(i int) (artifact int, first uint32) {
	b := c.refs.at(i)
	return int(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint32(b[4:])
}

// index is the number of the artifact's index among the chunk's ids, -1 if the record is broken.
func (c *chunk) index(artifact int) int {
	if artifact >= c.artifacts.n {
		return -1
	}
	if i := int(binary.LittleEndian.Uint32(c.artifacts.at(artifact))); i < len(c.indexes) {
		return i
	}
	return -1
}

// cover is the range of the artifact's covers.
func (c *chunk) cover(artifact int) (from, to int) {
	from, to = int(binary.LittleEndian.Uint32(c.artifacts.at(artifact)[68:])), c.covers.n
	if artifact+1 < c.artifacts.n {
		to = int(binary.LittleEndian.Uint32(c.artifacts.at(artifact + 1)[68:]))
	}
	if from > to || to > c.covers.n {
		return 0, 0
	}
	return from, to
}

// bundle is the bundle record of an artifact; ok is false if there is none.
func (c *chunk) bundle(artifact int) (b bundleInfo, ok bool) {
	no := c.bundleNo(artifact)
	if no >= c.bundles.n {
		return b, false
	}
	raw := c.bundles.at(no)
	return bundleInfo{
		name: c.text(raw), build: c.text(raw[8:]),
		snapshot: int64(binary.LittleEndian.Uint64(raw[16:])), sequence: int64(binary.LittleEndian.Uint64(raw[24:])),
	}, true
}

// shapeText is the column set of an artifact whose shape is known to exist.
func (c *chunk) shapeText(artifact int) string {
	return c.text(c.shapeJSON.at(int(binary.LittleEndian.Uint32(c.artifacts.at(artifact)[8:]))))
}

// search is the artifact with the key, or -1.
func (c *chunk) search(k Key) int {
	bundle := sort.Search(c.bundles.n, func(i int) bool { return c.text(c.bundles.at(i)) >= k.Bundle })
	if bundle == c.bundles.n || c.text(c.bundles.at(bundle)) != k.Bundle {
		return -1
	}
	i := sort.Search(c.artifacts.n, func(i int) bool {
		no := c.bundleNo(i)
		return no > bundle || no == bundle && c.lineageOff(i) >= k.Lineage
	})
	if i == c.artifacts.n || c.bundleNo(i) != bundle || c.lineageOff(i) != k.Lineage {
		return -1
	}
	return i
}

func (c *chunk) bundleNo(i int) int { return int(binary.LittleEndian.Uint32(c.artifacts.at(i)[4:])) }

func (c *chunk) lineageOff(i int) int64 {
	return int64(binary.LittleEndian.Uint64(c.artifacts.at(i)[40:]))
}
