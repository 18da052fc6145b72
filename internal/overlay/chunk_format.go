package overlay

import "crypto/sha256"

// A chunk is an immutable list of artifacts in one object. All integers are little-endian, all records have a fixed width,
// and lookups run on the bytes as they lie: opening a chunk allocates nothing per artifact.
//
//	hot    header  "SKOC", version u8 = 2, three zero bytes,
//	               u32 counts of files, artifacts, bundles, refs, covers, indexes, shapes, one zero u32, u64 heap length
//	       file × files, ascending by path key
//	         0 path key      16 bytes: SHA-256 of the path, cut
//	        16 size          u64
//	        24 records       u32
//	        28 first ref     u32   its refs end where those of the next file begin
//	        32 tag           u32 offset, u32 length in the heap
//	       artifact × artifacts, ascending by (bundle, lineage offset)
//	         0 index         u32   into the index ids
//	         4 bundle        u32
//	         8 shape         u32
//	        12 rows          u32   of the segment
//	        16 body offset   u64
//	        24 body length   u64
//	        32 root offset   u64
//	        40 lineage off.  u64
//	        48 root length   u32
//	        52 lineage len.  u32
//	        56 body CRC32C   u32
//	        60 root CRC32C   u32
//	        64 lineage CRC   u32
//	        68 first cover   u32   its covers end where those of the next artifact begin
//	        72 inline root   u32   offset in the heap; 0xFFFFFFFF: not inlined
//	        76 format        u32   version of the lineage record
//	       bundle × bundles, ascending by name
//	         0 name          u32 offset, u32 length in the heap
//	         8 build id      u32 offset, u32 length in the heap
//	        16 snapshot id   i64
//	        24 sequence      i64
//	       ref × refs        u32 artifact, u32 first ordinal of the file in its segment
//	       cover × covers    u32 file; per artifact in ordinal order
//	       index id × indexes, shape × shapes   u32 offset, u32 length in the heap; a shape is the JSON of the indexed columns
//	       heap
//	wide   body SHA-256 × artifacts   32 bytes
//	       root SHA-256 × artifacts   32 bytes; zero: not known. Version 1 had none
//	       rank × files               u32: the file's place in the order of paths
//	       restart × ⌈files/64⌉       u32: where each 64th path begins, from the start of the paths
//	       paths, ascending, front-coded: varint length shared with the path before (0 at restarts), varint length and bytes of the rest
//
// The version that names a chunk holds the CRC32C of either part and the SHA-256 of both.
const (
	chunkMagic   = "SKOC"
	chunkVersion = 2

	chunkHeader    = 48
	fileSize       = 40
	artifactSize   = 80
	bundleSize     = 32
	refSize        = 8
	coverSize      = 4
	pairSize       = 8
	notInline      = ^uint32(0)
	pathsPerBlock  = 64
	sha256Size     = sha256.Size
	rankSize       = 4
	maxHeap        = 1 << 30
	maxChunkHot    = 1 << 30
	maxChunkWide   = 1 << 30
	maxIndexes     = 4096 // distinct index ids in a chunk, and definitions in a version
	maxShapes      = 65536
	maxShapeBytes  = 1 << 20 // JSON of all shapes of a chunk
	maxPath        = 1 << 16
	maxPathBytes   = 1 << 30 // of all paths of a chunk, decoded
	maxRootInline  = 1 << 10 // larger roots are read from the bundle
	maxInlineTotal = 256 << 10
)

// pathKey is what a path is found by: wide enough that no two paths share one.
type pathKey [16]byte

func keyOf(path string) pathKey {
	sum := sha256.Sum256([]byte(path))
	return pathKey(sum[:16])
}
