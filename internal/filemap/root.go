package filemap

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/skomerdb/skomer/internal/bytescan"
	"github.com/skomerdb/skomer/internal/fault"
	"github.com/skomerdb/skomer/internal/index"
	"github.com/skomerdb/skomer/internal/rowset"
)

// PathKey is what a run calls a file whose path the manifest states so.
func PathKey(stated string) (key [16]byte) {
	sum := sha256.Sum256([]byte(stated))
	copy(key[:], sum[:])
	return key
}

// Run is an opened root. It is immutable and safe for concurrent use.
type Run struct {
	Encoding index.Encoding
	Keys     uint64 // entries: distinct pairs of fingerprint and granule
	Files    []File // by slot
	// Values is how many distinct values the value map holds, HasValues whether the run has one.
	Values    int
	HasValues bool
	gone      bool
	shape     shape
	objects   []int    // per object its first leaf
	leaves    []byte   // 8 bytes each
	offsets   []uint64 // of every stepth leaf, from the first byte of the first object's leaves
}

const (
	leafRecord = 8
	step       = 64
)

// compareFiles is the order of slots.
func compareFiles(a, b *File) int {
	return cmp.Or(bytes.Compare(a.Path[:], b.Path[:]), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Records, b.Records), strings.Compare(a.Tag, b.Tag))
}

// Bytes is about the memory that the run holds.
func (x *Run) Bytes() int64 {
	n := int64(len(x.leaves)) + int64(8*len(x.offsets)) + int64(64*len(x.Files))
	for i := range x.Files {
		n += int64(len(x.Files[i].Tag))
	}
	return n
}

// Leaves is how many leaves of fingerprints the run has.
func (x *Run) Leaves() int { return 1 << x.shape.leafBits }

// Parts is how many parts with a place the run has: the leaves and, where its format has one, the value map, which comes last.
func (x *Run) Parts() int { return len(x.leaves) / leafRecord }

// LeafBytes is how long all leaves and the value map are together.
func (x *Run) LeafBytes() int64 {
	last := len(x.leaves)/leafRecord - 1
	return x.offsetOf(last) + int64(binary.LittleEndian.Uint32(x.leaves[last*leafRecord:]))
}

// Bits is the width of the run's fingerprints: an absent value hits Keys / 2^Bits entries of a run on average.
func (x *Run) Bits() int { return x.shape.bits }

// MayNameGone reports whether the value map may hold values of files that the run had once: it dropped some while a value was in too many.
func (x *Run) MayNameGone() bool { return x.gone }

// encodeRoot lays a root out. leaves is the directory of the leaves, objects how many of them each object holds, values the value map or
// nil.
func encodeRoot(enc index.Encoding, s *shape, keys uint64, files []File, objects []int, leaves []byte, values *valueMap) []byte {
	w := &bytescan.Writer{}
	w.U8(version)
	enc.Append(w)
	w.U8(uint8(s.bits))
	w.U8(uint8(s.leafBits))
	switch {
	case values == nil:
		w.U8(noValues)
	case values.gone:
		w.U8(goneValues)
	default:
		w.U8(exactValues)
	}
	if values != nil {
		w.Uvarint(uint64(len(values.keys)))
	}
	w.Uvarint(keys)
	w.Uvarint(uint64(len(files)))
	w.Uvarint(uint64(len(objects)))
	for i := range files {
		f := &files[i]
		w.Bytes(f.Path[:])
		w.Uvarint(uint64(f.Size))
		w.Uvarint(uint64(f.Records))
		w.Uvarint(uint64(f.Stride))
		w.String(f.Tag)
	}
	for _, n := range objects {
		w.Uvarint(uint64(n))
	}
	w.Bytes(leaves)
	return w.Buf
}

// minFile is the bytes of the shortest file.
const minFile = 20

// Open parses a root of at most 160 MiB, whose checksum the caller has verified. It keeps the directory of the leaves and at most 64
// bytes and the tag of each file.
func Open(root []byte) (*Run, error) {
	r := bytescan.NewReader("root of a file map", root)
	made := r.U8()
	if r.Err() == nil && made != version && made != oldVersion {
		return nil, index.FromTheFuture("file map", made)
	}
	if len(root) > maxRoot {
		r.Fail("%d bytes, above the limit of %d", len(root), maxRoot)
	}
	x := &Run{Encoding: index.ReadEncoding(r)}
	width, leafBits := int(r.U8()), int(r.U8())
	if made == version {
		x.readState(r)
	}
	x.Keys = r.Uvarint()
	if r.Err() == nil && (width < minBits || width > maxBits || leafBits > maxLeafBits || leafBits >= width) {
		r.Fail("fingerprints of %d bits in 2^%d leaves", width, leafBits)
	}
	x.readFiles(r)
	if r.Err() != nil {
		return nil, r.Err()
	}
	x.shape = shapeOf(width, leafBits, x.Files)
	return x, x.readLeaves(r, made)
}

