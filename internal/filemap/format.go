// Package filemap answers: which data files, and which rows of them, can hold a value?
//
// It is evidence about a whole table, asked before any file or bundle is opened. A run maps the fingerprints of a column's values
// to the files and granules that hold them. It covers the files that it lists and speaks of no others, so that a look-up's result
// is its hits and every file that no run covers. The package knows no store and no table: a look-up names the leaves that it needs
// and is fed bytes, all of one wave.
//
// A fingerprint is the head of the xxHash64 (seed 0) of a value's key-v1 bytes, column.AppendKey. NaN is a value here; null is
// none. A file is one incarnation: path, size, rows and tag. Its slot in a run means this incarnation for as long as the run
// exists; an overwritten file is another incarnation with a slot of its own in a later run. A granule is a file's rows from
// g × stride up to the next one's.
//
// A run of a column of few values has a value map as well: the values themselves, sorted, and for each the files that hold it, and
// those that hold nulls. It is exact, and answers what is asked of the order of values, or of all values but some.
//
// Beside the root lie the layouts of the files, Layouts: where their pages are.
//
// # Version 2
//
// Integers are little-endian, uv is an unsigned LEB128 varint.
//
//	root    u8 version = 2
//	        encoding            index.Encoding: u8 kind, u8 scale, uv width
//	        u8 fingerprint bits b, 8 to 56
//	        u8 k                the run has 2^k leaves
//	        u8 state            of the value map; 0: none, 1: every value is in a listed file, 2: one in too many files may be in none
//	        uv values           in it; only where there is one
//	        uv entries
//	        uv files
//	        uv objects          that hold the leaves
//	        per file, ascending by (path key, size, rows, tag), no two alike
//	          16 bytes path key: the head of the SHA-256 of the path as the manifest states it
//	          uv size, uv rows, uv stride (rows of a granule, at least 1; at most 255 granules)
//	          uv length, tag
//	        per object
//	          uv leaves         in it, the value map among them; together 2^k + 1
//	        per leaf, and for the value map, which follows the last
//	          u32 length, u32 CRC32C
//	leaf    of the fingerprints whose first k bits are its number; empty where there is none
//	        uv n                entries, at least 1
//	        buckets             per value of the h highest bits of what follows the k bits: as many one bits as it has entries, and a
//	                            zero; h = ⌈log2 n⌉, at most b − k; bits from the least significant on, padded to bytes
//	        rests               n × (b − k − h) bits: what is left of the fingerprints; padded to bytes
//	        places              n × (bits of files + bits of G) bits, G the most granules of a file: slot × 2^(bits of G) + granule;
//	                            padded to bytes
//
//	values  uv n
//	        keys                key-v1, ascending: per key uv shared, uv suffix length (only where keys vary in length), suffix
//	        heads               of the set of the files with a null, and of that of each value: uv 0: too many files, 1: bits, else 2 + the
//	                            bytes of a list
//	        sets                bits: one per file, from the least significant on; list: per file uv, how many slots lie between it and
//	                            the one before
//
// Entries ascend by (fingerprint, slot, granule). Slot = files says that more than 1,024 files hold the fingerprint: every
// covered file may. Granule = G says that more than 8 granules of the file do: all its rows may. The leaves of an object follow
// each other without gaps. Version 1 has no value map: no state, no values, no last leaf.
package filemap

import "math/bits"

const (
	version    = 2
	oldVersion = 1 // the same without a value map
	minBits    = 8
	maxBits    = 56
	maxFiles   = 1 << 20
	maxTag     = 4096
	// maxGranules is the most granules of a file; 255 means all its rows.
	maxGranules = 255
	wholeFile   = 255
	// maxLeafBits bounds the leaves of a run at a million.
	maxLeafBits = 20
	leafTarget  = 64 << 10 // bytes; leaves are half as long to as long on average
	maxLeaf     = 8 << 20
	maxRoot     = 160 << 20
	maxObjects  = 1 << 12
	// usualBits is the least width of fingerprints that builds write: small runs keep bits for the runs that they are merged into.
	usualBits = 40
	// spareBits is how many bits wider than the logarithm of the entries fingerprints are: an absent value hits one entry of a
	// thousand runs.
	spareBits = 10
	// filesCap is the files that a fingerprint lists before it says "too many", granulesCap the granules of one file before it says
	// "the whole file". Both are final: merges keep them.
	filesCap    = 1024
	granulesCap = 8
	maxGroup    = filesCap * granulesCap
	// maxLookup is the most leaves that one look-up reads.
	maxLookup = 128
)

// MaxFiles is the most files of a run.
const MaxFiles = maxFiles

// ObjectSize is the bytes of leaves after which a writer goes on in another object.
const ObjectSize = 1 << 30

// File is a data file that a run covers.
type File struct {
	Path          [16]byte // PathKey of the path as the manifest states it
	Size, Records int64
	Tag           string // the entity tag of the bytes that were read
	Stride        uint32 // rows of a granule
}

// granules is how many the file has.
func (f *File) granules() uint64 {
	return (uint64(f.Records) + uint64(f.Stride) - 1) / uint64(f.Stride)
}

// tooMany is the slot that stands for every covered file.
const tooMany = 1<<24 - 1

// entry says that a fingerprint is in a granule of a file. Fingerprints are the highest bits of hash, the others zero or, before
// they are cut, those of the whole hash. place is slot << 8 | granule.
type entry struct {
	hash  uint64
	place uint32
}

func place(slot uint32, granule uint8) uint32 { return slot<<8 | uint32(granule) }

// shape is what the bytes of a leaf depend on.
type shape struct {
	bits      int // of a fingerprint
	leafBits  int // k
	files     int
	granules  int // G
	slotWidth int
	granWidth int
}

func shapeOf(width, leafBits int, files []File) shape {
	s := shape{bits: width, leafBits: leafBits, files: len(files), granules: 1}
	for i := range files {
		s.granules = max(s.granules, int(files[i].granules()))
	}
	s.slotWidth, s.granWidth = bits.Len(uint(len(files))), bits.Len(uint(s.granules))
	return s
}

// split is how many bits of a fingerprint in a leaf of n entries go into its buckets, and how many are left.
func (s *shape) split(n int) (high, rest int) {
	high = min(bits.Len(uint(n-1)), s.bits-s.leafBits)
	return high, s.bits - s.leafBits - high
}

// sizes is the bytes of the parts of a leaf of n entries.
func (s *shape) sizes(n int) (buckets, rests, places int) {
	high, rest := s.split(n)
	return (n + 1<<high + 7) / 8, (n*rest + 7) / 8, (n*(s.slotWidth+s.granWidth) + 7) / 8
}

// leafOf is the leaf of a hash.
func (s *shape) leafOf(hash uint64) int { return int(hash >> (64 - s.leafBits)) }

// cut is the fingerprint of a hash.
func (s *shape) cut(hash uint64) uint64 { return hash >> (64 - s.bits) << (64 - s.bits) }

// widthFor is the width of the fingerprints of a run of about n entries.
func widthFor(n uint64) int { return min(maxBits, max(usualBits, bits.Len64(n)+spareBits)) }

// leafBitsFor is k for about n entries.
func leafBitsFor(n uint64, s shape) int {
	perKey := uint64(2 + max(0, s.bits-bits.Len64(n)) + s.slotWidth + s.granWidth)
	leaves := n / 8 * perKey / leafTarget
	return min(bits.Len64(leaves), maxLeafBits, s.bits-1)
}