// What a root says of the value map.
const (
	noValues    = iota
	exactValues // every value in it is in a file of the run
	goneValues
)

func (x *Run) readState(r *bytescan.Reader) {
	switch state := r.U8(); state {
	case noValues:
	case exactValues, goneValues:
		x.HasValues, x.gone, x.Values = true, state == goneValues, r.Count(maxValues, 0)
	default:
		r.Fail("state %d of its value map", state)
	}
}

func (x *Run) readFiles(r *bytescan.Reader) {
	n := r.Count(maxFiles, minFile)
	x.objects = make([]int, r.Count(maxObjects, 1))
	x.Files = make([]File, n)
	var tags strings.Builder // one string for all tags
	ends := make([]int, n)
	for i := range x.Files {
		f := &x.Files[i]
		copy(f.Path[:], r.Bytes(16))
		size, records, stride := r.Uvarint(), r.Uvarint(), r.Uvarint()
		tags.Write(r.Blob(maxTag))
		ends[i] = tags.Len()
		if r.Err() == nil && (size > math.MaxInt64 || records > math.MaxUint32 || stride == 0 || stride > math.MaxUint32) {
			r.Fail("file %d of %d bytes and %d rows in granules of %d", i, size, records, stride)
		}
		f.Size, f.Records, f.Stride = int64(size), int64(records), uint32(stride)
		if r.Err() == nil && f.granules() > maxGranules {
			r.Fail("file %d of %d granules", i, f.granules())
		}
		if r.Err() != nil {
			return
		}
	}
	all, from := tags.String(), 0
	for i := range x.Files {
		x.Files[i].Tag, from = all[from:ends[i]], ends[i]
		if i > 0 && compareFiles(&x.Files[i-1], &x.Files[i]) >= 0 {
			r.Fail("file %d is out of order", i)
			return
		}
	}
}

func (x *Run) readLeaves(r *bytescan.Reader, made uint8) error {
	n, total := x.Leaves(), 0
	if made == version {
		n++
	}
	for i := range x.objects {
		x.objects[i] = total
		total += r.Count(n, 0)
	}
	if r.Err() == nil && total != n {
		r.Fail("objects hold %d leaves of %d", total, n)
	}
	x.leaves = r.Bytes(n * leafRecord)
	if err := r.Done(); err != nil {
		return err
	}
	x.offsets = make([]uint64, 0, n/step+1)
	at := uint64(0)
	for i := range n {
		if i%step == 0 {
			x.offsets = append(x.offsets, at)
		}
		length := binary.LittleEndian.Uint32(x.leaves[i*leafRecord:])
		if length > maxLeaf {
			return fault.New(fault.Corrupt, "root of a file map", "leaf of %d bytes", length)
		}
		at += uint64(length)
	}
	if x.HasValues && x.PlaceOf(x.valuesNo()).Len == 0 {
		return fault.New(fault.Corrupt, "root of a file map", "no bytes of the value map")
	}
	return nil
}

// valuesNo is the number that the value map has among the leaves.
func (x *Run) valuesNo() int { return x.Leaves() }

// Place is where a leaf lies: in which of the run's objects, at which offset from the first of the object's leaves.
type Place struct {
	Object   int
	Off, Len int64
	CRC      uint32
}

// PlaceOf is where leaf i lies.
func (x *Run) PlaceOf(i int) Place {
	p := Place{CRC: binary.LittleEndian.Uint32(x.leaves[i*leafRecord+4:]), Len: int64(binary.LittleEndian.Uint32(x.leaves[i*leafRecord:]))}
	o, found := slices.BinarySearch(x.objects, i)
	if !found {
		o--
	}
	for o+1 < len(x.objects) && x.objects[o+1] == i { // objects without leaves
		o++
	}
	p.Object, p.Off = o, x.offsetOf(i)-x.offsetOf(x.objects[o])
	return p
}

func (x *Run) offsetOf(i int) int64 {
	at := x.offsets[i/step]
	for k := i / step * step; k < i; k++ {
		at += uint64(binary.LittleEndian.Uint32(x.leaves[k*leafRecord:]))
	}
	return int64(at)
}

// Rows is the rows of its file that a hit means.
func (x *Run) Rows(h Hit) rowset.Range {
	f := &x.Files[h.Slot]
	if h.Granule == wholeFile {
		return rowset.Range{End: uint32(f.Records)}
	}
	start := min(uint64(h.Granule)*uint64(f.Stride), uint64(f.Records))
	return rowset.Range{Start: uint32(start), End: uint32(min(start+uint64(f.Stride), uint64(f.Records)))}
}
